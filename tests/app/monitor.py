"""An application whose answers plain Python computes from what its log holds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from freshet.app import App, Run
from freshet.engine import Event
from freshet.engine.events import Committed


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def monitor(folder: Path, rows: int = 3000) -> App:
    app = App("monitor", state=folder / "state", report=folder / "report.json", master="local[2]")
    source = {"kind": "generator", "rate": 20_000, "limit": rows, "seed": 7}
    app.stream("packets", "id bigint, host string, size int", source=source)
    app.query("large", "SELECT id, host, size FROM packets WHERE size > 50 AND host <> 'a'",
              sinks=[{"kind": "jsonl", "path": folder / "large.jsonl"}])  # fmt: skip
    app.query("odd", "SELECT host, size * 2 AS twice FROM packets WHERE size % 2 = 1")
    app.query(
        "both", "SELECT host, size FROM large WHERE size > 70 UNION ALL SELECT host, twice FROM odd WHERE twice < 40"
    )
    return app


def check_answers(run: Run) -> None:
    packets = run.read("packets").to_pylist()
    large = [row for row in packets if row["size"] > 50 and row["host"] != "a"]
    odd = [(row["host"], row["size"] * 2) for row in packets if row["size"] % 2 == 1]
    both = [(row["host"], row["size"]) for row in large if row["size"] > 70] + [pair for pair in odd if pair[1] < 40]
    assert bag(run.read("large")) == Counter((row["id"], row["host"], row["size"]) for row in large)
    assert bag(run.read("odd")) == Counter(odd)
    assert bag(run.read("both")) == Counter(both)
    assert both


def wait_for(what: Callable[[], bool], run: Run) -> None:
    until = time.monotonic() + 600
    while not what():
        assert time.monotonic() < until, run.report()
        run.wait(0.05)


def drained(run: Run) -> bool:
    # Not by the meters: they count what the engine has taken in, and a push may be quicker than that.
    return run.drain(timeout=0.0)


class Reached:
    """Notes how far the stream of the monitor was read, by the outputs that came of it."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}

    def tell(self, event: Event) -> None:
        for chain in event.chains if isinstance(event, Committed) else ():
            self.ends |= {name: train.end for train in chain.trains for name in chain.writes}
