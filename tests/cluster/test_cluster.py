"""The same application against a cluster of two workers, one of which dies, and with tasks that run twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.load import CHUNK, QUERIES, rows_of

pytestmark = pytest.mark.spark

SPECULATION = {
    "spark.log.level": "INFO",
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    # A task that has run for so long is run a second time beside itself, although it is the only one of its stage.
    "spark.speculation.task.duration.threshold": "15ms",
}


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """For both tests, of which the last leaves one worker."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def test_tasks_that_run_twice_answer_once(tmp_path: Path, two_workers: Cluster) -> None:
    outcome = run_app(tmp_path, two_workers.master, SPECULATION, lambda pushed: None)
    check(outcome)
    assert "as speculatable" in spark_log(tmp_path)


def test_a_worker_that_dies_costs_time_and_no_row(tmp_path: Path, two_workers: Cluster) -> None:
    def kill(pushed: int) -> None:
        if pushed == 2 * CHUNK:
            two_workers.kill_worker()

    outcome = run_app(tmp_path, two_workers.master, {}, kill)
    check(outcome)
    assert "Lost executor" in spark_log(tmp_path)


def run_app(folder: Path, master: str, settings: dict[str, str], pushed: Callable[[int], None]) -> dict[str, Any]:
    """Runs the application in a process of its own; returns what it told at the end."""
    command = [sys.executable, "-m", "tests.cluster.driver", str(folder), master, json.dumps(settings)]
    outcome: dict[str, Any] = {}
    with (folder / "driver.err").open("wb") as errors:
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=Path(__file__).parents[2])
    assert driver.stdout is not None
    with driver, driver.stdout as lines:
        for line in lines:
            told = json.loads(line)
            outcome |= told
            if "pushed" in told:
                pushed(told["pushed"])
    assert driver.returncode == 0, (folder / "driver.err").read_text()[-3000:]
    return outcome


def check(outcome: Mapping[str, Any]) -> None:
    """Every query is well, and has answered as DuckDB does over all rows."""
    assert set(outcome["states"].values()) == {"active"}
    rows = rows_of()
    with duckdb.connect() as connection:
        for name in rows:
            plain = [{**row, "ts": row["ts"].replace(tzinfo=None)} for row in rows[name]]
            connection.register(name, pa.Table.from_pylist(plain))
        for name, (_, sql) in QUERIES.items():
            expected = Counter(connection.execute(sql).fetchall())
            assert Counter(tuple(row.values()) for row in outcome["answers"][name]) == expected, name


def spark_log(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in sorted((folder / "state").glob("spark.log*")))
