"""The benchmark of decisions gives the figures that it names."""

from __future__ import annotations

from pathlib import Path

from freshet.bench.decide import decide
from freshet.bench.decide.schedules import SCHEDULERS, schedule_figures
from freshet.bench.stage import open_stage


def test_every_policy_and_number_has_a_figure(tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage:
        result = decide(stage, policies="fas-mcq,rr", queries="10,40", boxes="", decisions=200)
    assert set(result.spread) == {f"decide_us_{name}_{count}" for name in ("fas-mcq", "rr") for count in (10, 40)}
    assert set(result.figures) == {*result.spread, "decide_growth_fas-mcq", "decide_growth_rr"}
    assert all(value > 0 for value in result.figures.values())


def test_every_scheduler_has_figures_per_decision_and_per_tuple(tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage:
        figures = schedule_figures(stage, [100], seconds=0.3, repeats=1)
    names = {f"decide_us_{each}{name}_100_boxes" for name in SCHEDULERS for each in ("", "per_tuple_")}
    assert set(figures) == {*names, "decide_share_bucketing_100"}
    assert all(value.middle > 0 for value in figures.values())
