"""Work that queries share: where they stand, how they get there and back, and that answers do not change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshet.app import App, Run
from freshet.app.restart import compare, remember
from freshet.app.sharing import Standing, arrange, form_of, leave
from freshet.log import Log
from freshet.model import ARRIVAL, Query, parse_schema
from freshet.policies.sharing import is_shared
from freshet.sql import build_query

SCHEMA = parse_schema("k bigint, v bigint")


def query(name: str, sql: str, **options: Any) -> Query:
    return build_query(name, sql, {"s": SCHEMA}, **options)


A = query("a", "SELECT k FROM s WHERE v > 1 AND k > 3")
B = query("b", "SELECT v FROM s WHERE v > 1 AND k > 3")
C = query("c", "SELECT v FROM s WHERE v > 1")
D = query("d", "SELECT v FROM s WHERE v > 9")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "state") as one:
        for name in "sabcd":
            one.declare(name)
        one.append("s", pa.table({"k": [1, 2], "v": [1, 2], ARRIVAL: [1, 2]}))
        yield one


def start(log: Log, queries: list[Query], enabled: bool = True) -> dict[str, str]:
    """What a start does, without an engine; returns what it meant for each query."""
    log.epoch += 1  # type: ignore[misc]
    arrange(log, queries, enabled)
    changes: dict[str, str] = {}
    for each in queries:
        changes[each.name] = compare(log, each)
        form = form_of(log, each)
        for one in (*form.hidden, form.query):
            first = one.paths[0].operators[0].name
            log.start_reader(first, one.graph.streams[0], one.start)
        remember(log, each, [form.query.paths[0].operators[0].name])
    return changes


def works(log: Log) -> set[str]:
    return {stream for stream in log.streams() if is_shared(stream)}


def read_all(log: Log, reader: str) -> None:
    stream = log.readers()[reader].stream
    log.advance(reader, stream, log.end(stream), log.reader_state(reader))


def test_new_queries_share_and_nest(log: Log) -> None:
    assert start(log, [A, B, C, D]) == dict.fromkeys("abcd", "new")
    outer, inner = form_of(log, A).hidden
    assert form_of(log, B).hidden == (outer, inner)
    assert form_of(log, C).hidden == (outer,)
    assert form_of(log, D).hidden == ()
    assert [operator.text() for each in (outer, inner) for operator in each.paths[0].operators] == ["v > 1", "k > 3"]
    assert [operator.name for operator in form_of(log, A).query.paths[0].operators] == ["a.project"]
    assert Standing(log).place("a") == ("s", 0)


def test_a_place_survives_every_change_of_what_is_shared(log: Log) -> None:
    start(log, [A, B, C])
    outer, _ = form_of(log, A).hidden
    read_all(log, f"{outer.name}.1")
    for queries, enabled in (([A, B], True), ([A, B, C], False), ([A], True), ([A, B, C, D], True)):
        changes = start(log, queries, enabled)
        assert {changes[name] for name in ("a",)} == {"unchanged"}
        assert Standing(log).place("a") == ("s", 2)
        assert bool(form_of(log, A).hidden) == (enabled and len(queries) > 1)
    # What nobody reads is forgotten.
    assert works(log) == {work.name for each in (A, B, C) for work in form_of(log, each).hidden}
    assert outer.name not in works(log)


def test_queries_at_different_tuples_do_not_share(log: Log) -> None:
    start(log, [A])
    read_all(log, "a.filter_1")
    start(log, [A, B, C])
    assert form_of(log, A).hidden == ()
    assert form_of(log, B).hidden == form_of(log, C).hidden != ()
    late = query("d", "SELECT k FROM s WHERE v > 1 AND k > 3", start="latest")
    start(log, [A, B, C, late])
    assert form_of(log, late).hidden == (), "it stands where a does, but is declared to start elsewhere"


def test_while_tuples_wait_in_between_nothing_moves(log: Log) -> None:
    start(log, [A, B, C])
    outer, inner = form_of(log, A).hidden
    read_all(log, f"{outer.name}.1")
    log.append(outer.name, pa.table({"k": [2], "v": [2], ARRIVAL: [2]}))
    assert Standing(log).place("a") is None
    cursors = {name: (reader.stream, reader.next) for name, reader in log.readers().items()}
    for enabled in (True, False):
        assert set(start(log, [A, B, C], enabled).values()) == {"unchanged"}
        assert {name: (reader.stream, reader.next) for name, reader in log.readers().items()} == cursors
    assert form_of(log, A).hidden == (outer, inner)
    read_all(log, f"{inner.name}.1")
    read_all(log, "c.project")
    start(log, [A, B, C], False)
    assert works(log) == set()
    assert {Standing(log).place(name) for name in "abc"} == {("s", 2)}


def test_a_query_that_leaves_keeps_its_place_in_its_stream(log: Log) -> None:
    start(log, [A, B])
    (work,) = form_of(log, A).hidden
    read_all(log, f"{work.name}.1")
    leave(log, "a")
    reader = log.readers()["a.filter_1"]
    assert (reader.stream, reader.next, reader.parked) == ("s", 2, True)
    assert form_of(log, B).hidden == (work,)
    assert start(log, [A, B])["a"] == "back"
    assert form_of(log, A).hidden == form_of(log, B).hidden != ()


# On Spark

SQL = {
    "large": "SELECT id, size FROM packets WHERE size > 50 AND id % 3 = 1",
    "odd": "SELECT size * 2 AS twice FROM packets WHERE size > 50 AND id % 3 = 1 AND size % 2 = 1",
    "few": "SELECT id FROM packets WHERE size > 50 AND id % 7 = 0",
    "over": "SELECT id, 1 / (size - 60) AS x FROM large WHERE size > 55",
    "under": "SELECT size FROM large WHERE size > 55 AND id > 100",
}


def make(folder: Path, names: str = "large odd few over under", **options: Any) -> App:
    app = App("sharing", state=folder / "state", master="local[2]", **options)
    app.stream("packets", "id bigint, size int")
    for name in names.split():
        app.query(name, SQL[name])
    return app


def push(run: Run, first: int, end: int) -> None:
    run.push("packets", [{"id": number, "size": number % 101} for number in range(first, end)])


def answers(run: Run) -> dict[str, Counter[tuple[Any, ...]]]:
    return {name: Counter(tuple(row.values()) for row in run.read(name).to_pylist()) for name in run.app.queries}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("policy", ["everything", "slope-slack-push(1)", "baat"])
def test_answers_and_meters_are_the_same(policy: str, tmp_path: Path) -> None:
    seen = {}
    for share in (False, True):
        with make(tmp_path / str(share), policy=policy, share=share).start() as run:
            for first in range(0, 2000, 500):
                push(run, first, first + 500)
            run.drain(120)
            meters = run.meters()
            counts = {name: {key: each[key] for key in ("tuples_in", "tuples_out", "errors", "waiting")}
                      for name, each in meters["queries"].items()}  # fmt: skip
            seen[share] = answers(run), counts, meters["total"]["queries"], meters["total"]["tuples_in"]
            assert run.changes == dict.fromkeys(SQL, "new")
            assert bool(run._parts.engine.board.queries[0].query.hidden) == share
    assert seen[False] == seen[True]
    assert seen[True][1]["over"]["errors"] > 0


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_restarts_and_changes_while_running_lose_and_repeat_nothing(tmp_path: Path) -> None:
    fed = 0

    def feed(run: Run) -> None:
        nonlocal fed
        push(run, fed, fed + 300)
        fed += 300

    with make(tmp_path, "large few", share=True, policy="baat").start() as run:
        feed(run)
        run.add_query("odd", SQL["odd"])
        feed(run)
        run.drain(120)
        run.drop_query("few")
        feed(run)
        run.add_query("few", SQL["few"])
        run.set_curve("large", [(0, 1), ("1 s", 0)])
        feed(run)
        # It is not drained: tuples may wait anywhere.
        run.stop(drain=False)
    with make(tmp_path, "large odd few", share=True, policy="baat").start() as run:
        assert set(run.changes.values()) == {"unchanged"}
        feed(run)
    with make(tmp_path, "large odd few", share=True, policy="fcfs").start() as run:
        assert run._parts.engine.board.queries[0].query.hidden
        feed(run)
        run.stop(drain=False)
    with make(tmp_path, "large odd few over under", share=False).start() as run:
        feed(run)
    with make(tmp_path, "large odd few over under", share=False).start() as run:
        assert not any(state.query.hidden for state in run._parts.engine.board.queries)
        feed(run)
        run.drain(120)
        found = answers(run)
    with make(tmp_path / "apart").start() as run:
        push(run, 0, fed)
        run.drain(120)
        assert found == answers(run)
