"""Claims: registered once, measured over seeds, judged by their band."""

from __future__ import annotations

import json

import pytest

from freshet.model import UserError
from freshet.reproduce import Claim, Measured, Trial, claims, papers, run
from freshet.reproduce import registry as registry_module
from freshet.reproduce.registry import claim


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Claim]]:
    known: dict[str, list[Claim]] = {}
    monkeypatch.setattr(registry_module, "CLAIMS", known)
    return known


def made(values: list[float], low: float | None, high: float | None, **readings: list[float]) -> Claim:
    return Claim("x.y", "X §1", 0.4, "counts", low, high, lambda trial: Measured(values, readings))


def test_the_mean_over_seeds_decides() -> None:
    result = made([0.1, 0.3], 0.0, 0.25, other=[1.0, 2.0]).check(Trial())
    assert result["ours"] == pytest.approx(0.2)
    assert result["spread"] == [0.1, 0.3]
    assert result["ok"] is True
    assert result["readings"] == {"other": 1.5}


@pytest.mark.parametrize(("low", "high"), [(0.21, None), (None, 0.19), (0.0, 0.1)])
def test_outside_of_the_band_a_claim_fails(low: float | None, high: float | None) -> None:
    assert made([0.2], low, high).check(Trial())["ok"] is False


def test_what_cannot_be_measured_neither_holds_nor_fails() -> None:
    skipped = Claim("x.y", "X §1", "a", "b", 0.0, None, lambda trial: Measured((), skipped="no data"))
    result = skipped.check(Trial())
    assert (result["ok"], result["ours"], result["skipped"]) == (None, None, "no data")
    json.dumps(result)


def test_a_claim_must_be_able_to_fail(own: dict[str, list[Claim]]) -> None:
    with pytest.raises(ValueError, match="accepts everything"):
        claim("x.y", source="X", published=1.0, how="so")
    claim("x.y", source="X", published=1.0, how="so", low=0.0)(lambda trial: Measured([1.0]))
    assert [each.id for each in own["x"]] == ["x.y"]


def test_every_paper_has_claims_with_ids_of_their_own() -> None:
    for paper in papers():
        ids = [each.id for each in claims(paper)]
        assert len(ids) == len(set(ids)) > 0
        assert all(name.startswith(f"{paper}.") for name in ids)


def test_an_unknown_paper_is_said() -> None:
    with pytest.raises(UserError, match="there are no claims of 'fass'"):
        run("fass")


def test_a_trial_runs_nothing_twice() -> None:
    calls = []

    def square(number: int) -> int:
        calls.append(number)
        return number * number

    trial = Trial()
    assert trial.map(square, [2, 3, 2]) == [4, 9, 4]
    assert trial.map(square, [3]) == [9]
    assert calls == [2, 3]


def test_a_trial_uses_processes_where_allowed() -> None:
    assert Trial(jobs=2).map(abs, [-1, -2, -3]) == [1, 2, 3]
