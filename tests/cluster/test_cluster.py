"""The same application against a cluster of two workers, one of which dies, and with tasks that run twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.load import CHUNK
from tests.cluster.running import check, run_app, spark_log

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

COMPILED = ("panes", "joined", "plain")
"""The queries of which nothing is left to Spark's own form."""
SPECULATION = {
    "spark.log.level": "INFO",
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    # A task that has run for so long is run a second time beside itself, although it is the only one of its stage.
    "spark.speculation.task.duration.threshold": "15ms",
}


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """For all tests, of which the last leaves one worker."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def test_tasks_that_run_twice_answer_once(tmp_path: Path, two_workers: Cluster) -> None:
    outcome = run_app(tmp_path, two_workers.master, SPECULATION)
    check(outcome)
    assert "as speculatable" in spark_log(tmp_path)
    assert outcome["residents"]["wanted"] == 0
    assert "a second time" in outcome["residents"]["reason"]


@pytest.mark.long  # test_residents_in_local_cluster.py has two executors with residents
def test_a_resident_runs_what_is_compiled(tmp_path: Path, two_workers: Cluster) -> None:
    outcome = run_app(tmp_path, two_workers.master, {}, names=COMPILED)
    check(outcome)
    assert outcome["residents"]["wanted"] == len(outcome["residents"]["present"]) == 1
    assert outcome["residents"]["dispatches"] > 0
    assert outcome["ways"]["resident"]["calls"] > 0


@pytest.mark.long  # tests/app/running/test_slots_and_rest.py has one slot in this machine
def test_with_one_core_there_is_no_resident(tmp_path: Path, two_workers: Cluster) -> None:
    outcome = run_app(tmp_path, two_workers.master, {"spark.cores.max": "1"}, names=COMPILED)
    check(outcome)
    assert (outcome["residents"]["wanted"], outcome["residents"]["dispatches"]) == (0, 0)
    assert outcome["residents"]["reason"] == "Spark has one slot, which is left to jobs"
    assert "resident" not in outcome["ways"]


def test_a_worker_that_dies_costs_time_and_no_row(tmp_path: Path, two_workers: Cluster) -> None:
    def kill(told: dict[str, Any]) -> None:
        if told.get("pushed") == 2 * CHUNK:
            two_workers.kill_worker()

    outcome = run_app(tmp_path, two_workers.master, {}, kill)
    check(outcome)
    assert "Lost executor" in spark_log(tmp_path)
