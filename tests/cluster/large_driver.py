"""The 25 queries against a cluster, in a process of its own: pushes a chunk for every line that it is sent, says when
it is answered, and writes all answers at the end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather
from pyspark import TaskContext
from tests.cluster.large import CHUNKS, LATE, STREAM, chunk, queries

from freshet.app import App


def late(folder: Path) -> Callable[[pa.Array], pa.Array]:
    """A function that gives numbers back. The first attempt of the task that has a certain number among them notes
    its place and never ends."""

    def given_back(numbers: pa.Array) -> pa.Array:
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0 and pc.any(pc.equal(numbers, LATE)).as_py():
            (folder / "late").write_text(str(context.taskAttemptId()))
            while True:
                time.sleep(1.0)
        return numbers

    return given_back


def main(folder: Path, master: str, settings: dict[str, str], has_late_part: bool) -> None:
    """One unit at a time, and the first of them when all executors are there, so that it finds all cores idle."""
    fixed = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "1h",
        "spark.log.level": "INFO",
    }
    # A resident would hold one of the two cores, and leave nothing to be split.
    app = App("large", state=folder / "state", master=master, workers=1, spark={**fixed, **settings}, resident="off")
    app.stream("s", STREAM)
    if has_late_part:
        app.function("late", late(folder), "bigint", returns="bigint")
    for name, sql in queries(has_late_part).items():
        app.query(name, sql)
    with app.start() as run:
        for number in range(CHUNKS):
            sys.stdin.readline()
            run.push("s", chunk(number))
            assert run.drain()
            print(number, flush=True)
        states = {name: query["state"] for name, query in run.meters()["queries"].items()}
        for name in queries(has_late_part):
            feather.write_feather(run.read(name), folder / f"{name}.arrow")
    (folder / "states.json").write_text(json.dumps(states))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(json.loads, sys.argv[3:5]))
