"""Weights that live, on Spark: sinks, queries and readers in other processes count as followers."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import freshet
from freshet.app.running.followers import following
from freshet.model import UserError


def app_of(folder: Path) -> freshet.App:
    app = freshet.App("weights", state=folder / "state", master="local[2]", policy="fas-mcq", ageing="5 s")
    app.stream("s", "v int")
    return app


def eventually(holds: Callable[[], bool], run: freshet.Run) -> None:
    for value in range(400):
        run.push("s", [{"v": value}])
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(run.meters()["queries"])


@pytest.mark.spark
def test_weights_follow_the_clock_and_the_followers(tmp_path: Path) -> None:
    now = datetime.now()
    hours = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=1):%H:%M}"
    app = app_of(tmp_path)
    app.query("popular", "SELECT v FROM s", subscribers=True, sinks=[{"kind": "memory"}])
    app.query("read", "SELECT v FROM s WHERE v >= 0", weight=0.5, subscribers=True)
    app.query("now", "SELECT v FROM s", weight={hours: 0.75, "else": 0.25})

    with app.start() as run:

        def weights() -> dict[str, float]:
            return {name: query["weight"] for name, query in run.meters()["queries"].items()}

        eventually(lambda: weights() == {"popular": 1.0, "read": 0.5e-6, "now": 0.75}, run)
        with following(app.state, "read"), following(app.state, "read"):
            eventually(lambda: weights() == {"popular": 0.5, "read": 0.5, "now": 0.75}, run)
        eventually(lambda: weights()["popular"] == 1.0, run)
        run.set_weight("now", 0.1)
        run.add_query("more", "SELECT v FROM popular", weight=0.2)
        eventually(lambda: weights()["read"] == pytest.approx(0.5e-6), run)
        assert weights()["now"] == 0.1
    assert run.report()["settings"]["ageing"] == 5.0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"weight": {"08:00-18:00": 1.0}}, "query q: weight by the time of day also needs else"),
        ({"weight": 1.5}, "query q: weight 1.5 is outside"),
        ({"subscribers": 3}, "query q: subscribers must be true or false, not 3"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, changes: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        app_of(tmp_path).query("q", "SELECT v FROM s", **changes)  # type: ignore[arg-type]


def test_an_age_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ageing must be above 0"):
        freshet.App("a", state=tmp_path, ageing=0.0)
