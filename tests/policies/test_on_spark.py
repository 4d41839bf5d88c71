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


def test_superboxes_of_overlapping_queries(tmp_path: Path) -> None:
    """Queries that share a filter and one that joins: superboxes by curves, spanners, schedules of any size."""
    kept = [id_ for id_ in range(ROWS) if id_ % 101 > 50]
    expected = {
        "tight": Counter((id_,) for id_ in kept if id_ % 3 == 1),
        "loose": Counter((id_ % 101 * 2,) for id_ in kept),
        "pairs": Counter((id_,) for id_ in range(ROWS) if id_ % 101 == 7),
    }
    for policy in ("superbox-slope-slack(2)", "top-k-spanner(3)", "slope-slack-push(auto)"):
        app = App("overlap", state=tmp_path / policy, master="local[2]", policy=policy, share="always")
        app.stream("packets", "id bigint, size int")
        app.stream("sizes", "size int")
        curve: list[tuple[str | float, float]] = [(0, 1.0), ("2 s", 1.0), ("4 s", 0.0)]
        app.query("tight", "SELECT id FROM packets WHERE size > 50 AND id % 3 = 1", curve=curve)
        app.query("loose", "SELECT size * 2 AS twice FROM packets WHERE size > 50", curve=[(0, 1.0), ("9 s", 0.0)])
        app.query(
            "pairs",
            "SELECT p.id FROM packets [RANGE 1 hour] p JOIN sizes [RANGE 1 hour] s ON p.size = s.size",
            curve=curve,
        )
        with app.start() as run:
            run.push("sizes", [{"size": 7}])
            for first in range(0, ROWS, ROWS // 4):
                run.push("packets", [{"id": id_, "size": id_ % 101} for id_ in range(first, first + ROWS // 4)])
            run.drain()
            for name, rows in expected.items():
                found = Counter(tuple(row.values()) for row in run.read(name).to_pylist())
                assert found == rows, (policy, name)
            assert run.report()["queries"]["tight"]["qos"] is not None
