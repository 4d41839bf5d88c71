"""A query that is taken out of an application file and put back, after a kill -9 of a real process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from freshet.app import App
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


def run_and_kill(app: Path, text: str, reached: Callable[[], bool]) -> None:
    """Runs an application in a process of its own until something is reached, however long that takes; kills it."""
    app.write_text(text)
    told = app.with_name("told.txt")
    with told.open("w") as file:
        command = [sys.executable, "-m", "freshet", "run", str(app)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
        try:
            while not reached():
                assert process.poll() is None, told.read_text()
                time.sleep(0.05)
        finally:
            process.kill()
            process.wait()


def run_until(app: Path, text: str, reached: Callable[[], bool]) -> list[str]:
    """Runs an application here until something is reached, and ends it; what it told at the start."""
    app.write_text(text)
    with App.from_toml(app).start() as run:
        while not reached():
            assert run.report()["status"] == "running"
            time.sleep(0.05)
        return list(run.notes)


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
@pytest.mark.usefixtures("spark")
@pytest.mark.timeout(900)
def test_every_row_stands_in_the_output_and_in_the_file_exactly_once(tmp_path: Path) -> None:
    app = tmp_path / "app.toml"
    lines = tmp_path / "low.jsonl"
    run_and_kill(app, APP + LOW + SINK, lambda: lines.exists() and lines.stat().st_size > 0)
    assert any("query low is dropped" in note for note in run_until(app, APP, more(app, "all", 1000)))
    notes = "\n".join(run_until(app, APP + LOW + SINK, more(app, "low", 1000)))
    assert "query low is back: it continues where it was; it missed nothing" in notes
    assert "sink low/jsonl is back: it continues where it was" in notes
    with LogReader(tmp_path / "state") as log:
        stream, low = (log.read(name, 0, log.end(name)).to_pylist() for name in ("s", "low"))
    wanted = [row["id"] for row in stream if row["k"] < 5]
    assert [row["id"] for row in low] == wanted
    assert [json.loads(line)["id"] for line in lines.read_text().splitlines()] == wanted
    assert len(wanted) > 1000
