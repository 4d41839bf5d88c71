"""Residents on a cluster of two workers with two cores each: where they are, when they go, and that nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.running import check, run_app

# Two executors with residents, and a killed driver, are also in test_residents_in_local_cluster.py and in
# tests/spark/residents/test_driver_killed.py, which need no cluster.
pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def four_cores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), cores=2) as found:
        yield found


def test_residents_of_all_executors_run_what_is_compiled(tmp_path: Path, four_cores: Cluster) -> None:
    places: set[int | None] = set()

    def look(told: dict[str, Any]) -> None:
        if "residents" in told:
            places.update(four_cores.worker_of(each["process"]) for each in told["residents"]["present"])

    settings = {"spark.executor.cores": "2"}
    outcome = run_app(tmp_path, four_cores.master, settings, look, ("panes", "joined", "plain"), workers=8)
    check(outcome)
    # Four slots, of which one is left for jobs; an executor has two.
    assert outcome["residents"]["wanted"] == len(outcome["residents"]["present"]) == 3
    assert places == {0, 1}
    assert outcome["residents"]["dispatches"] > 0
    assert outcome["residents"]["given_back"] == 0


@contextmanager
def scenario(name: str, folder: Path, master: str) -> Iterator[subprocess.Popen[str]]:
    """A process of :mod:`tests.cluster.resident_driver`; what it says of trouble is in ``driver.err``."""
    command = [sys.executable, "-m", "tests.cluster.resident_driver", name, str(folder), master]
    with (folder / "driver.err").open("wb") as errors:
        driver = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=Path(__file__).parents[2]
        )
    with driver:
        try:
            yield driver
        finally:
            driver.kill()


@pytest.mark.parametrize("name", ["elastic", "decommissioned"])
def test_executors_come_and_go(tmp_path: Path, four_cores: Cluster, name: str) -> None:
    with scenario(name, tmp_path, four_cores.master) as driver:
        assert driver.wait() == 0, (tmp_path / "driver.err").read_text()[-3000:]


def test_a_killed_driver_leaves_no_resident(tmp_path: Path, four_cores: Cluster) -> None:
    with scenario("killed", tmp_path, four_cores.master) as driver:
        assert driver.stdout is not None
        line = driver.stdout.readline()
        assert line, (tmp_path / "driver.err").read_text()[-3000:]
        told = json.loads(line)
        assert told["busy"] in told["there"]
        assert {four_cores.worker_of(process) for process in told["there"]} == {0, 1}
        os.kill(driver.pid, signal.SIGKILL)
        until = time.monotonic() + 600
        while any(four_cores.pythons(number) for number in range(2)):
            assert time.monotonic() < until
            time.sleep(0.1)
    assert not list((tmp_path / "state" / "segments").glob("unit*-d[2-9]*"))
