"""Streams, queries with their text for DuckDB, and rows."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
ROWS = 1500
CHUNK = 300
LAST = "TIMESTAMP '2024-01-01 12:04:50'"
"""The last boundary that all rows together close: five minutes of rows, and a lateness of five seconds."""

STREAMS = {"a": "ts timestamp, k int, v int, name string", "b": "ts timestamp, k int, w int"}
QUERIES = {
    "panes": (
        "SELECT k, count(*) AS n, sum(v) AS s FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k",
        f"""SELECT k, count(*), sum(v) FROM a
        JOIN (SELECT TIMESTAMP '2024-01-01 11:59:00' + i * INTERVAL 10 SECOND AS b FROM range(100) r(i))
        ON ts >= b - INTERVAL 1 MINUTE AND ts < b WHERE b <= {LAST} GROUP BY k, b""",
    ),
    # Its name is not compiled, so that Spark's own form computes a part of it.
    "names": (
        "SELECT initcap(name) AS name, count(*) AS n FROM TUMBLE(a, ts, INTERVAL 30 SECONDS) GROUP BY initcap(name)",
        """SELECT upper(name), count(*) FROM a WHERE time_bucket(INTERVAL 30 SECOND, ts)
        < TIMESTAMP '2024-01-01 12:04:30' GROUP BY name, time_bucket(INTERVAL 30 SECOND, ts)""",
    ),
    "joined": (
        "SELECT a.k, a.v, b.w FROM a [RANGE 2 SECONDS] JOIN b [RANGE 1 SECOND] ON a.k = b.k WHERE a.v > b.w",
        """SELECT a.k, a.v, b.w FROM a JOIN b ON a.k = b.k AND a.v > b.w
        AND b.ts < a.ts + INTERVAL 2 SECOND AND a.ts < b.ts + INTERVAL 1 SECOND""",
    ),
    "plain": ("SELECT k, v * 2 AS v FROM a WHERE v > 3", "SELECT k, v * 2 FROM a WHERE v > 3"),
}


def rows_of() -> dict[str, list[dict[str, Any]]]:
    """Five minutes of two streams, out of order by up to four seconds except at the end; the same at every call."""
    rng = random.Random(11)
    rows: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
    for place in range(ROWS):
        time = NOON + dt.timedelta(seconds=place * 0.2)
        for name, column in (("a", "v"), ("b", "w")):
            back = dt.timedelta(seconds=round(rng.random() * 4, 3) if 0 < place < ROWS - 1 else 0)
            row = {"ts": time - back, "k": rng.randrange(5), column: rng.randrange(9)}
            rows[name].append(row | ({"name": rng.choice("xyz")} if name == "a" else {}))
    return rows
