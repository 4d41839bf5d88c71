"""Answers do not depend on residents: queries run on Spark with residents that are killed at random, and the rows that
they give are those of the same application in process."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from freshet.app import App
from freshet.testing import answers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

QUERIES = {
    "few": "SELECT k, v * 2 AS x FROM s WHERE v > 20",
    "more": "SELECT k, x + 1 AS y FROM few WHERE k < 7",
    "sums": "SELECT k, sum(v) AS total FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k",
    "counted": "SELECT count(*) AS n, max(v) AS most FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS]",
}
CHUNKS, ROWS = 40, 25


def declare(folder: Path, **options: Any) -> App:
    app = App("random", state=folder / "state", **options)
    app.stream("s", "ts timestamp, k int, v int", event_time="ts", lateness="1 s")
    for name, sql in QUERIES.items():
        app.query(name, sql)
    return app


def chunks(seed: int) -> list[list[dict[str, Any]]]:
    draw = random.Random(seed)
    return [
        [
            {"ts": datetime.fromtimestamp(chunk * ROWS + row, UTC), "k": draw.randrange(10), "v": draw.randrange(100)}
            for row in range(ROWS)
        ]
        for chunk in range(CHUNKS)
    ]  # fmt: skip


def keep_killing(residents: Callable[[], list[int]], draw: random.Random, stop: threading.Event) -> None:
    """Kills or freezes one resident after the other."""
    while not stop.wait(draw.random() * 1.5):
        for process in residents()[:1]:
            with suppress(ProcessLookupError):
                os.kill(process, draw.choice((signal.SIGKILL, signal.SIGSEGV)))


@pytest.mark.parametrize("seed", range(3))
def test_killed_residents_change_no_answer(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rows = chunks(seed)
    expected = answers(declare(tmp_path / "in-process"), {"s": [row for chunk in rows for row in chunk]})
    app, draw, stop = declare(tmp_path, spark=spark, resident=2), random.Random(seed), threading.Event()
    with app.start() as run:

        def there() -> list[int]:
            return [each["process"] for each in run.report()["residents"]["present"]]

        killing = threading.Thread(target=keep_killing, args=(there, draw, stop))
        killing.start()
        try:
            for chunk in rows:
                run.push("s", chunk)
                time.sleep(draw.random() * 0.2)
            run.heartbeat("s", 1e6)
            assert run.drain(timeout=600.0)
        finally:
            stop.set()
            killing.join()
        report = run.report()
        found = {name: Counter(map(plain, run.read(name).to_pylist())) for name in QUERIES}
    assert report["residents"]["restarts"] > 0
    assert report["ways"]["resident"]["calls"] > 0
    assert found == {name: Counter(map(plain, expected[name])) for name in QUERIES}
    assert all(found.values())


def plain(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(str(value) for value in row.values())
