"""A query that is taken out of an application file and put back, with real processes and a kill -9 in between."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
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


def run(app: Path, text: str, *options: str) -> subprocess.Popen[str]:
    app.write_text(text)
    command = [sys.executable, "-m", "freshet", "run", str(app), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_for(app: Path, text: str) -> str:
    process = run(app, text, "--for", "2s")
    _, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors
    return errors


def run_and_kill(app: Path, text: str) -> None:
    out = app.parent / "low.jsonl"
    process = run(app, text)
    until = time.monotonic() + 400
    while not out.exists() or not out.stat().st_size:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.spark
@pytest.mark.timeout(900)  # it starts Spark three times
def test_every_row_stands_in_the_output_and_in_the_file_exactly_once(tmp_path: Path) -> None:
    app = tmp_path / "app.toml"
    run_and_kill(app, APP + LOW + SINK)
    assert "query low is dropped" in run_for(app, APP)
    notes = run_for(app, APP + LOW + SINK)
    assert "query low is back: it goes on where it was; it missed nothing" in notes
    assert "sink low/jsonl is back: it goes on where it was" in notes
    with LogReader(tmp_path / "state") as log:
        stream, low = (log.read(name, 0, log.end(name)).to_pylist() for name in ("s", "low"))
    wanted = [row["id"] for row in stream if row["k"] < 5]
    assert [row["id"] for row in low] == wanted
    assert [json.loads(line)["id"] for line in (tmp_path / "low.jsonl").read_text().splitlines()] == wanted
    assert len(wanted) > 1000
