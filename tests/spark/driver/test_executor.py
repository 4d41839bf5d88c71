from __future__ import annotations

import errno
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType
from tests.spark.kit import Harness, output_train, query, union, with_arrivals, write_train

from freshet.log.segments.segment import read_train
from freshet.model import Chain, Train, Unit, UserError, parse_schema
from freshet.spark.driver.planning import MOST_CHAINS
from freshet.spark.worker.spec import Spec

pytestmark = pytest.mark.spark

SCHEMA = parse_schema("k bigint, v double, name string")


def _rows(count: int, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    columns = [list(numbers), [number / 7 for number in numbers], [f"n{number % 5}" for number in numbers]]
    return pa.table(columns, schema=SCHEMA)


def _train(harness: Harness, count: int) -> Train:
    return write_train(harness.state, "s", with_arrivals(_rows(count)))


def test_a_unit_reports_rows_times_arrivals_and_parts(harness: Harness):
    schemas = harness.install({"s": SCHEMA}, query("q", "s", "k >= 10", "k < 90", [("k", "k"), ("w", "v * 7")]))
    assert schemas["q"] == parse_schema("k bigint, w double")
    train = _train(harness, 100)
    result = harness.run(harness.unit(train, "q"))
    [chain] = result.chains
    assert [(run.operator, run.rows_in, run.rows_out) for run in chain.operators] == [
        (0, 100, 90),
        (1, 90, 80),
        (2, 80, 80),
    ]
    assert all(run.seconds > 0 for run in chain.operators)
    assert chain.rows_out == 80
    assert (chain.arrivals[0], chain.arrivals[-1], len(chain.arrivals)) == (1.01, 1.089, 17)
    assert result.overhead > 0
    assert set(result.parts) == {"plan", "job"}
    assert result.started <= result.finished
    [file] = result.files
    assert file.name.startswith(f"{result.unit.id}-0-")
    assert (harness.state / "segments" / file.name).stat().st_size == file.bytes
    output = harness.read(result, "q")
    assert output is not None
    assert output.column("k").to_pylist() == list(range(10, 90))


def test_both_forms_in_one_unit_and_several_trains(harness: Harness):
    other = parse_schema("a int")
    harness.install(
        {"s": SCHEMA, "t": other},
        query("compiled", "s", "k < 3", [("k", "k")]),
        query("sql", "s", "name RLIKE '^n1'", [("u", "concat(name, '!')")]),
        query("second", "t", [("b", "a + 1")]),
    )
    assert harness.executor.form(harness.network.of("compiled"))[0] == "vectorised"
    form, why = harness.executor.form(harness.network.of("sql"))
    assert form == "catalyst"
    assert why
    numbers = with_arrivals(pa.table([[1, 2]], schema=other))
    train, other_train = _train(harness, 10), write_train(harness.state, "t", numbers)
    chains = (
        harness.chain("sql", train),
        harness.chain("second", other_train),
        harness.chain("compiled", train),
    )
    result = harness.run(Unit("several", chains))
    assert tuple(chain.chain for chain in result.chains) == chains
    assert [chain.rows_out for chain in result.chains] == [2, 2, 3]
    tables = {name: harness.read(result, name) for name in ("sql", "compiled", "second")}
    values = {name: table.column(0).to_pylist() for name, table in tables.items() if table is not None}
    assert values == {"sql": ["n1!", "n1!"], "compiled": [0, 1, 2], "second": [2, 3]}


@pytest.mark.parametrize("vectorise", [True, False])
def test_large_trains_are_split_and_keep_their_order(vectorise: bool, spark: SparkSession, tmp_path: Path):
    with Harness(spark, tmp_path, vectorise=vectorise) as harness:
        harness.install({"s": SCHEMA}, query("q", "s", "k % 3 = 0", [("k", "k"), ("name", "name")]))
        rows = 600_000
        tables = [with_arrivals(_rows(rows // 4, number * rows // 4), number * 10**9) for number in range(4)]
        train = write_train(harness.state, "s", *tables)
        result = harness.run(harness.unit(train, "q"))
        assert len(result.files) == 2
        output = harness.read(result, "q")
        assert output is not None
        assert output.column("k").equals(pa.chunked_array([pa.array(range(0, rows, 3))]).cast(pa.int64()))
        [chain] = result.chains
        assert [(run.rows_in, run.rows_out) for run in chain.operators] == [(rows, rows // 3), (rows // 3, rows // 3)]
        assert len(chain.arrivals) == 17
        assert list(chain.arrivals) == sorted(chain.arrivals)
        # Cost and overhead are parts of the time that the unit kept its worker, although two tasks shared the work.
        accounted = sum(run.seconds for run in chain.operators) + result.overhead
        assert accounted <= 1.001 * (result.finished - result.started)


def test_fifty_chains_make_one_job_and_one_file(harness: Harness, spark: SparkSession):
    queries = [query(f"q{number}", "s", f"k > {number}", [("k", "k"), ("v", f"v + {number}")]) for number in range(50)]
    harness.install({"s": SCHEMA}, *queries)
    result = harness.run(harness.unit(_train(harness, 100), *(f"q{number}" for number in range(50))))
    assert len(result.files) == 1
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(result.unit.id)) == 1
    assert [chain.rows_out for chain in result.chains] == [99 - number for number in range(50)]
    for number in (0, 49):
        output = harness.read(result, f"q{number}")
        assert output is not None
        assert output.column("v").to_pylist() == [k / 7 + number for k in range(number + 1, 100)]


def test_many_catalyst_chains_make_a_job_per_sixteen(spark: SparkSession, tmp_path: Path):
    with Harness(spark, tmp_path, vectorise=False) as harness:
        names = [f"q{number}" for number in range(MOST_CHAINS + 4)]
        harness.install({"s": SCHEMA}, *(query(name, "s", f"k > {name[1:]}", [("k", "k")]) for name in names))
        result = harness.run(harness.unit(_train(harness, 100), *names))
        assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(result.unit.id)) == 2
        assert [chain.rows_out for chain in result.chains] == [99 - number for number in range(len(names))]


def test_a_prebuilt_plan_sees_each_train_anew(spark: SparkSession, tmp_path: Path):
    for vectorise in (True, False):
        with Harness(spark, tmp_path / str(vectorise), vectorise=vectorise) as harness:
            harness.install({"s": SCHEMA}, query("q", "s", [("k", "k")]))
            for rows in (10, 30, 5):
                result = harness.run(harness.unit(_train(harness, rows), "q"))
                assert result.chains[0].rows_out == rows


def test_units_run_side_by_side_without_mixing(spark: SparkSession, tmp_path: Path):
    with Harness(spark, tmp_path, slots=3) as harness:
        harness.install({"s": SCHEMA}, query("q", "s", [("k", "k")]))
        units = [harness.unit(_train(harness, rows), "q") for rows in range(1, 13)]
        for unit in units:
            harness.executor.submit(unit)
        found: dict[str, int] = {}
        deadline = time.monotonic() + 600
        while len(found) < len(units) and time.monotonic() < deadline:
            found |= {result.unit.id: result.chains[0].rows_out for result in harness.executor.finished()}
            time.sleep(0.02)
        assert found == {unit.id: unit.rows for unit in units}


def test_a_chain_that_raises_is_isolated(harness: Harness):
    harness.install(
        {"s": SCHEMA},
        query("fine", "s", "length(name) = 2", [("k", "k")]),
        query("raises", "s", "if(k = 7, raise_error('seven is too much'), true)", [("k", "k")]),
        query("also", "s", "length(name) > 0", [("n", "upper(name)")]),
        query("compiled", "s", "k < 5", [("k", "k")]),
        query("spared", "s", "k < 7", "if(k = 7, raise_error('never'), true)", [("k", "k")]),
    )
    names = ["fine", "raises", "also", "compiled", "spared"]
    result = harness.run(harness.unit(_train(harness, 20), *names))
    assert result.retry is None
    failures = {name: chain.failure for name, chain in zip(names, result.chains, strict=True)}
    assert {name for name, failure in failures.items() if failure} == {"raises"}
    assert "seven is too much" in str(failures["raises"])
    assert "\n" not in str(failures["raises"])
    assert [chain.rows_out for chain in result.chains] == [20, 0, 20, 5, 7]
    assert output_train(result, "raises").rows == 0
    output = harness.read(result, "also")
    assert output is not None
    assert output.column("n").to_pylist()[:2] == ["N0", "N1"]


def test_a_python_function_that_raises_is_isolated(harness: Harness, spark: SparkSession):
    def strange(k: int) -> int:
        if k == 3:
            raise ValueError("three is not a number")
        return k

    spark.udf.register("strange", strange, LongType())
    harness.install({"s": SCHEMA}, query("bad", "s", [("k", "strange(k)")]), query("good", "s", [("n", "lower(name)")]))
    result = harness.run(harness.unit(_train(harness, 10), "bad", "good"))
    assert [chain.failure is None for chain in result.chains] == [False, True]
    assert result.chains[0].failure == "ValueError: three is not a number"
    again = harness.run(harness.unit(_train(harness, 3), "bad"))
    assert again.chains[0].rows_out == 3


def test_errors_are_counted_and_fail_only_those_who_ask(spark: SparkSession, tmp_path: Path):
    for vectorise in (True, False):
        with Harness(spark, tmp_path / str(vectorise), vectorise=vectorise) as harness:
            queries = [query(name, "s", "k > 1", [("r", "10 / (k - 4)"), ("k", "k")]) for name in ("lenient", "strict")]
            harness.install({"s": SCHEMA}, *queries, fail={"strict"})
            result = harness.run(harness.unit(_train(harness, 8), "lenient", "strict"))
            assert [chain.errors for chain in result.chains] == [1, 1]
            assert result.chains[0].failure is None
            assert result.chains[1].failure == "1 evaluation error in 8 tuples (on_error = fail) in 10 / (k - 4)"
            assert (result.chains[0].rows_out, result.chains[1].rows_out) == (6, 0)
            assert output_train(result, "strict").rows == 0
            output = harness.read(result, "lenient")
            assert output is not None
            assert output.column("r").to_pylist()[2] is None


def test_queries_on_queries_unions_and_queries_that_come_later(harness: Harness):
    small = parse_schema("k int, v float, name string")
    schemas = harness.install(
        {"s": SCHEMA, "t": small},
        union("both", ("s", [[("k", "k"), ("v", "v")]]), ("t", ["k > 0", [("key", "k"), ("v", "v")]])),
        query("above", "both", "k > 1", [("twice", "k * 2")]),
    )
    assert schemas == {"both": parse_schema("k bigint, v double"), "above": parse_schema("twice bigint")}
    rows = with_arrivals(pa.table([[0, 1], [0.5, 1.5], ["a", "b"]], schema=small))
    nodes = {harness.network.nodes[number].name: number for number in harness.network.of("both")}
    left, right = (nodes["both.0_0"],), (nodes["both.1_0"], nodes["both.1_1"])
    chains = (
        Chain(left, (_train(harness, 3),)),
        Chain(right, (write_train(harness.state, "t", rows),)),
        Chain((nodes["both.union"],), (0, 1), ("both",)),
    )
    result = harness.run(Unit("union", chains))
    assert [chain.rows_out for chain in result.chains] == [3, 1, 4]
    output = harness.read(result, "both")
    assert output is not None
    assert sorted(output.column("k").to_pylist()) == [0, 1, 1, 2]
    assert 1.5 in output.column("v").to_pylist()
    # A query that comes later reads what is there, and the operators before it keep their numbers.
    schemas = harness.install({}, query("late", "both", "v > 1.0", [("v", "v")]))
    assert schemas["late"] == parse_schema("v double")
    train = output_train(result, "both")
    later = harness.run(harness.unit(train, "late", "above"))
    assert [chain.rows_out for chain in later.chains] == [1, 1]
    # The newest one, and the empty one that probes run with.
    assert len(list((harness.state / "specs").glob("*.json"))) == 2


def test_what_is_installed_is_written_down_when_a_unit_needs_it(harness: Harness):
    """A start installs query after query: writing all of them down each time would take ever longer."""

    def written() -> int:
        return len(list((harness.state / "specs").glob("*.json")))

    harness.install({"s": SCHEMA}, *(query(f"q{number}", "s", [("k", "k")]) for number in range(3)))
    assert written() == 1, "the empty one that probes run with"
    assert harness.run(harness.unit(_train(harness, 3), "q0", "q2")).retry is None
    assert written() == 2


def test_a_unit_comes_back_while_nothing_can_be_written_down(harness: Harness, monkeypatch: pytest.MonkeyPatch):
    def full(spec: Spec, folder: Path) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    harness.install({"s": SCHEMA}, query("q", "s", [("k", "k")]))
    unit = harness.unit(_train(harness, 3), "q")
    with monkeypatch.context() as patch:
        patch.setattr(Spec, "store", full)
        assert "No space left" in (harness.run(unit).retry or "")
    assert harness.run(unit).retry is None


def test_what_spark_does_not_accept_is_refused_and_leaves_no_trace(harness: Harness):
    harness.install({"s": SCHEMA}, query("q", "s", "k > 1", [("k", "k")]))
    for number, bad in enumerate(["no_such_function(k) > 1", "upper(nothing) = 'a'", "length(name)"]):
        with pytest.raises(UserError):
            harness.install({}, query(f"bad{number}", "s", bad, [("k", "k")]))
    with pytest.raises(UserError, match="CAST it to a type"):
        harness.install({}, query("void", "s", [("n", "NULL")]))
    with pytest.raises(UserError, match="nowhere"):
        harness.install({}, query("lost", "nowhere", [("k", "k")]))
    with pytest.raises(UserError, match="CAST one of them"):
        harness.install({}, union("mixed", ("s", [[("a", "k")]]), ("s", [[("a", "name")]])))
    harness.install({}, query("good", "s", "k > 2", [("k", "k")]))
    result = harness.run(harness.unit(_train(harness, 5), "q", "good"))
    assert [chain.rows_out for chain in result.chains] == [3, 2]


def test_a_running_unit_is_cancelled(harness: Harness, spark: SparkSession):
    def slow(k: int) -> int:
        time.sleep(0.2)
        return k

    spark.udf.register("slow", slow, LongType())
    harness.install({"s": SCHEMA}, query("slow", "s", [("k", "slow(k)")]), query("quick", "s", [("n", "lower(name)")]))
    train = _train(harness, 1000)
    unit = harness.unit(train, "slow")
    harness.executor.submit(unit)
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 600
    while not any((job := tracker.getJobInfo(number)) and job.status == "RUNNING"
                  for number in tracker.getJobIdsForGroup(unit.id)) and time.monotonic() < deadline:  # fmt: skip
        time.sleep(0.05)
    harness.executor.cancel(unit.id)
    result = harness.wait(unit.id, 120)
    assert (result.retry, result.chains, result.files) == ("cancelled", (), ())
    after = harness.run(harness.unit(train, "quick"))
    assert after.chains[0].rows_out == 1000


def test_a_waiting_unit_is_cancelled_at_once(spark: SparkSession, tmp_path: Path):
    with Harness(spark, tmp_path, slots=0) as harness:
        harness.install({"s": SCHEMA}, query("q", "s", [("k", "k")]))
        unit = harness.unit(_train(harness, 3), "q")
        harness.executor.submit(unit)
        harness.executor.cancel(unit.id)
        assert [result.retry for result in harness.executor.finished()] == ["cancelled"]
        harness.executor.cancel("no such unit")


def test_a_folder_that_cannot_be_read_or_written_blames_no_chain(harness: Harness):
    harness.install({"s": SCHEMA}, query("q", "s", [("k", "k")]), query("u", "s", [("n", "upper(name)")]))
    train = _train(harness, 5)
    # The folder is gone, as where a disk is not mounted.
    folder, elsewhere = harness.state / "segments", harness.state / "elsewhere"
    folder.rename(elsewhere)
    for name in ("q", "u"):
        result = harness.run(harness.unit(train, name))
        assert "the train of s cannot be read" in str(result.retry)
    # The train lies elsewhere, and the folder for the output is still gone.
    moved = tuple(replace(segment, file=str(elsewhere / segment.file)) for segment in train.segments)
    for name in ("q", "u"):
        result = harness.run(harness.unit(replace(train, segments=moved), name))
        assert "the output cannot be written" in str(result.retry)


def test_now_is_the_arrival(spark: SparkSession, tmp_path: Path):
    for vectorise in (True, False):
        with Harness(spark, tmp_path / str(vectorise), vectorise=vectorise) as harness:
            harness.install({"s": SCHEMA}, query("q", "s", [("k", "k")], [("at", "timestamp_micros(__arrival)")]))
            result = harness.run(harness.unit(_train(harness, 3), "q"))
            output = harness.read(result, "q")
            assert output is not None
            assert output.column("at").cast(pa.int64()).to_pylist() == output.column("__arrival").to_pylist()


def test_outputs_are_readable_by_their_members(harness: Harness):
    harness.install({"s": SCHEMA}, *(query(f"q{n}", "s", [("x", f"k + {n}")]) for n in range(3)))
    result = harness.run(harness.unit(_train(harness, 4), *(f"q{n}" for n in range(3))))
    for number in range(3):
        train = output_train(result, f"q{number}")
        table = read_train(harness.state / "segments", Train(train.stream, 1, 3, train.segments))
        assert table.column("x").to_pylist() == [1 + number, 2 + number]
