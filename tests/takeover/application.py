"""The application whose state folders are kept as fixtures, and the rows that were pushed into it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from freshet.app import App
from freshet.log import Retention

BEGIN: Final = datetime(2024, 3, 1, 12, 0, tzinfo=UTC)

QUERIES: Final = {
    # Paths without state; the first four begin alike, so that they share work where sharing is on.
    "large": "SELECT id, host, size FROM packets WHERE size > 40 AND id % 2 = 0",
    "twice": "SELECT id, size * 2 AS twice FROM packets WHERE size > 40 AND id % 2 = 0 AND id % 3 = 0",
    "few": "SELECT host FROM packets WHERE size > 40 AND id % 7 = 0",
    "behind": "SELECT id, size + 1 AS more FROM large WHERE size > 60",
    # Several paths into one output.
    "both": "SELECT id, host FROM packets WHERE size > 20 UNION ALL SELECT id, host FROM alerts WHERE level > 1",
    # A join, an aggregate behind it, and aggregates of each kind.
    "pairs": (
        "SELECT p.id, a.id AS alert, p.size + a.level AS total FROM packets [RANGE 20 SECONDS] AS p "
        "JOIN alerts [RANGE 20 SECONDS] AS a ON p.host = a.host WHERE p.size > 10"
    ),
    "unmatched": (
        "SELECT p.id, a.level FROM packets [RANGE 5 SECONDS] AS p "
        "LEFT JOIN alerts [RANGE 5 SECONDS] AS a ON p.id = a.id"
    ),
    "loud": (
        "SELECT host, count(*) AS n, sum(size) AS bytes FROM packets [RANGE 30 SECONDS SLIDE 10 SECONDS] "
        "WHERE size > 20 GROUP BY host HAVING count(*) > 1"
    ),
    "together": (
        "SELECT host, count(*) AS n FROM (SELECT ts, host FROM packets WHERE size > 20 UNION ALL "
        "SELECT ts, host FROM alerts) [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY host"
    ),
    "recent": "SELECT id, sum(size) AS bytes, count(*) AS n FROM packets [ROWS 5] GROUP BY id % 2, id",
    "named": "SELECT p.id, h.owner FROM packets AS p JOIN hosts AS h ON p.host = h.host WHERE p.size > 30",
}  # fmt: skip

CHAINED: Final = {
    # Joins of three inputs ran as two joins of two, with pairs remembered in between.
    "path": (
        "SELECT p.id, a.id AS alert, q.id AS other, p.size + q.size AS total FROM packets [RANGE 12 SECONDS] AS p "
        "JOIN alerts [RANGE 20 SECONDS] AS a ON p.host = a.host AND p.size > a.level "
        "JOIN packets [RANGE 8 SECONDS] AS q ON q.id = a.id AND q.size > p.size"
    ),
    "star": (
        "SELECT p.host, count(*) AS n, sum(q.level) AS levels FROM packets [RANGE 20 SECONDS SLIDE 10 SECONDS] AS p, "
        "alerts [RANGE 20 SECONDS SLIDE 10 SECONDS] AS a, alerts [RANGE 10 SECONDS SLIDE 10 SECONDS] AS q "
        "WHERE p.host = a.host AND p.host = q.host AND a.level < q.level AND p.size > 20 GROUP BY p.host"
    ),
    "lonely": (
        "SELECT p.id, a.id AS alert, q.level FROM packets [RANGE 6 SECONDS] AS p, alerts [RANGE 6 SECONDS] AS a, "
        "packets [RANGE 4 SECONDS] AS r LEFT JOIN alerts [RANGE 5 SECONDS] AS q ON p.id = q.id "
        "WHERE p.host = a.host AND r.id = a.id"
    ),
}  # fmt: skip
"""Queries whose form changed."""

BROKEN: Final = "SELECT id, map(CASE WHEN id % 50 = 13 THEN NULL ELSE host END, size) AS m FROM packets"
"""Fails at the thirteenth packet: the query is quarantined there."""

KEEP: Final = Retention(history_age=None, history_bytes=None)
"""Outputs are kept however old a folder is."""

HOSTS: Final = "host,owner\nalpha,ada\nbeta,bob\ngamma,cem\n"


def packets(first: int, end: int) -> list[dict[str, Any]]:
    """The packets of a range, a second apart; every tenth comes three seconds late."""
    hosts = ("alpha", "beta", "gamma")
    return [
        {
            "id": number,
            "ts": BEGIN + timedelta(seconds=number - (3 if number % 10 == 9 else 0)),
            "host": hosts[number * 7 % 3],
            "size": number * 37 % 101,
        }
        for number in range(first, end)
    ]


def alerts(first: int, end: int) -> list[dict[str, Any]]:
    """The alerts of a range, two seconds apart."""
    return [
        {
            "id": number * 2,
            "ts": BEGIN + timedelta(seconds=2 * number),
            "host": ("alpha", "beta", "gamma")[number % 3],
            "level": number % 4,
        }
        for number in range(first, end)
    ]


def application(
    folder: Path,
    *,
    policy: str = "everything",
    share: Any = False,
    rows: int = 500_000,
    without: tuple[str, ...] = (),
    broken: bool = False,
    queries: Mapping[str, str] = QUERIES,
) -> App:
    """The application over ``folder/state``."""
    (folder / "hosts.csv").write_text(HOSTS)
    app = App(
        "takeover",
        state=folder / "state",
        report=folder / "report.json",
        policy=policy,
        share=share,
        max_train_rows=rows,
    )
    app.stream("packets", "id bigint, ts timestamp, host string, size int", event_time="ts", lateness="5 s")
    app.stream("alerts", "id bigint, ts timestamp, host string, level int", event_time="ts", lateness="5 s")
    app.table("hosts", folder / "hosts.csv", schema="host string, owner string")
    for name, sql in queries.items():
        if name not in without:
            app.query(name, sql, retention=KEEP)
    if broken:
        app.query("broken", BROKEN)
    return app
