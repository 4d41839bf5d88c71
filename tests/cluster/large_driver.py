"""The 25 queries against a cluster, in a process of its own: pushes a chunk for every line that it is sent, says when
it is answered, and writes all answers at the end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyarrow import feather
from tests.cluster.large import CHUNKS, STREAM, chunk, queries

from freshet.app import App


def main(folder: Path, master: str, settings: dict[str, str]) -> None:
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
    for name, sql in queries().items():
        app.query(name, sql)
    with app.start() as run:
        for number in range(CHUNKS):
            sys.stdin.readline()
            run.push("s", chunk(number))
            assert run.drain()
            print(number, flush=True)
        states = {name: query["state"] for name, query in run.meters()["queries"].items()}
        for name in queries():
            feather.write_feather(run.read(name), folder / f"{name}.arrow")
    (folder / "states.json").write_text(json.dumps(states))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
