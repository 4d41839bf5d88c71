"""The benchmark of traversals: what it asks, what it watches, and its figures."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from freshet.bench.freshness.queries import SCHEMA
from freshet.bench.stage import Stage
from freshet.bench.traversals import TRAVERSALS, figures_of, traversals
from freshet.bench.traversals.rig import STREAM, Worked, texts
from freshet.model import ARRIVAL, parse_schema
from freshet.policies.sharing import share, shared_by
from freshet.sql import build_query


def worked(jobs: int, latency: float, byte_seconds: float, first: int = 0) -> Worked:
    rows = pa.table({"id": [first, 2, 1], "x": [0.5, 0.25, 0.125], ARRIVAL: [7, 7, 7]})
    return Worked(jobs, latency, byte_seconds, 2.0, {"quick": rows, "slow": rows.slice(1)})


def found(first: int = 0) -> dict[str, list[list[Worked]]]:
    each = {"min_cost": (1, 0.8, 400.0), "min_latency": (2, 0.6, 300.0), "min_memory": (3, 0.7, 200.0)}
    order = [worked(*each[name], first=first if name == "min_memory" else 0) for name in TRAVERSALS]
    return {name: [[one], [one]] for name, one in zip(TRAVERSALS, order, strict=True)}


def test_figures() -> None:
    figures = figures_of(found())
    middles = {name: getattr(value, "middle", value) for name, value in figures.items()}
    assert middles["latency_min_latency_vs_min_cost"] == pytest.approx(0.75)
    assert middles["jobs_min_cost_vs_min_latency"] == 0.5
    assert middles["memory_min_memory_vs_min_latency"] == pytest.approx(2 / 3)
    assert middles["mean_kilobytes_waiting_min_memory"] == pytest.approx(0.1)
    assert middles["answers_equal"] == 1


def test_other_answers_are_no_comparison() -> None:
    with pytest.raises(RuntimeError, match="answers depend"):
        figures_of(found(first=9))


def test_both_queries_share_the_filter_and_nothing_else() -> None:
    schemas = {STREAM: parse_schema(SCHEMA)}
    shared = share([build_query(name, text, schemas) for name, text in texts(2).items()], "always")
    assert list(shared_by(shared).values()) == [("quick", "slow")]
    assert all(len(query.graph.order) == 2 for query in shared)


@pytest.mark.spark
def test_on_spark(spark: object, tmp_path: Path) -> None:
    figures = traversals(Stage(tmp_path), rows=2000, links=1, rounds=1, trains=1, warm_up=1).figures
    assert figures["answers_equal"] == 1
    assert figures["jobs_min_cost_vs_min_latency"] < 1.0
