"""The claims of RT, with one seed."""

from __future__ import annotations

import pytest

from freshet.reproduce import Trial, claims
from freshet.reproduce.rtstream.sampling import SamplingRun, sampling_errors

TRIAL = Trial(quick=True, seeds=1)
"""Claims look at the same simulations, so all tests share one trial."""


@pytest.mark.parametrize("name", [each.id for each in claims("rtstream")])
def test_a_claim_holds(name: str) -> None:
    (found,) = [each for each in claims("rtstream") if each.id == name]
    assert found.check(TRIAL)["ok"]


def test_samples_repeat_exactly() -> None:
    short = SamplingRun("select-join-sum", windows=20)
    assert sampling_errors(short) == sampling_errors(short)


def test_a_sample_of_everything_has_no_error() -> None:
    found = sampling_errors(SamplingRun("select-join-sum", windows=20, sampled=1.0, behind=1.0))
    assert [found.selectivity, found.time] == pytest.approx([0.0, 0.0], abs=1e-12)
