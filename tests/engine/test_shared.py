"""Operators that queries share: one node, whose readers each get all of what it gives out, whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from freshet.engine.events import Event, Held
from freshet.model import Curve, Decision, Promises, Step, UnitResult, View
from freshet.policies import Everything, Policy
from freshet.simulation.executor import Profile, SimulatedExecutor
from freshet.simulation.log import SimulatedLog
from freshet.simulation.world import SimulatedQuery, World

COMMON, ONE, TWO = 0, 1, 2
"""The shared operator, and those that read it."""


class Given(Policy):
    """Runs the steps that it was given, one after the other, whenever something waits; then everything."""

    name = "given"

    def __init__(self, *steps: tuple[int, ...]) -> None:
        self.steps = list(steps)

    def decide(self, view: View) -> Decision:
        if self.steps:
            return Decision.run(Step(self.steps.pop(0)))
        return Everything().decide(view)


class Collecting:
    """An observer that keeps what is told of holding back."""

    def __init__(self, told: list[Held]) -> None:
        self._told = told

    def tell(self, event: Event) -> None:
        if isinstance(event, Held):
            self._told.append(event)


def world(policy: Policy | None = None, tuples: int = 20, **options: object) -> World:
    profiles = (Profile(0.1, 0.5), Profile(0.1))
    queries = [SimulatedQuery.straight(name, "s", profiles, shared=1) for name in ("one", "two")]
    return World({"s": np.zeros(tuples)}, queries, policy or Everything(), **options)  # type: ignore[arg-type]


def answers(one: World, name: str) -> list[int]:
    one.log.start_reader("test", name, "earliest")
    found: list[int] = one.log.tuples(one.log.train(name, 0, one.log.end(name)))[1].tolist()
    return found


EXPECTED = 10


@pytest.fixture
def expected() -> list[int]:
    one = world()
    one.run()
    assert answers(one, "one") == answers(one, "two")
    assert len(answers(one, "one")) == EXPECTED
    return answers(one, "one")


def on_results(monkeypatch: pytest.MonkeyPatch, change: Callable[[UnitResult], UnitResult]) -> None:
    finished = SimulatedExecutor.finished

    def changed(self: SimulatedExecutor) -> Sequence[UnitResult]:
        return [change(result) for result in finished(self)]

    monkeypatch.setattr(SimulatedExecutor, "finished", changed)


def test_there_is_one_node_with_two_readers() -> None:
    board = world().engine.board
    assert [operator.kind for operator in board.operators] == ["filter", "filter", "filter"]
    common = board.operators[COMMON]
    assert (common.readers, common.queries, common.outputs) == ((ONE, TWO), (0, 1), ())
    assert [board.operators[number].inputs for number in (ONE, TWO)] == [(COMMON,), (COMMON,)]


def test_it_runs_once_and_counts_for_both() -> None:
    one = world()
    one.run()
    snapshot = one.engine.snapshot()
    assert one.engine.board.operators[COMMON].statistics.rows_in == 20
    for query in snapshot["queries"].values():
        assert (query["tuples_in"], query["tuples_out"]) == (20, EXPECTED)


def test_a_reader_that_is_not_in_the_step_finds_all_in_its_queue(expected: list[int]) -> None:
    one = world(Given((COMMON, ONE)))
    one.run(3.5)
    [queue] = one.engine.board.operators[TWO].edges
    assert (answers(one, "one"), queue.end) == (expected, EXPECTED)
    assert answers(one, "two") == []
    one.run()
    assert answers(one, "two") == expected


def test_what_waits_inside_a_step_runs_first(expected: list[int]) -> None:
    one = world(Given((COMMON,), (COMMON, ONE), (COMMON, ONE, TWO)), most_rows=5)
    one.run()
    assert answers(one, "one") == answers(one, "two") == expected


def test_a_reader_that_is_held_finds_all_in_its_queue(expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    one = world()

    def held(self: SimulatedLog) -> Mapping[str, str]:
        return {"two": "its sink is slow"} if one.engine.clock.now() < 50.0 else {}

    monkeypatch.setattr(SimulatedLog, "held", held)
    one.run(49.0)
    assert (answers(one, "one"), answers(one, "two")) == (expected, [])
    assert one.log.end(one.engine.board.operators[TWO].node.name) == EXPECTED
    one.run()
    assert answers(one, "two") == expected


def test_a_queue_that_is_over_its_bound_keeps_the_operator_in_front_from_running(
    expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world(most_rows=5)
    queue = one.engine.board.operators[TWO].node.name

    def held(self: SimulatedLog) -> Mapping[str, str]:
        if one.engine.clock.now() >= 50.0:
            return {}
        return {"two": "its sink is slow"} | ({queue: "it is full"} if self.end(queue) >= 4 else {})

    monkeypatch.setattr(SimulatedLog, "held", held)
    told: list[Held] = []
    one.engine.observers.append(Collecting(told))
    one.run(49.0)
    assert 4 <= one.log.end(queue) < EXPECTED
    assert not one.engine.board.operators[COMMON].may_run
    slow, full = Held(0.0, "two", ("two",), "its sink is slow"), Held(0.0, queue, ("one", "two"), "it is full")
    assert [replace(event, now=0.0) for event in told] == [slow, full]
    assert one.engine.snapshot()["queries"]["one"]["state"] == "active", "it goes on with what waits behind the queue"
    one.run()
    assert answers(one, "one") == answers(one, "two") == expected
    goes_on = {(event.stream, event.queries, event.reason) for event in told[2:]}
    assert goes_on == {("two", ("two",), None), (queue, ("one", "two"), None)}


def test_a_reader_that_raises_loses_nothing_and_keeps_nobody_back(
    expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world(most_rows=5)

    def failing(result: UnitResult) -> UnitResult:
        chains = (replace(each, failure="it raised") if "two" in each.chain.writes else each for each in result.chains)
        return replace(result, chains=tuple(chains))

    on_results(monkeypatch, failing)
    one.run()
    assert (answers(one, "one"), answers(one, "two")) == (expected, [])
    queries = one.engine.snapshot()["queries"]
    assert (queries["two"]["state"], queries["two"]["waiting"]) == ("quarantined", EXPECTED)
    assert one.engine.snapshot()["trouble"] is None
    assert one.engine.clock.now() < 10.0, "it was nobody's fault, and nobody waits"


def test_where_the_shared_operator_raises_all_its_queries_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world()
    on_results(
        monkeypatch, lambda result: replace(result, chains=tuple(replace(each, failure="no") for each in result.chains))
    )
    one.run()
    assert {query["reason"] for query in one.engine.snapshot()["queries"].values()} == {"no"}
    assert one.engine.board.operators[COMMON].edges[0].cursor == 0


def test_a_reader_that_is_dropped_while_it_runs_takes_nothing_with_it(expected: list[int]) -> None:
    one = world()
    one.run(1.0)
    assert one.engine.board.operators[COMMON].running
    one.engine.drop_query("two")
    one.run()
    assert answers(one, "one") == expected
    assert answers(one, "two") == []


def test_a_reader_that_comes_while_it_runs_misses_nothing(expected: list[int]) -> None:
    one = world()
    one.run(1.0)
    assert one.engine.board.operators[COMMON].running
    third = SimulatedQuery.straight("three", "s", (Profile(0.1, 0.5), Profile(0.1)), shared=1)
    one.add(third)
    one.run()
    assert answers(one, "one") == answers(one, "two") == answers(one, "three") == expected


def test_parts_that_failed_together_run_apart_until_one_has_run(
    expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world(most_rows=5)
    seen: list[tuple[int, ...]] = []

    def together(result: UnitResult) -> UnitResult:
        seen.append(tuple(len(chain.trains) for chain in result.unit.chains))
        if len(seen) > 1:
            return result
        return replace(result, retry="a worker died", apart=(0, 1, 2), chains=(), files=())

    on_results(monkeypatch, together)
    one.run()
    assert seen[0] == (1, 0, 0), "one train, and two chains that read what the first gives out"
    assert seen[1] == (1,)
    assert (1, 0, 0) in seen[2:]
    assert answers(one, "one") == answers(one, "two") == expected


def test_a_step_that_binds_to_nothing_keeps_nobody_waiting(expected: list[int]) -> None:
    one = world(Given((COMMON,), (COMMON,), (ONE,), (ONE,)))
    one.run()
    assert one.engine.clock.now() == pytest.approx(20 * 0.1 + 2 * EXPECTED * 0.1)
    assert answers(one, "two") == expected


def test_a_policy_whose_steps_never_bind_is_asked_no_more_than_twice_in_a_row() -> None:
    asked: list[float] = []

    class Stubborn(Policy):
        name = "stubborn"

        def decide(self, view: View) -> Decision:
            asked.append(view.now)
            return Decision.run(Step((ONE,) if view.now < 0.95 else (COMMON, ONE, TWO)))

    one = world(Stubborn())
    one.run()
    assert max(Counter(asked).values()) == 2
    assert len(asked) == 2 * 10 + 1, "every tenth of a second"


def test_its_promises_are_those_of_its_queries() -> None:
    curve = Curve.deadline(10.0)
    profiles = (Profile(0.1), Profile(2.0))
    first = SimulatedQuery.straight("first", "s", profiles, weight=0.25, curve=curve, shared=1)
    second = SimulatedQuery.straight("second", "s", (Profile(0.1), Profile(5.0)), weight=0.5, curve=curve, shared=1)
    one = World({"s": np.zeros(1)}, [first, second], Everything())
    board = one.engine.board
    assert board.operators[COMMON].promises == Promises(0.5, Curve.total([(curve, 2.0), (curve, 5.0)]))
    assert board.operators[ONE].promises == Promises(0.25, curve)
    one.engine.set_promises("second", Promises(0.75))
    assert board.operators[COMMON].promises == Promises(0.75, Curve.total([(curve, 2.0)]))
    one.engine.set_promises("second", Promises(0.75, validity=5.0))
    assert board.operators[COMMON].promises.validity == 5.0, "the other query takes tuples of any age"
    one.engine.set_promises("first", Promises(0.25, curve, validity=3.0))
    assert board.operators[COMMON].promises.validity == 3.0
    one.engine.drop_query("second")
    assert board.operators[COMMON].promises == Promises(0.25, curve, validity=3.0)


def test_its_promises_follow_the_costs_that_are_learned() -> None:
    curve = Curve.deadline(10.0)
    queries = [
        SimulatedQuery.straight(name, "s", (Profile(0.1), Profile(2.0)), curve=curve, shared=1) for name in ("a", "b")
    ]
    one = World({"s": np.arange(0.0, 40.0, 10.0)}, queries, Everything(), known=False)
    before = one.engine.board.operators[COMMON].promises.curve
    one.run()
    assert before != one.engine.board.operators[COMMON].promises.curve == Curve.total([(curve, 2.0)] * 2)


def test_the_curve_of_deeply_shared_work_is_shifted_by_all_that_is_behind_it() -> None:
    """Three shared operators, the last of which gives the output of one query and leads to that of another."""
    curve = Curve.deadline(10.0)
    common = {"x": Profile(0.1), "y": Profile(1.0, 0.5), "z": Profile(3.0)}
    inputs = {"x": ("s",), "y": ("x",), "z": ("y",)}
    short = SimulatedQuery("short", common, inputs, Promises(curve=curve))
    long = SimulatedQuery("long", common | {"w": Profile(4.0)}, inputs | {"w": ("z",)}, Promises(curve=curve))
    board = World({"s": np.zeros(1)}, [short, long], Everything()).engine.board
    # From y on a tuple counts half, and z lets all of them through.
    rests = {"x": (2.5, 4.5), "y": (3.0, 7.0), "z": (0.0, 4.0)}
    for operator in board.operators[:3]:
        expected = Curve.total([(curve, rest) for rest in rests[operator.node.name]])
        assert operator.promises.curve == expected, operator.node.name
    assert board.operators[2].outputs == (0,)
