"""Superboxes and boxes on Spark: one fused job or one for each operator, with the same answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from freshet.app import App
from freshet.quality.snapshots import EngineSnapshot

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

ROWS = 2000


def run_with(policy: str, folder: Path) -> tuple[dict[str, Counter[tuple[Any, ...]]], EngineSnapshot]:
    """The answers of two queries under a policy, and the meters."""
    app = App("boxes", state=folder / policy, master="local[2]", policy=policy)
    app.stream("packets", "id bigint, size int")
    app.query("large", "SELECT id, size FROM packets WHERE size > 50 AND id % 3 = 1")
    app.query("odd", "SELECT size * 2 AS twice FROM packets WHERE size % 2 = 1 AND size < 90")
    with app.start() as run:
        # At once: how many units a policy makes of several pushes depends on when they come.
        run.push("packets", [{"id": id_, "size": id_ % 101} for id_ in range(ROWS)])
        run.drain()
        rows = {name: Counter(tuple(row.values()) for row in run.read(name).to_pylist()) for name in ("large", "odd")}
        return rows, run.meters()


def test_same_answers_and_fewer_jobs(tmp_path: Path) -> None:
    expected = {
        "large": Counter((id_, id_ % 101) for id_ in range(ROWS) if id_ % 101 > 50 and id_ % 3 == 1),
        "odd": Counter((id_ % 101 * 2,) for id_ in range(ROWS) if id_ % 101 % 2 == 1 and id_ % 101 < 90),
    }
    units = {}
    for policy in ("aaat-min-cost", "baat", "slope-slack-fused", "bucketing-push", "segment(200)", "share-of-time"):
        rows, meters = run_with(policy, tmp_path)
        assert rows == expected, policy
        units[policy] = meters["workers"]["units"]
    assert units["aaat-min-cost"] < units["baat"]
