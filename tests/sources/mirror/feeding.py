"""A mirror that feeds a stream of a real log, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from freshet.log import Intake, Log
from freshet.model import Stream, parse_schema
from freshet.sources import Feeder, create
from freshet.sources.mirror.source import MirrorSource

PRICES = "element string, price double, polled timestamp, changed timestamp"


class Fed:
    """The log, the source and what the stream holds."""

    def __init__(self, log: Log, source: MirrorSource, feeder: Feeder) -> None:
        self.log, self.source, self.feeder = log, source, feeder

    def rows(self) -> list[dict[str, Any]]:
        end = self.log.end("prices")
        return self.log.read("prices", 0, end).to_pylist() if end else []

    def values(self, column: str = "price") -> list[tuple[str, Any]]:
        return [(row["element"], row[column]) for row in self.rows()]

    def until(self, what: Callable[[], bool], timeout: float = 600.0) -> None:
        end = time.monotonic() + timeout
        while not what():
            assert self.feeder.status.state != "failed", self.feeder.status.reason
            assert time.monotonic() < end, f"not within {timeout} s: {self.rows()} {self.source.status}"
            time.sleep(0.02)


def stream(schema: str = PRICES, **more: Any) -> Stream:
    return Stream("prices", parse_schema(schema), **more)


@contextmanager
def feeding(folder: Path, options: dict[str, Any], declared: Stream | None = None) -> Iterator[Fed]:
    declared = declared or stream()
    with Log.open(folder) as log:
        log.declare("prices")
        source = create("mirror", options, declared)
        assert isinstance(source, MirrorSource)
        feeder = Feeder(source, Intake(log, declared), log, "prices", heartbeat=None)
        feeder.start()
        try:
            yield Fed(log, source, feeder)
        finally:
            assert feeder.stop(10.0)
