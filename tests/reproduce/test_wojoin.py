"""The claims of WU ch. 3 on one join of three streams, with one seed."""

from __future__ import annotations

import pytest

from freshet.reproduce import Trial, claims

TRIAL = Trial(quick=True, seeds=1)


@pytest.mark.parametrize("name", [each.id for each in claims("wojoin")])
def test_a_claim_holds(name: str) -> None:
    (found,) = [each for each in claims("wojoin") if each.id == name]
    checked = found.check(TRIAL)
    assert checked["ok"], checked


def test_the_published_buffers_are_too_small() -> None:
    (found,) = [each for each in claims("wojoin") if each.id == "wojoin.fig3.7.bound"]
    assert found.check(TRIAL)["readings"]["Eq. 3.7 as published"] < 1.0
