"""What the engine tells those who watch it."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest

from freshet.engine import Engine, Event, VirtualClock
from freshet.model import Promises
from freshet.policies import Everything
from freshet.simulation.executor import Profile, SimulatedExecutor
from freshet.simulation.log import SimulatedLog
from freshet.simulation.world import SimulatedQuery


class Notes:
    """Writes down what happens."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


def watched(*names: str) -> tuple[Engine, Notes]:
    notes, clock = Notes(), VirtualClock()
    log = SimulatedLog(clock, {"s": np.array([1.0, 2.0])})
    queries = [SimulatedQuery.straight(name, "s", (Profile(0.1),)) for name in names]
    executor = SimulatedExecutor(log, clock, {each: Profile(0.1) for query in queries for each in query.operators})
    engine = Engine(log, executor, clock, Everything(), observers=[notes], stopwatch=clock.now)
    for query in queries:
        engine.add_query(query.query(), {})
    return engine, notes


def test_an_arrival_is_told_with_what_becomes_of_it() -> None:
    engine, notes = watched("q")
    engine.run(1.5)
    assert notes.kinds == ["Added", "Began", "Arrived", "Decided", "Submitted", "Returned", "Committed"]
    arrived, decided, submitted, _, committed = notes.events[2:]
    assert (arrived.stream, arrived.end, arrived.operators) == ("s", 1, (0,))  # type: ignore[attr-defined]
    assert decided.decision.steps[0].nodes == (0,)  # type: ignore[attr-defined]
    assert committed.result.unit is submitted.unit  # type: ignore[attr-defined]
    assert [event.now for event in notes.events] == pytest.approx([0.0, 0.0, 1.0, 1.0, 1.0, 1.1, 1.1])


def test_what_happens_to_a_query_is_told() -> None:
    engine, notes = watched("q", "r")
    engine.set_promises("q", Promises(0.5))
    engine.quarantine("q", "for the test")
    engine.drop_query("r")
    assert notes.kinds == ["Added", "Added", "Promised", "Quarantined", "Dropped"]


def test_a_unit_that_comes_back_undone_is_told() -> None:
    engine, notes = watched("q")
    engine.run(1.05)
    engine.give_up()
    engine.run()
    assert notes.kinds.count("Failed") == 1
    assert notes.kinds.count("Committed") == 2


def test_overhead_is_known_by_the_way_in_which_operators_run() -> None:
    engine, _ = watched("q", "r")
    board = engine.board

    def way(nodes: Collection[int]) -> str:
        return "dear" if 1 in nodes else "cheap"

    board.way = way
    assert board.overhead((0,)) == board.overhead() == 0.0
    board.ran((0,), 0.1)
    assert board.overhead((1,)) == 0.1, "nobody has run that way yet"
    board.ran((0, 1), 0.7)
    assert (board.overhead((0,)), board.overhead((1,))) == (0.1, 0.1), "the first may have been cold"
    board.ran((0, 1), 0.5)
    assert (board.overhead((0,)), board.overhead((1,))) == (0.1, 0.5)
    assert board.overhead() == 0.1, "the least of the first few"
    for _ in range(6):
        board.ran((0, 1), 0.5)
    assert 0.1 < board.overhead() < 0.5


def test_an_engine_that_has_worked_off_what_waits_can_be_run_again() -> None:
    engine, notes = watched("q")
    engine.run(1.0)
    assert "Committed" not in notes.kinds
    engine.work_off()
    assert notes.kinds.count("Committed") == 1
    assert engine.clock.now() == pytest.approx(1.1)  # it did not wait for what comes later
    engine.run(2.5)
    assert notes.kinds.count("Committed") == 2
    assert engine.clock.now() == pytest.approx(2.5)  # this run does not end where nothing waits
