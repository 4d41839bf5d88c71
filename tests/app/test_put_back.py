"""A query that is taken out of an application file and put back, with real processes and a kill -9 in between."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from freshet.log import LogReader

APP = """
[spark]
master = "local[2]"

[streams.s]
schema = "id bigint, k int"

[streams.s.source]
kind = "generator"
rate = 2000
columns.id = {kind = "sequence"}
columns.k = {kind = "uniform", low = 0, high = 9}

[queries.all]
sql = "SELECT id, k FROM s"
"""
LOW = """
[queries.low]
sql = "SELECT id, k FROM s WHERE k < 5 AND id >= 0"
"""
SINK = 'sinks = [{kind = "jsonl", path = "low.jsonl"}]\n'


def run_until(app: Path, text: str, reached: Callable[[], bool], end: signal.Signals) -> str:
    """Runs an application until something is reached, however long that takes, and ends it; what it told."""
    app.write_text(text)
    told = app.with_name("told.txt")
    with told.open("w") as file:
        command = [sys.executable, "-m", "freshet", "run", str(app)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
        try:
            while not reached():
                assert process.poll() is None, told.read_text()
                time.sleep(0.05)
            process.send_signal(end)
            code = process.wait()
        finally:
            process.kill()
    assert code == (-end if end == signal.SIGKILL else 0), told.read_text()
    return told.read_text()


def more(app: Path, output: str, rows: int) -> Callable[[], bool]:
    """Whether so many rows more than now stand in an output."""
    state = app.with_name("state")
    with LogReader(state) as log:
        enough = log.end(output) + rows

    def reached() -> bool:
        with LogReader(state) as log:
            return log.end(output) >= enough

    return reached


@pytest.mark.spark
@pytest.mark.timeout(900)  # it starts Spark three times
def test_every_row_stands_in_the_output_and_in_the_file_exactly_once(tmp_path: Path) -> None:
    app = tmp_path / "app.toml"
    lines = tmp_path / "low.jsonl"
    run_until(app, APP + LOW + SINK, lambda: lines.exists() and lines.stat().st_size > 0, signal.SIGKILL)
    assert "query low is dropped" in run_until(app, APP, more(app, "all", 1000), signal.SIGINT)
    notes = run_until(app, APP + LOW + SINK, more(app, "low", 1000), signal.SIGINT)
    assert "query low is back: it continues where it was; it missed nothing" in notes
    assert "sink low/jsonl is back: it continues where it was" in notes
    with LogReader(tmp_path / "state") as log:
        stream, low = (log.read(name, 0, log.end(name)).to_pylist() for name in ("s", "low"))
    wanted = [row["id"] for row in stream if row["k"] < 5]
    assert [row["id"] for row in low] == wanted
    assert [json.loads(line)["id"] for line in lines.read_text().splitlines()] == wanted
    assert len(wanted) > 1000
