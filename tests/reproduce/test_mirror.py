"""The claims of CAR chapter 2, with one seed, without the big case."""

from __future__ import annotations

import pytest

from freshet.reproduce import Trial, claims
from freshet.reproduce.mirror.runs import ALIGNMENTS, SizesRun, with_sizes

SMALL = [each.id for each in claims("mirror") if "2.7" not in each.id and "2.8" not in each.id]


@pytest.mark.parametrize("name", SMALL)
def test_a_claim_holds(name: str) -> None:
    (found,) = [each for each in claims("mirror") if each.id == name]
    assert found.check(Trial(quick=True, seeds=1))["ok"]


@pytest.mark.parametrize("sizes", ALIGNMENTS)
def test_a_size_blind_plan_loses_at_equal_bandwidth(sizes: str) -> None:
    found = with_sizes(SizesRun(sizes))  # type: ignore[arg-type]
    assert found.scaled < found.aware
    assert (found.cost < 0.5) == (sizes == "aligned")
