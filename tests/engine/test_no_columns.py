"""Queries that need no column of their streams, in process, against DuckDB, with the engine's trains and a crash."""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa
import pytest
from tests.engine.kit import Application

from freshet.testing import RandomSteps

FORMS = {
    "SELECT count(*) AS n FROM s [ROWS 3]": "SELECT count(*) OVER (ORDER BY came ROWS 2 PRECEDING) FROM s",
    "SELECT count(*) AS n FROM s [UNBOUNDED]": "SELECT row_number() OVER (ORDER BY came) FROM s",
    "SELECT count(*) AS n FROM s [RANGE 5 SECONDS]": (
        "SELECT count(*) FROM s x JOIN s y ON y.came <= x.came AND y.came > x.came - 5 GROUP BY x.came"
    ),
    "SELECT count(*) AS n FROM s [RANGE 2 SECONDS SLIDE 1 SECONDS]": (
        "SELECT count(*) FROM s JOIN range(0, 60) r(b) ON came >= b - 2 AND came < b GROUP BY b"
    ),
    "SELECT 1 AS one FROM s [RANGE 5 SECONDS] JOIN t [RANGE 5 SECONDS] ON 1 = 1": (
        "SELECT 1 FROM s JOIN t ON abs(s.came - t.came) < 5"
    ),
    "SELECT DISTINCT 1 AS one FROM s [RANGE 2 SECONDS SLIDE 1 SECONDS]": (
        "SELECT DISTINCT ON (b) 1 FROM s JOIN range(0, 60) r(b) ON came >= b - 2 AND came < b"
    ),
}
TIMES = {"s": [1, 2, 3, 7, 8, 9, 12, 13, 20, 30], "t": [1, 4, 9, 13, 21, 28]}


@pytest.mark.parametrize("event_time", [True, False])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("text", "plain"), FORMS.items(), ids=range(len(FORMS)))
def test_they_answer_as_duckdb_does(text: str, plain: str, seed: int, event_time: bool) -> None:
    app = Application({"q": text}, RandomSteps(seed), slots=2, seed=seed, event_time=event_time)
    for at, stream in sorted((at, stream) for stream, times in TIMES.items() for at in times):
        if at == 12:
            app.crash(RandomSteps(seed + 1), seed + 1)
        app.append(stream, [(at, "k", 1)], at * 1_000_000)
        app.turn()
    for stream in TIMES:
        app.heartbeat(stream, 59.5)
    app.run()
    with duckdb.connect(config={"threads": "1"}) as connection:
        for stream, times in TIMES.items():
            connection.register(stream, pa.table({"came": times}))
        expected = Counter(connection.execute(plain).fetchall())
    assert app.answers("q") == expected
    app.close()
