"""The study of the set step, on a small grid."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.bench import set_step as module
from freshet.bench.stage import open_stage


def test_the_set_step_is_near_the_better_extreme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OVERHEADS", (0.0, 0.1, 1.0))
    monkeypatch.setattr(module, "LOADS", (0.3, 0.7))
    with open_stage(tmp_path) as stage:
        figures = module.set_step(stage, queries=30, tuples=150).figures
    assert figures["staleness_set_0_0.3"] == figures["staleness_one_0_0.3"]
    assert figures["worst_vs_best_extreme"] < 1.2  # small and short: the full grid is held to 1.05
    assert figures["gain_small_overhead"] > 0.1
