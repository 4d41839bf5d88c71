"""Work that queries share: where they stand, how they get there and back, and that answers do not change."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshet.app import App, Run
from freshet.app.remembered.forms import inputs_of
from freshet.app.remembered.restart import compare, remember
from freshet.app.remembered.sharing import Costs, arrange, form_of, joined, leave
from freshet.engine.queues import QUEUE
from freshet.log import Log
from freshet.model import ARRIVAL, Query, parse_schema
from freshet.policies.sharing import Mode, OperatorFigures
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


def start(log: Log, queries: list[Query], mode: Mode = "always", costs: Costs | None = None) -> dict[str, str]:
    """What a start does, without an engine; returns what it meant for each query."""
    log.epoch += 1
    arranged = arrange(log, queries, mode, costs)
    if arranged.forms:
        arranged.commit()
    changes: dict[str, str] = {}
    for each in queries:
        changes[each.name] = compare(log, each)
        form = form_of(log, each)
        for one in inputs_of(form.graph):
            if not one.is_queue:
                log.start_reader(one.reader, one.stream, each.start)
        remember(log, each, form.graph)
    return changes


def common(log: Log, one: Query) -> list[str]:
    """The shared operators of a query."""
    return [name for name in form_of(log, one).graph.order if name not in one.graph.operators]


def place(log: Log, one: Query) -> int:
    """Where a query stands in its stream."""
    [first] = [each.reader for each in inputs_of(form_of(log, one).graph) if not each.is_queue]
    return log.readers()[first].next


def read_all(log: Log, reader: str) -> None:
    stream = log.readers()[reader].stream
    log.advance(reader, stream, log.end(stream), log.reader_state(reader))


def write(log: Log, queue: str, k: int) -> None:
    """Leaves a tuple in a queue, as a step of the engine does."""
    if queue not in log.streams():
        log.declare(queue, QUEUE, kind="queue")
        log.start_reader(queue, queue)
    log.append(queue, pa.table({"k": [k], "v": [2], ARRIVAL: [2]}))


def waiting(log: Log, queue: str) -> list[int]:
    """What waits in a queue."""
    if queue not in log.readers():
        return []
    keys: list[int] = log.read(queue, log.readers()[queue].next, log.end(queue))["k"].to_pylist()
    return keys


def test_new_queries_share_and_nest(log: Log) -> None:
    assert start(log, [A, B, C, D]) == dict.fromkeys("abcd", "new")
    outer, inner = common(log, A)
    assert common(log, B) == [outer, inner]
    assert common(log, C) == [outer]
    assert common(log, D) == []
    assert [form_of(log, A).graph.operators[name].text() for name in (outer, inner)] == ["v > 1", "k > 3"]
    assert form_of(log, A).graph.order[-1] == "a.project"
    assert place(log, A) == 0
    assert sorted(log.readers()) == ["d.filter_1", outer]


def test_a_place_survives_every_change_of_what_is_shared(log: Log) -> None:
    start(log, [A, B, C])
    outer, _ = common(log, A)
    read_all(log, outer)
    cases: list[tuple[list[Query], Mode]] = [
        ([A, B], "always"), ([A, B, C], "never"), ([A], "always"), ([A, B, C, D], "always"), ([A, B, C, D], "auto"),
    ]  # fmt: skip
    for queries, mode in cases:
        changes = start(log, queries, mode)
        assert changes["a"] == "unchanged"
        assert place(log, A) == 2
        assert bool(common(log, A)) == (mode == "always" and len(queries) > 1), (queries, mode)
    # What nobody needs is forgotten.
    assert sorted(log.readers()) == [f"{name}.filter_1" for name in "abcd"]


def test_measured_costs_decide_and_a_small_loss_changes_nothing(log: Log) -> None:
    def measured(cost: float) -> Costs:
        names = [name for one in (A, B) for name in one.graph.operators]
        return dict.fromkeys((*names, *common(log, A)), OperatorFigures(cost, 0.5, 10_000.0))

    start(log, [A, B], "auto", measured(0.3e-6))
    assert common(log, A) == []
    start(log, [A, B], "auto", measured(5e-6))
    assert common(log, A) == common(log, B) != []
    start(log, [A, B], "auto", measured(0.3e-6))
    assert common(log, A) == common(log, B) != [], "they stay together until it is clearly worse"
    start(log, [A, B], "auto", measured(0.1e-6))
    assert common(log, A) == []


def test_queries_at_different_tuples_do_not_share(log: Log) -> None:
    start(log, [A])
    read_all(log, "a.filter_1")
    start(log, [A, B, C])
    assert common(log, A) == []
    assert common(log, B)[:1] == common(log, C) != []
    late = query("d", "SELECT k FROM s WHERE v > 1 AND k > 3", start="latest")
    start(log, [A, B, C, late])
    assert common(log, late) == [], "it stands where a does, but is declared to start elsewhere"


def test_while_tuples_wait_in_between_nobody_joins(log: Log) -> None:
    start(log, [A, B])
    outer, inner = common(log, A)
    read_all(log, outer)
    write(log, inner, 7)
    start(log, [A, B, C])
    assert common(log, A) == common(log, B) == [outer, inner]
    assert common(log, C) == []
    assert waiting(log, inner) == [7]


def test_who_leaves_takes_along_what_waits_for_it(log: Log) -> None:
    start(log, [A, B, C])
    outer, inner = common(log, A)
    read_all(log, outer)
    write(log, inner, 7)
    write(log, inner, 8)
    log.advance(inner, inner, 1)
    write(log, "b.project", 9)
    assert set(start(log, [A, B, C], "never").values()) == {"unchanged"}
    assert {place(log, each) for each in (A, B, C)} == {2}
    assert [waiting(log, f"{name}.filter_2") for name in "ab"] == [[8], [8]]
    assert (waiting(log, "b.project"), waiting(log, "c.project")) == ([9], [])
    assert {outer, inner}.isdisjoint(log.readers())
    assert {outer, inner}.isdisjoint(log.streams())


def test_a_query_that_is_dropped_keeps_its_place_in_its_stream(log: Log) -> None:
    start(log, [A, B])
    outer, inner = common(log, A)
    read_all(log, outer)
    write(log, inner, 7)
    leave(log, "a")
    reader = log.readers()["a.filter_1"]
    assert (reader.stream, reader.next, reader.parked) == ("s", 2, True)
    assert waiting(log, "a.filter_2") == [7]
    assert common(log, B) == [outer, inner]
    assert waiting(log, inner) == [7]
    assert start(log, [A, B])["a"] == "back"
    assert common(log, A) == []


@pytest.mark.parametrize("mode", ["never", "auto", "always"])
def test_a_query_that_changed_is_left_alone(log: Log, mode: Mode) -> None:
    start(log, [A, B, C])
    changed = query("a", "SELECT v FROM s WHERE v > 1 UNION ALL SELECT v FROM s")
    arranged = arrange(log, [changed, B, C], mode, None)
    assert "a" not in {form.name for form in arranged.forms}
    assert compare(log, changed) == "changed"


def test_a_query_that_comes_joins_those_that_stand_where_it_begins(log: Log) -> None:
    start(log, [A, B])
    first = joined(log, C, [A, B], "always", None)
    assert first.graph.order == (common(log, A)[0], "c.project")
    assert joined(log, C, [A, B], "never", None) == C
    read_all(log, common(log, A)[0])
    assert joined(log, C, [A, B], "always", None) == C, "it begins at the oldest tuple"


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


def is_shared(run: Run) -> bool:
    network = run._parts.engine.board.network
    return any(len(network.queries(node.number)) > 1 for node in network.nodes)


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
            assert is_shared(run) == share
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
        assert is_shared(run)
        feed(run)
        run.stop(drain=False)
    with make(tmp_path, "large odd few over under", share=False).start() as run:
        feed(run)
    with make(tmp_path, "large odd few over under", share=False).start() as run:
        assert not is_shared(run)
        feed(run)
        run.drain(120)
        found = answers(run)
    with make(tmp_path / "apart").start() as run:
        push(run, 0, fed)
        run.drain(120)
        assert found == answers(run)


WINDOWS = "SELECT id % 3 AS k, count(*) AS n, sum(size) AS total FROM timed [RANGE 20 s SLIDE 10 s] GROUP BY id % 3"
PAIRS = "SELECT a.id AS id, b.size AS size FROM timed [RANGE 5 s] AS a JOIN timed [RANGE 5 s] AS b ON a.id = b.id + 1"
FOLDS = {
    "windows": WINDOWS,
    "windows_too": WINDOWS,
    "large_windows": f"SELECT k, n FROM ({WINDOWS}) WHERE n > 5",
    "pairs": PAIRS,
    "pairs_too": PAIRS,
    "both": "SELECT id FROM timed WHERE size > 50 UNION ALL SELECT id FROM timed WHERE size < 9",
    "both_too": "SELECT id FROM timed WHERE size > 50 UNION ALL SELECT id FROM timed WHERE size < 9",
    "owned": "SELECT timed.id AS id, name FROM timed JOIN owners ON timed.id % 5 = owners.id",
    "owned_too": "SELECT timed.id AS id, name FROM timed JOIN owners ON timed.id % 5 = owners.id",
}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_windows_joins_unions_lookups_and_outputs_are_shared(tmp_path: Path) -> None:
    def made(folder: str, share: Mode, policy: str) -> App:
        app = App("folds", state=tmp_path / folder, master="local[2]", share=share, policy=policy)
        app.stream("timed", "ts timestamp, id bigint, size int", event_time="ts", lateness="0 s")
        (tmp_path / "owners.csv").write_text("id,name\n1,one\n3,three\n")
        app.table("owners", tmp_path / "owners.csv", schema="id bigint, name string")
        for name, sql in FOLDS.items():
            app.query(name, sql)
        return app

    def feed(run: Run, first: int) -> None:
        times = range(first, first + 100)
        run.push("timed", [{"ts": 1_700_000_000 + at / 2, "id": at, "size": at * 7 % 101} for at in times])

    with made("shared", "always", "baat").start() as run:
        network = run._parts.engine.board.network
        common = {node.operator.tag for node in network.nodes if len(network.queries(node.number)) > 1}
        assert common == {"filter", "project", "panes", "join", "union", "lookup"}
        assert len(network.outputs(network.root("windows"))) == 2
        feed(run, 0)
        run.drain(120)
        run.drop_query("windows_too")
        run.drop_query("pairs")
        feed(run, 100)
        run.add_query("windows_too", WINDOWS)
        run.stop(drain=False)
    with made("shared", "always", "everything").start() as run:
        feed(run, 200)
        run.drain(120)
    with made("shared", "never", "everything").start() as run:
        feed(run, 300)
        run.drain(120)
        found = answers(run)
    with made("apart", "never", "everything").start() as run:
        for first in range(0, 400, 100):
            feed(run, first)
        run.drain(120)
        expected = answers(run)
    assert found == expected
    assert all(expected.values())


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_queries_that_run_share_when_another_one_comes_and_part_when_it_goes(tmp_path: Path) -> None:
    fed = 0

    def operators(run: Run) -> set[str]:
        network = run._parts.engine.board.network
        return {network.nodes[number].name for number in network.of("large")}

    def until(run: Run, shared: bool) -> None:
        """Pushes rows until queries share, or do no more: they are looked at after commits."""
        nonlocal fed
        ends = time.monotonic() + 600
        while ("large.filter_1" not in operators(run)) != shared:
            assert time.monotonic() < ends, "nothing changed"
            push(run, fed, fed + 50)
            fed += 50
            run.drain(120)
            time.sleep(0.1)

    with make(tmp_path, "large", share="always").start() as run:
        run.add_query("odd", SQL["odd"])
        assert not is_shared(run)
        until(run, True)
        assert is_shared(run)
        read = run.meters()["queries"]["large"]["tuples_in"]
        assert read == fed
        push(run, fed, fed + 100)
        fed += 100
        run.drop_query("odd")
        until(run, False)
        run.drain(120)
        found = answers(run)["large"]
        assert run.meters()["queries"]["large"]["tuples_in"] == fed
    with make(tmp_path / "apart", "large").start() as run:
        push(run, 0, fed)
        run.drain(120)
        assert found == answers(run)["large"]
