"""The claims of MAV §5, with one seed."""

from __future__ import annotations

import pytest

from freshet.reproduce import Trial, claims
from freshet.reproduce.mavstream.runs import LOAD, MavRun, bed, simulate

TRIAL = Trial(quick=True, seeds=1)
"""Claims look at the same simulations, so all tests share one trial."""


@pytest.mark.parametrize("name", [each.id for each in claims("mavstream")])
def test_a_claim_holds(name: str) -> None:
    (found,) = [each for each in claims("mavstream") if each.id == name]
    assert found.check(TRIAL)["ok"]


def test_less_memory_is_expected_after_the_change() -> None:
    run = MavRun(bed(TRIAL, LOAD), "latency and memory", 30.0)
    memory = run.expected.get("memory")
    assert memory is not None
    assert [memory.at(age) for age in (0.0, 29.0, 30.0, 60.0)] == pytest.approx([2e5, 2e5, 2e4, 2e4])


def test_a_simulation_repeats_exactly() -> None:
    short = MavRun(bed(TRIAL, LOAD), "latency", 30.0)
    # As text: what an interval has no figure for is NaN, and NaN equals nothing.
    assert repr(simulate(short)) == repr(simulate(short))
