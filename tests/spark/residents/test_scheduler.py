"""What Spark's scheduler knows of tasks, at the moment at which it is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from freshet.spark.driver.residents.scheduler import is_leaving, running_of, running_tasks, waiting_jobs
from freshet.spark.driver.residents.slots import slots_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def hold_slots(spark: SparkSession, group: str, folder: Path, tasks: int) -> threading.Thread:
    """Runs a job of tasks that each write a file when they begin, and wait until the folder's mark is removed."""
    mark = folder / "mark"
    mark.touch()

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (folder / f"{group}-{batch['id'][0].as_py()}").touch()
            yield batch
        while mark.exists():
            time.sleep(0.02)

    def run() -> None:
        spark.sparkContext.setJobGroup(group, "holds slots")
        spark.range(0, tasks, 1, tasks).mapInArrow(wait, "id long").collect()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_until(folder: Path, group: str, count: int) -> None:
    until = time.monotonic() + 600
    while len(list(folder.glob(f"{group}-*"))) < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_job_whose_tasks_run_does_not_wait_and_one_without_a_slot_does(spark: SparkSession, tmp_path: Path) -> None:
    context = spark.sparkContext
    slots = slots_of(context)
    holds = hold_slots(spark, "holds", tmp_path, slots)
    try:
        wait_until(tmp_path, "holds", slots)
        assert running_of(context, "holds") == slots
        assert running_tasks(context) == slots
        assert waiting_jobs(context) == frozenset()
        waits = hold_slots(spark, "waits", tmp_path, 1)
        until = time.monotonic() + 600
        while running_of(context, "waits") != 0:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert waiting_jobs(context) == set(context.statusTracker().getJobIdsForGroup("waits"))
    finally:
        (tmp_path / "mark").unlink()
        holds.join()
    waits.join()
    assert running_of(context, "waits") is None
    assert waiting_jobs(context) == frozenset()
    assert not is_leaving(context, 0)
