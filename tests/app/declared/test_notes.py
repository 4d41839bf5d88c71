"""Notes of ``freshet check``: queries whose answers come too late, whatever runs first."""

from __future__ import annotations

import pytest

from freshet.app import App

TICKS = "ts timestamp, currency string, rate double"


def rates(validity: str | None = "5 s", lateness: str = "0 s") -> App:
    app = App("rates")
    for name in ("ticks", "news"):
        app.stream(name, TICKS, event_time="ts", validity=validity, lateness=lateness)
        app.query(f"all_{name}", f"SELECT * FROM {name}")
    return app


@pytest.mark.parametrize(
    ("sql", "note"),
    [
        (
            "SELECT currency, avg(rate) AS mean FROM ticks [RANGE 3 HOURS SLIDE 1 MINUTE] GROUP BY currency",
            "a window closes up to 1 min after a tuple came, but tuples of ticks are worth answering for 5 s",
        ),
        (
            "SELECT a.rate FROM ticks [RANGE 20 SECONDS] AS a JOIN news [RANGE 20 SECONDS] AS b ON a.rate = b.rate",
            "a partner may come up to 20 s after a tuple, but tuples of news are worth answering for 5 s",
        ),
    ],
)
def test_a_query_that_scheduling_cannot_help_is_noted(sql: str, note: str) -> None:
    app = rates()
    app.query("q", sql)
    assert app.check() == [f"queries.q: {note}"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT currency, rate FROM ticks WHERE rate > 1",
        "SELECT currency, avg(rate) AS mean FROM ticks [RANGE 3 HOURS] GROUP BY currency",
        "SELECT currency, avg(rate) AS mean FROM ticks [RANGE 3 HOURS SLIDE 2 SECONDS] GROUP BY currency",
        "SELECT currency, avg(rate) AS mean FROM ticks [RANGE 1 MINUTE] GROUP BY currency PERIOD 1 MINUTE",
        "SELECT a.rate FROM ticks [RANGE 4 SECONDS] AS a JOIN news [RANGE 4 SECONDS] AS b ON a.currency = b.currency",
    ],
)
def test_a_query_that_scheduling_can_help_is_not(sql: str) -> None:
    app = rates()
    app.query("q", sql)
    assert app.check() == []


def test_the_lateness_counts_with_the_slide() -> None:
    app = rates(lateness="4 s")
    app.query("q", "SELECT currency, max(rate) AS top FROM ticks [RANGE 1 MINUTE SLIDE 2 SECONDS] GROUP BY currency")
    assert app.check() == [
        "queries.q: a window closes up to 6 s after a tuple came, but tuples of ticks are worth answering for 5 s"
    ]


def test_without_a_validity_nothing_is_noted() -> None:
    app = rates(validity=None)
    app.query("q", "SELECT currency, max(rate) AS top FROM ticks [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY currency")
    assert app.check() == []
