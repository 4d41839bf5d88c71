"""Units whose chains read each other: shared work runs once, forms may change in the middle, and failures find those
whose fault they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness, output_train, with_arrivals, write_train

from freshet.model import Chain, Filter, Operator, Project, Query, QueryGraph, Train, Unit, UnitResult, parse_schema
from freshet.spark.driver.running import Running
from freshet.spark.driver.suspects import Suspects

pytestmark = pytest.mark.spark

SCHEMA = parse_schema("k bigint, name string")
COMMON = Filter("shared:1", "k % 2 = 0")
INITCAP = (("n", "initcap(name)"), ("k", "k"))


def straight(name: str, *operators: Operator) -> Query:
    return Query(name, "", QueryGraph.straight("s", operators))


def install(harness: Harness, *queries: Query, fail: frozenset[str] = frozenset()) -> dict[str, int]:
    """Installs queries; returns their nodes by name."""
    harness.install({"s": SCHEMA}, *queries, fail=fail)
    return {node.name: node.number for node in harness.network.nodes}


def train(harness: Harness, rows: int = 10) -> Train:
    table = pa.table([list(range(rows)), [f"name {number}" for number in range(rows)]], schema=SCHEMA)
    return write_train(harness.state, "s", with_arrivals(table))


def rows(harness: Harness, result: UnitResult, stream: str) -> list[dict[str, object]]:
    table = harness.read(result, stream)
    return [] if table is None else table.drop_columns(["__arrival"]).to_pylist()


def jobs(spark: SparkSession, unit: Unit) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(unit.id))


def test_shared_work_runs_once_and_goes_to_readers_queues_and_outputs(harness: Harness, spark: SparkSession):
    nodes = install(
        harness,
        straight("even", COMMON),
        straight("a", COMMON, Project("a.project", (("k", "k"),))),
        straight("b", COMMON, Project("b.project", (("twice", "k * 2"),))),
        straight("c", COMMON, Project("c.project", (("name", "name"),))),
    )
    unit = Unit(
        "shared",
        (
            Chain((nodes["shared:1"],), (train(harness),), ("even", "c.project")),
            Chain((nodes["a.project"],), (0,), ("a",)),
            Chain((nodes["b.project"],), (0,), ("b",)),
        ),
    )
    result = harness.run(unit)
    assert jobs(spark, unit) == 1
    runs = [(run.operator, run.rows_in, run.rows_out) for chain in result.chains for run in chain.operators]
    assert runs == [(0, 10, 5), (1, 5, 5), (2, 5, 5)]
    assert rows(harness, result, "a") == [{"k": k} for k in range(0, 10, 2)]
    assert rows(harness, result, "b") == [{"twice": 2 * k} for k in range(0, 10, 2)]
    [file] = result.files
    places = {stream: place for stream, *place in file.members}
    assert set(places) == {"even", "c.project", "a", "b"}
    assert places["even"] == places["c.project"], "the same bytes, once in the file"
    assert rows(harness, result, "c.project") == rows(harness, result, "even")


@pytest.mark.parametrize("count", [10, 120_000])
def test_forms_may_change_in_the_middle(harness: Harness, spark: SparkSession, count: int):
    nodes = install(
        harness,
        # Compiled, in Spark's own form, and compiled again.
        straight("a", COMMON, Project("a.1", INITCAP), Filter("a.2", "k > 2"), Project("a.3", (("n", "n"),))),
        straight("b", COMMON, Project("b.1", (("k", "k + 1"),))),
    )
    assert harness.executor.way([nodes["shared:1"], nodes["b.1"]]) == "vectorised"
    assert harness.executor.way([nodes["a.1"]]) == "catalyst"
    assert harness.executor.way([nodes["b.1"], nodes["a.1"]]) == "vectorised+catalyst"
    assert harness.executor.way([nodes["shared:1"], nodes["a.1"]]) == "staged"
    a = tuple(nodes[f"a.{number}"] for number in (1, 2, 3))
    unit = Unit(
        f"forms-{count}",
        (
            Chain((nodes["shared:1"],), (train(harness, count),)),
            Chain(a, (0,), ("a", "elsewhere")),
            Chain((nodes["b.1"],), (0,), ("b",)),
        ),
    )
    result = harness.run(unit)
    assert [chain.failure for chain in result.chains] == [None, None, None]
    assert rows(harness, result, "a") == [{"n": f"Name {k}"} for k in range(4, count, 2)]
    assert rows(harness, result, "b") == [{"k": k + 1} for k in range(0, count, 2)]
    assert {stream for file in result.files for stream, *_ in file.members} == {"a", "b", "elsewhere"}
    passed = [(run.rows_in, run.rows_out) for chain in result.chains for run in chain.operators]
    half = count // 2
    assert passed == [(count, half), (half, half), (half, half - 2), (half - 2, half - 2), (half, half)]
    # Filters and projections in a row have one form: the shared filter with the compiled reader, and the rest.
    assert jobs(spark, unit) == 2
    assert result.chains[1].arrivals[0] == pytest.approx(1.004)


def test_errors_of_a_strict_reader_are_its_own(harness: Harness):
    nodes = install(
        harness,
        straight("lenient", COMMON, Project("lenient.project", (("r", "10 / (k - 4)"),))),
        straight("strict", COMMON, Project("strict.project", (("r", "10 / (k - 4)"),)), Filter("strict.2", "r > 0")),
        fail=frozenset({"strict"}),
    )
    unit = Unit(
        "strict",
        (
            Chain((nodes["shared:1"],), (train(harness),)),
            Chain((nodes["lenient.project"],), (0,), ("lenient",)),
            Chain((nodes["strict.project"],), (0,), ("queue",)),
            Chain((nodes["strict.2"],), (2,), ("strict",)),
        ),
    )
    result = harness.run(unit)
    assert [bool(chain.failure) for chain in result.chains] == [False, False, True, True]
    assert result.chains[3].failure == result.chains[2].failure
    assert {stream for file in result.files for stream, *_ in file.members} == {"lenient"}


RAISES = (("k", "if(k = 4, raise_error('four is too much'), k)"), ("n", "initcap(name)"))


def test_who_fails_together_with_others_is_to_run_apart(harness: Harness):
    nodes = install(
        harness,
        straight("bad", COMMON, Project("bad.project", RAISES)),
        straight("good", COMMON, Project("good.project", (("n", "initcap(name)"),))),
        straight("alone", Project("alone.project", (("k", "k"),))),
    )
    whole = train(harness)
    alone = Chain((nodes["alone.project"],), (whole,), ("alone",))
    together = Unit(
        "together",
        (
            alone,
            Chain((nodes["shared:1"],), (whole,)),
            Chain((nodes["bad.project"],), (1,), ("bad",)),
            Chain((nodes["good.project"],), (1,), ("good",)),
        ),
    )
    result = harness.run(together)
    assert (result.apart, result.files, result.chains) == ((1, 2, 3), (), ())
    assert "four is too much" in str(result.retry)
    first = harness.run(Unit("first", (Chain((nodes["shared:1"],), (whole,), ("bad.project", "good.project")),)))
    queues = {name: output_train(first, f"{name}.project") for name in ("bad", "good")}
    apart = Unit(
        "apart",
        (
            alone,
            Chain((nodes["bad.project"],), (queues["bad"],), ("bad",)),
            Chain((nodes["good.project"],), (queues["good"],), ("good",)),
        ),
    )
    result = harness.run(apart)
    assert (result.retry, result.apart) == (None, ())
    assert [bool(chain.failure) for chain in result.chains] == [False, True, False]
    assert [row["n"] for row in rows(harness, result, "good")] == [f"Name {k}" for k in range(0, 10, 2)]


def test_a_suspect_is_one_until_its_own_part_has_succeeded(spark: SparkSession, tmp_path: Path):
    notes = Running(tmp_path)
    notes.job(["a", "other"]).__enter__()
    notes.died("Spark's JVM has ended", certain=True)
    suspects = Suspects(tmp_path, {})
    with Harness(spark, tmp_path, suspects=suspects) as harness:
        nodes = install(
            harness,
            straight("a", COMMON, Project("a.project", (("k", "k"),))),
            straight("b", COMMON, Project("b.project", (("k", "k"),))),
        )
        whole = train(harness)
        assert harness.executor.alone == {"a", "other"}
        shared = harness.run(Unit("shared", (Chain((nodes["shared:1"],), (whole,), ("a.project", "b.project")),)))
        assert shared.retry is None
        assert harness.executor.alone == {"a", "other"}, "shared work says nothing of what is behind it"
        queue = output_train(shared, "a.project")
        assert harness.run(Unit("own", (Chain((nodes["a.project"],), (queue,), ("a",)),))).chains[0].rows_out == 5
        assert harness.executor.alone == {"other"}


def test_a_component_of_one_query_that_fails_is_its_failure(harness: Harness):
    nodes = install(
        harness,
        straight("bad", Filter("bad.1", "k % 2 = 0"), Project("bad.2", RAISES), Filter("bad.3", "k >= 0")),
        straight("good", Project("good.1", (("k", "k"),))),
    )
    whole = train(harness)
    unit = Unit(
        "one",
        (
            Chain((nodes["bad.1"],), (whole,), ("queue",)),
            Chain((nodes["bad.2"], nodes["bad.3"]), (0,), ("bad",)),
            Chain((nodes["good.1"],), (whole,), ("good",)),
        ),
    )
    result = harness.run(unit)
    assert (result.retry, result.apart) == (None, ())
    assert ["four is too much" in str(chain.failure) for chain in result.chains] == [True, True, False]
    assert {stream for file in result.files for stream, *_ in file.members} == {"good"}
