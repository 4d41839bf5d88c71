"""A reader that fails: what it was given waits in its queue, nobody runs again, and it goes on from there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from tests.engine.kit import SCHEMA, STREAMS, Application

from freshet.app.declared.checking import Catalog
from freshet.app.declared.spec import QuerySpec
from freshet.engine.events import Committed, Event, Failed, Submitted
from freshet.testing import Faults

SCHEMAS = dict.fromkeys(STREAMS, SCHEMA)
WINDOW = "[RANGE 10 SECONDS SLIDE 10 SECONDS]"
COUNT = f"SELECT k, count(*) AS n, window_end FROM s {WINDOW} WHERE v > 0 GROUP BY k"
UNION = "SELECT ts, k, v FROM s WHERE v > 0 UNION ALL SELECT ts, k, v FROM t WHERE v > 1"
JOIN = "SELECT s.k AS k, s.v AS a, t.v AS b FROM s [RANGE 5 SECOND] JOIN t [RANGE 5 SECOND] ON s.k = t.k WHERE s.v > 0"

READERS: Mapping[str, tuple[str, str]] = {
    "behind a filter": ("SELECT k, v FROM s WHERE v > 0", "SELECT v FROM s WHERE v > 0"),
    "behind a fold": (COUNT, COUNT),
    "behind a union": (UNION, UNION),
    "behind a join": (JOIN, JOIN),
    "with a fold of its own": (COUNT, COUNT.replace("count(*)", "sum(v)")),
    "with a union of its own": (UNION, UNION.replace("UNION ALL", "UNION ALL SELECT ts, k, v FROM u UNION ALL")),
    "with a join of its own": (JOIN, JOIN.replace("5 SECOND", "7 SECOND")),
    "several chains of it": (UNION, "SELECT k FROM s WHERE v > 0 UNION ALL SELECT k FROM t WHERE v > 1"),
}


class Notes:
    """Counts what becomes of units."""

    def __init__(self) -> None:
        self.events: Counter[type[Event]] = Counter()

    def tell(self, event: Event) -> None:
        self.events[type(event)] += 1


@pytest.fixture
def start() -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda *given, **options: stack.enter_context(Application(*given, **options))


def feed(app: Application, first: int) -> None:
    for second in range(first, first + 40, 4):
        for number, stream in enumerate("stu"):
            app.append(stream, [(second + number, "ab"[second % 8 // 4], second % 3)], arrival=second)


def close(app: Application) -> None:
    for stream in "stu":
        app.heartbeat(stream, 1000)
    app.drain()


@pytest.mark.parametrize("case", READERS)
def test_it_finds_what_it_was_given_in_its_queue(start: Any, case: str) -> None:
    texts = dict(zip(("one", "two"), READERS[case], strict=True))
    calm = start(texts, share=True)
    faults, notes = Faults(), Notes()
    app = start(texts, share=True, faults=faults)
    assert any(len(operator.queries) == 2 for operator in app.engine.board.operators), "they share something"
    app.engine.observers.append(notes)
    for each in (calm, app):
        feed(each, 0)
        each.run()
    faults.raise_in("two")
    for each in (calm, app):
        feed(each, 40)
        each.drain()
    assert list(app.stopped) == ["two"]
    assert faults.happened[0] == "two raised"
    assert notes.events[Failed] == 0, "nothing runs again"
    assert notes.events[Submitted] == notes.events[Committed]
    assert app.engine.snapshot()["queries"]["two"]["waiting"] > 0
    faults.end()
    app.crash()  # the query is put back
    for end in (lambda each: each.run(), close):
        for each in (calm, app):
            end(each)
        for query in texts:
            assert calm.answers(query)
            assert app.answers(query) == calm.answers(query)


def test_its_queue_says_how_far_event_time_is(start: Any) -> None:
    texts = dict(zip(("one", "two"), READERS["with a fold of its own"], strict=True))
    app = start(texts, share=True, faults=Faults().raise_in("two"))
    app.append("s", [(1, "a", 1), (60, "b", 1)])
    app.drain()
    [queue] = [edge.edge.stream for state in app.engine.board.operators for edge in state.edges if edge.waiting]
    assert app.log.end(queue) == 2
    assert app.log.watermark(queue) == 58_000_000  # the lateness is 2 s


def test_a_query_that_is_dropped_while_it_runs_is_left_out(start: Any) -> None:
    texts = dict(zip(("one", "two"), READERS["behind a filter"], strict=True))
    app, notes = start(texts, share=True), Notes()
    app.engine.observers.append(notes)
    app.append("s", [(1, "a", 1), (2, "b", 1)])
    app.turn()
    assert notes.events[Submitted] == 1
    app.engine.drop_query("two")
    app.drain()
    assert (notes.events[Submitted], notes.events[Failed]) == (1, 0)
    assert (len(app.tuples("one")), app.tuples("two")) == (2, [])


def test_one_that_is_held_finds_it_there_too(start: Any) -> None:
    texts = dict(zip(("one", "two"), READERS["with a fold of its own"], strict=True))
    calm, app, notes = start(texts, share=True), start(texts, share=True), Notes()
    app.engine.observers.append(notes)
    app.hold(["two"])
    for each in (calm, app):
        feed(each, 0)
    while any(operator.may_run and operator.pending for operator in app.engine.board.operators):
        app.turn()
    assert (app.tuples("one"), app.tuples("two")) == (calm.tuples("one"), [])
    app.hold(())
    for each in (calm, app):
        close(each)
    assert notes.events[Failed] == 0
    assert [app.answers(query) for query in texts] == [calm.answers(query) for query in texts]


def test_one_that_is_put_back_while_others_run_goes_on_with_it(start: Any) -> None:
    texts = dict(zip(("one", "two"), READERS["behind a filter"], strict=True))
    faults = Faults().raise_in("two")
    app = start(texts, share=True, faults=faults)
    query = app.engine.board.queries[1].query
    feed(app, 0)
    app.drain()
    assert list(app.stopped) == ["two"]
    faults.end()
    app.engine.drop_query("two")
    app.engine.add_query(query, {})
    app.drain()
    assert len(app.tuples("two")) == len(app.tuples("one")) > 0


def held(app: Application) -> dict[str, int]:
    """How much is kept of queries, whether they are there or not."""
    board, queues = app.engine.board, app.queues
    return {
        "nodes": len(board.network.nodes),
        "operators": len(board.operators),
        "queries": len(board.queries),
        "edges": sum(len(operator.edges) for operator in board.operators),
        "read": sum(map(len, board.readers.values())) + len(board.readers),
        "coming": len(queues._coming),
        "columns": len(app.executor.columns.inputs) + len(app.executor.columns.behind),
        "stopped": len(board.stopped) + len(board.shapes),
    }


def test_what_was_dropped_is_held_no_more(start: Any) -> None:
    app = start({"one": COUNT, "two": UNION}, share=True)
    query = {name: app.engine.board.queries[app.engine.board.numbers[name]].query for name in ("one", "two")}
    before = held(app)
    for number in range(200):
        name = ("one", "two")[number % 2]
        app.append("s", [(number, "a", 1)], arrival=number + 1)
        if number % 3 == 0:
            app.turn()  # a unit of it may be on its way
        if number % 5 == 0:
            app.engine.quarantine(name, "for once")
        app.engine.drop_query(name)
        if number % 7 == 0:
            app.turn()
        app.engine.add_query(query[name], SCHEMAS)
        app.engine.turn()
    app.drain()
    app.turn()
    after = held(app)
    assert all(after[what] <= 2 * before[what] + 2 for what in before), (before, after)


def test_queries_of_ever_other_names_leave_nothing_behind(start: Any) -> None:
    app = start({"one": COUNT})
    readable, seen = Catalog({name: spec.stream for name, spec in app.app.streams.items()}, {}), []
    for number in range(30):
        name = f"q{number}"
        app.log.declare(name, kind="output")
        app.engine.add_query(readable.build(QuerySpec(name, (COUNT, UNION, JOIN)[number % 3])), SCHEMAS)
        app.drain()
        app.engine.drop_query(name)
        seen.append(held(app))
    assert seen[5] == seen[-1]
