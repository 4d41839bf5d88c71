"""The batch answer of ``freshet bench optimizer`` is that of the query, whatever computes it."""

from __future__ import annotations

import numpy as np

from freshet.app import App
from freshet.bench.optimizer.answers import batch_answer, rows_wrong, sampled
from freshet.bench.optimizer.load import SCHEMA, SHARES, SQL, arrivals, phases
from freshet.model import ARRIVAL
from freshet.testing import LocalRun


def test_the_batch_answers_what_the_query_answers() -> None:
    app = App("bench")
    for stream in SHARES:
        app.stream(stream, SCHEMA)
    app.query("q", SQL)
    with LocalRun(app, policy="segment") as run:
        for time, chunk in arrivals(phases(20.0)[:2], capacity=600.0, seed=4):
            for stream, rows in chunk.items():
                run.push(stream, rows, at=np.full(rows.num_rows, round(time * 1e6)))
        run.drain()
        given = run.log.read("q", 0, run.log.end("q")).drop_columns([ARRIVAL])
        rows = {stream: run.log.read(stream, 0, run.log.end(stream)) for stream in SHARES}
    right = batch_answer(rows)
    assert given.num_rows > 100
    assert rows_wrong(given, right) == 0
    some = batch_answer({stream: sampled(table) for stream, table in rows.items()})
    assert 0 < some.num_rows < given.num_rows / 4
    assert rows_wrong(sampled(given), some) == 0
