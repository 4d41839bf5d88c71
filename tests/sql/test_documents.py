"""The queries that the source documents give as text: docs/queries.md has them as given and as they run."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.engine.kit import Application
from tests.sql.documents import (
    ORDERED,
    REFERENCE,
    SCHEMAS,
    TABLES,
    WINDOWS,
    at_release,
    expected,
    periodic,
    queries,
    tuples,
)

from freshet.app import App
from freshet.model import Filter, Join, Stream, parse_schema
from freshet.policies import Everything
from freshet.sql import build_query
from freshet.testing import LocalRun, RandomSteps
from freshet.testing.local_run import START

QUERIES = queries()
NAMES = {title: f"q{number}" for number, title in enumerate(QUERIES)}
BEGIN = 4_000_000_000
"""Seconds since the epoch: later than the contents of the tables, to which earlier arrivals would be moved up."""


def test_every_query_of_the_page_is_compared() -> None:
    assert list(QUERIES) == list(REFERENCE)


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_one_batch(seed: int) -> None:
    """In random pieces, under a random schedule; without a seed, all at once."""
    rng = random.Random(seed)
    streams = [Stream(name, parse_schema(columns), order=ORDERED.get(name)) for name, columns in SCHEMAS.items()]
    app = Application(
        {NAMES[title]: text for title, text in QUERIES.items()},
        RandomSteps(seed) if seed else Everything(),
        slots=1 + seed % 3,
        seed=seed,
        streams=streams,
        tables=TABLES,
    )
    came = tuples(random.Random(7))
    while came:
        size = rng.randint(1, 80) if seed else len(came)
        piece, came = came[:size], came[size:]
        for name in SCHEMAS:
            mine = [(at, row) for at, stream, row in piece if stream == name]
            if mine:
                arrivals = np.array([round((BEGIN + at) * 1e6) for at, _ in mine], np.int64)
                app.push(name, [row for _, row in mine], at=arrivals)
        for _ in range(rng.randint(0, 6)):
            app.turn()
    for name in SCHEMAS:
        app.heartbeat(name, BEGIN + 100_000)
    app.run()
    answers = expected({name: app.log.read(name, 0, app.log.end(name)) for name in SCHEMAS})
    for title, name in NAMES.items():
        assert app.answers(name) == answers[title], title
        assert sum(answers[title].values()) > 10, f"{title}: too few to tell"
    app.close()


@pytest.mark.spark
def test_rows_are_those_of_one_batch_on_spark(tmp_path: Path) -> None:
    app = App("documents", state=tmp_path / "state")
    for name, columns in SCHEMAS.items():
        if name in ORDERED:
            app.stream(name, columns, ordered_by="epoch", disorder="20 rows")
        else:
            app.stream(name, columns)
    for name, rows in TABLES.items():
        file = tmp_path / f"{name}.csv"
        file.write_text("\n".join(["ID", *map(str, rows["ID"].to_pylist())]))
        app.table(name, file, schema="ID int")
    for title, text in QUERIES.items():
        app.query(NAMES[title], text)
    came = tuples(random.Random(7))
    with app.start() as run:
        for piece in (came[:200], came[200:]):
            for name in SCHEMAS:
                run.push(name, [row for _, stream, row in piece if stream == name])
            assert run.drain()
        for name in SCHEMAS:
            run.heartbeat(name, dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
        assert run.drain()
        log = run._parts.log
        answers = expected({name: log.read(name, 0, log.end(name)) for name in SCHEMAS})
        found = {title: run.read(name).to_pylist() for title, name in NAMES.items()}
    for title in QUERIES:
        assert Counter(tuple(row.values()) for row in found[title]) == answers[title], title
        assert answers[title], title


def test_mav_has_eight_operators_and_selects_before_it_joins() -> None:
    schemas = {name: parse_schema(columns) for name, columns in SCHEMAS.items()}
    query = build_query("q", QUERIES["MAV, experiments"], schemas)
    kinds = Counter(type(operator) for operator in query.graph.operators.values())
    assert (kinds[Filter], kinds[Join]) == (3, 2)
    for name, inputs in query.graph.inputs.items():
        if not query.graph.operators.keys() >= set(inputs):
            assert isinstance(query.graph.operators[name], Filter), "what reads a stream selects"


@pytest.mark.parametrize("seed", range(3))
def test_periodic_queries_give_the_batch_answer_at_each_release(seed: int) -> None:
    app = App("documents")
    for name, columns in SCHEMAS.items():
        app.stream(name, columns)
    for name in TABLES:
        app.table(name, f"{name}.csv", schema="ID int")
    asked = periodic()
    assert list(asked) == list(WINDOWS)
    for title, text in asked.items():
        app.query(NAMES[title], text)
    rng = random.Random(seed)
    with LocalRun(app, workers=1 + seed, seed=seed, tables=TABLES) as run:
        for at, name, row in tuples(random.Random(7)):
            if name != "TEMPERATURE":
                run.push(name, [row], at=START + 1.0 + at)
            for _ in range(rng.choice((0, 0, 0, 2))):
                run.turn()
        assert run.drain()
        logs = {name: run.log.read(name, 0, run.log.end(name)) for name in SCHEMAS if run.log.end(name)}
        for title in asked:
            output, instances = run.read(NAMES[title]), run.instances(NAMES[title])
            assert len(instances) >= 9
            for each in instances:
                found = Counter(tuple(row.values()) for row in output.slice(each.first, each.rows).to_pylist())
                assert found == at_release(title, logs, each.release), title
            assert output.num_rows > 8, f"{title}: too few to tell"
