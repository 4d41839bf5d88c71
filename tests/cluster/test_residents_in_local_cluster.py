"""Residents of two executors that Spark starts on this machine, and what limits the memory of their processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cluster.running import check, run_app

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TWO_WORKERS = "local-cluster[2,2,1024]"


def test_two_executors_have_residents(tmp_path: Path) -> None:
    parents: set[int] = set()

    def look(told: dict[str, Any]) -> None:
        if "residents" in told:
            # A daemon of each executor starts its Python processes.
            parents.update(psutil.Process(each["process"]).ppid() for each in told["residents"]["present"])

    outcome = run_app(tmp_path, TWO_WORKERS, {"spark.executor.cores": "2"}, look, ("panes", "joined"), workers=8)
    check(outcome)
    assert outcome["residents"]["wanted"] == len(outcome["residents"]["present"]) == 3
    assert len(parents) == 2
    assert outcome["residents"]["dispatches"] > 0
    assert outcome["residents"]["given_back"] == 0


def test_residents_work_within_the_memory_that_spark_allows(tmp_path: Path) -> None:
    limits: set[int] = set()

    def look(told: dict[str, Any]) -> None:
        if "residents" in told:
            residents = [psutil.Process(each["process"]) for each in told["residents"]["present"]]
            limits.update(each.rlimit(psutil.RLIMIT_AS)[0] for each in residents)

    settings = {"spark.executor.pyspark.memory": "4g"}
    outcome = run_app(tmp_path, "local[2]", settings, look, ("joined",))
    check(outcome)
    [limit] = limits
    assert 0 < limit <= 4 * 2**30
    assert outcome["residents"]["dispatches"] > 0
    assert outcome["residents"]["restarts"] == outcome["residents"]["given_back"] == 0
