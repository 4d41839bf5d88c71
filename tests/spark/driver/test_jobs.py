"""What jobs leave behind: nothing, however many there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness, query, with_arrivals, write_train

from freshet.model import Unit, parse_schema
from freshet.spark.driver.jobs import Jobs

pytestmark = pytest.mark.spark

SCHEMA = parse_schema("k bigint")


def _unit(harness: Harness, number: int, chains: int) -> Unit:
    train = write_train(harness.state, "s", with_arrivals(pa.table([list(range(20))], schema=SCHEMA)))
    return Unit(f"u{number}", tuple(harness.chain(f"q{each}", train) for each in range(chains)))


def _install(harness: Harness, queries: int) -> None:
    queries_of = (query(f"q{each}", "s", f"k >= {each % 7}", [("k", "k")]) for each in range(queries))
    harness.install({"s": SCHEMA}, *queries_of)


def test_the_jvm_remembers_no_file_of_a_job_to_delete_it_on_exit(spark: SparkSession, harness: Harness):
    _install(harness, 1)
    jvm: Any = spark.sparkContext._jvm
    hook = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    hook.setAccessible(True)
    remembered = []
    for number in range(5):
        assert harness.run(_unit(harness, number, 1)).retry is None
        remembered.append(hook.get(None).size())
    assert remembered[-1] == remembered[0]


def test_a_spark_is_warmed_up_once(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(harness, 1)
    probed: list[int] = []
    probe = Jobs.probe

    def counted(jobs: Jobs, spec: str, tasks: int = 1) -> None:
        probed.append(tasks)
        probe(jobs, spec, tasks)

    monkeypatch.setattr(Jobs, "probe", counted)
    harness.executor.warm_up(4)
    probed.clear()
    harness.executor.warm_up(4)  # as the executor of a next application does
    assert probed == [1, harness.executor.jobs.cores]


@pytest.mark.parametrize("chains", [1, 120])
def test_a_report_of_any_length_arrives_and_leaves_no_file(harness: Harness, chains: int):
    _install(harness, chains)
    result = harness.run(_unit(harness, 0, chains))
    assert [done.rows_out for done in result.chains] == [20 - each % 7 for each in range(chains)]
    assert not list((harness.state / "specs").glob("*.report"))


def test_what_a_run_before_left_is_swept_up(spark: SparkSession, tmp_path: Path):
    specs = tmp_path / "specs"
    specs.mkdir()
    for name in ("1-7-0-3.report", "abc.assignment"):
        (specs / name).write_text("[]")
    with Harness(spark, tmp_path):
        assert [file.suffix for file in specs.iterdir()] == [".json"]
