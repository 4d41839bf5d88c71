"""Deadlines of periodic queries: what is feasible is what earliest deadline first can do (RT §4.3)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Promises
from freshet.quality.feasibility import QueryDemand, Situation, Verdict, deadlines

TICK = 0.05
"""Periods, deadlines and work are multiples of it, so that a simulation by ticks is exact."""


def periodic(name: str, period: float, deadline: float, seconds: float | None) -> QueryDemand:
    return QueryDemand(name, 10.0, 0.0, Promises(period=period, deadline=deadline), instance=seconds)


def verdicts_of(queries: list[QueryDemand], overhead: float = 0.0, workers: int = 1) -> list[Verdict]:
    return list(deadlines(Situation(tuple(queries), overhead, workers)))


def in_time(tasks: list[tuple[int, int, int]]) -> bool:
    """Whether earliest deadline first, in ticks, answers every instance in time: (period, deadline, work) of each, all
    released at 0. Two rounds of the longest common period show it."""
    left: list[list[int]] = []
    for now in range(2 * 120):
        for period, deadline, work in tasks:
            if now % period == 0:
                left.append([now + deadline, work])
        if any(due <= now for due, _ in left):
            return False
        if left:
            first = min(left)
            first[1] -= 1
            if not first[1]:
                left.remove(first)
    return True


TASK = st.tuples(st.sampled_from([10, 20, 30, 40, 60]), st.integers(1, 60), st.integers(1, 12)).filter(
    lambda task: task[2] <= task[1] <= task[0]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(TASK, min_size=1, max_size=4))
def test_feasible_means_that_earliest_deadline_first_is_in_time(tasks: list[tuple[int, int, int]]) -> None:
    queries = [
        periodic(f"q{at}", period * TICK, deadline * TICK, work * TICK)
        for at, (period, deadline, work) in enumerate(tasks)
    ]
    found = verdicts_of(queries)
    # The least factor that is looked at is a thousandth apart: right at the edge both answers are right.
    if not any(0.99 < each.room < 1.01 for each in found):  # type: ignore[operator]
        assert all(each.feasible != "no" for each in found) == in_time(tasks)


def test_the_room_is_the_factor_that_just_fits() -> None:
    queries = [periodic("a", 1.0, 0.5, 0.2), periodic("b", 1.0, 1.0, 0.1)]
    rooms = [each.room for each in verdicts_of(queries)]
    assert rooms == pytest.approx([2.5, 1 / 0.3], rel=0.01)  # a: 0.5 / 0.2; both within a second: 1 / 0.3
    assert verdicts_of([periodic("a", 1.0, 0.5, 0.49 * 0.99)])[0].feasible == "barely"
    assert verdicts_of([periodic("a", 1.0, 0.5, 0.51)])[0].feasible == "no"


def test_a_deadline_that_cannot_be_kept_is_not_held_against_others() -> None:
    """What is due first runs first, so it counts for the others; but they have time for it."""
    tight, easy = verdicts_of([periodic("tight", 1.0, 0.1, 0.2), periodic("easy", 1.0, 0.6, 0.2)])
    assert (tight.feasible, easy.feasible) == ("no", "yes")
    assert easy.room == pytest.approx(1.5, rel=0.01)


def test_overhead_and_workers_count() -> None:
    queries = [periodic(name, 1.0, 0.5, 0.2) for name in "ab"]
    assert verdicts_of(queries)[0].feasible == "yes"
    assert verdicts_of(queries, overhead=0.1)[0].feasible == "no"
    assert verdicts_of(queries, overhead=0.1, workers=4)[0].feasible == "yes"


def test_what_was_never_answered_is_unknown_and_does_not_count() -> None:
    known, unknown = verdicts_of([periodic("a", 1.0, 0.5, 0.2), periodic("b", 1.0, 0.5, None)])
    assert (known.feasible, unknown.feasible) == ("yes", "unknown")
    assert unknown.reason == "no instance of it has been answered yet"


def test_advice_names_what_would_help() -> None:
    [verdict] = verdicts_of([periodic("a", 1.0, 0.5, 0.8)])
    assert (
        verdict.advice == 'give it a longer deadline or period, or let overload have "thin", so that its level may fall'
    )
    assert "800 ms of work are due 500 ms after common releases" in verdict.reason
