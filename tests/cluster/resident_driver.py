"""What happens to residents on a cluster, each scenario in a process of its own:
``python -m tests.cluster.resident_driver SCENARIO FOLDER MASTER``. It prints a line of JSON, or ends with an error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.kit import Harness, query, write_train
from tests.spark.residents.test_residents import SCHEMA, Hooked, rows, sleep_while_there

from freshet.spark.driver.residents import pool
from freshet.spark.session.session import open_session

PATIENCE = 600.0
FIXED = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m", "spark.executor.cores": "2"}
ELASTIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
}


class Stage:
    """A Spark on the cluster, and an executor with residents."""

    def __init__(self, folder: Path, master: str, residents: int, **settings: str) -> None:
        self.session = open_session("residents", master, {**FIXED, **settings}, log_folder=folder / "log")
        self.harness = Harness(self.session, folder / "state", residents=residents)
        self.harness.install({"s": SCHEMA}, query("plain", "s", "v >= 90"))
        self.train = write_train(self.harness.state, "s", rows())

    @property
    def present(self) -> list[int]:
        return [each["process"] for each in self.harness.pool.whereabouts()]

    def executors(self) -> list[str]:
        """The executors that are there."""
        return [name for name in str(self.backend.getExecutorIds().mkString(" ")).split(" ") if name]

    @property
    def backend(self) -> Any:
        return self.session.sparkContext._jsc.sc().schedulerBackend()

    def run(self) -> str | None:
        """Runs a unit; returns the way that it went."""
        result = self.harness.run(self.harness.unit(self.train, "plain"))
        assert result.retry is None, result.retry
        assert result.chains[0].rows_out == 10
        return result.way

    def wait(self, what: Callable[[], bool]) -> None:
        """Waits as an engine does: the executor is asked again and again."""
        until = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < until
            self.harness.executor.finished()
            time.sleep(0.05)

    def close(self) -> None:
        self.harness.executor.close()
        self.session.stop()


def elastic(folder: Path, master: str) -> None:
    """Executors come and go with the work: residents neither bring them nor keep them."""
    stage = Stage(folder, master, 2, **ELASTIC)
    # Two slots: one resident, one slot for jobs. The other resident would need another executor. A job that waited long
    # for the first executor may have brought one; it goes soon.
    stage.wait(lambda: stage.run() == "resident")
    stage.wait(lambda: len(stage.present) == len(stage.executors()) == 1)
    stage.harness.pool.call()
    time.sleep(2.5)  # Spark asks for executors when tasks have waited for a second
    assert len(stage.executors()) == 1
    long, pool.IDLE = pool.IDLE, 0.5  # type: ignore[misc]
    stage.wait(lambda: not stage.present)
    stage.wait(lambda: not stage.executors())
    assert stage.harness.pool.losses == 0
    pool.IDLE = long  # type: ignore[misc]
    assert stage.run() == "vectorised"
    stage.wait(lambda: stage.run() == "resident")
    stage.close()
    tell()


def decommissioned(folder: Path, master: str) -> None:
    """A resident leaves an executor that is to go, so that it can."""
    stage = Stage(folder, master, 1, **{"spark.decommission.enabled": "true"})
    stage.wait(lambda: bool(stage.present))
    [process], [task] = stage.present, stage.harness.pool._tasks.values()
    context: Any = stage.session.sparkContext
    executor = context._jsc.sc().taskScheduler().taskIdToExecutorId().get(task).get()
    info = context._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("a test", context._jvm.scala.Option.empty())
    assert stage.backend.decommissionExecutor(executor, info, False, False)
    stage.wait(lambda: process not in stage.present)
    stage.wait(lambda: executor not in stage.executors())
    stage.wait(lambda: stage.run() == "resident")
    assert stage.harness.pool.losses == 0
    stage.close()
    tell()


def killed(folder: Path, master: str) -> None:
    """Waits to be killed, while residents of several executors work and wait."""
    stage = Stage(folder, master, 3)
    stage.wait(lambda: len(stage.present) == 3)
    assert stage.run() == "resident"
    hooked = Hooked(stage.harness, folder, sleep_while_there)
    hooked.submit("q")
    tell(busy=hooked.process(), there=stage.present)
    time.sleep(600)


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    scenarios = {each.__name__: each for each in (elastic, decommissioned, killed)}
    scenarios[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
