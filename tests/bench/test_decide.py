"""The benchmark of decisions gives the figures that it names."""

from __future__ import annotations

from pathlib import Path

from freshet.bench.decide import decide
from freshet.bench.stage import open_stage


def test_every_policy_and_number_has_a_figure(tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage:
        result = decide(stage, policies="fas-mcq,rr", queries="10,40", decisions=200)
    assert set(result.spread) == {f"decide_us_{name}_{count}" for name in ("fas-mcq", "rr") for count in (10, 40)}
    assert set(result.figures) == {*result.spread, "decide_growth_fas-mcq", "decide_growth_rr"}
    assert all(value > 0 for value in result.figures.values())
