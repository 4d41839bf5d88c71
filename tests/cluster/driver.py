"""An application with windows and joins against a cluster, in a process of its own: prints how far it is, then what
its outputs hold."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.cluster.load import CHUNK, QUERIES, STREAMS, rows_of

from freshet.app import App


def main(folder: Path, master: str, settings: dict[str, str], names: list[str], options: dict[str, Any]) -> None:
    """Pushes all rows in small chunks while the queries of these names run, drains, and writes the answers."""
    fixed = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m", "spark.executor.cores": "1"}
    app = App("cluster", state=folder / "state", master=master, spark={**fixed, **settings}, **options)
    for name, columns in STREAMS.items():
        app.stream(name, columns, event_time="ts", lateness="5 s")
    for name in names:
        app.query(name, QUERIES[name][0])
    rows = rows_of()
    with app.start() as run:
        for first in range(0, len(rows["a"]), CHUNK):
            for name in STREAMS:
                run.push(name, rows[name][first : first + CHUNK])
            _tell({"pushed": first + CHUNK})
            assert run.drain()
        report = run.report()
        states = {name: query["state"] for name, query in run.meters()["queries"].items()}
        answers: dict[str, list[Any]] = {name: run.read(name).to_pylist() for name in names}
        _tell({"states": states, "answers": answers, "ways": report["ways"], "residents": report["residents"]})
        sys.stdin.readline()


def _tell(what: dict[str, Any]) -> None:
    print(json.dumps(what, default=str), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(json.loads, sys.argv[3:6]))
