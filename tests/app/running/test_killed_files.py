"""Parquet sinks of a real application that is killed while Spark's tasks write their files."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset
import pytest

from freshet.app import App
from freshet.log import LogReader

QUERIES = 6
APP = """
[spark]
master = "local[2]"

[streams.s]
schema = "id bigint"

[streams.s.source]
kind = "generator"
rate = 3000
columns.id = {kind = "sequence"}
""" + "".join(
    f"""
[queries.q{number}]
sql = "SELECT id FROM s WHERE id % {QUERIES} = {number}"
sinks = [{{kind = "parquet", path = "out/q{number}", every = "50 ms"}}]
"""
    for number in range(QUERIES)
)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("out/*/[!.]*.parquet"))


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("waits", [(0.13,), pytest.param((0.0, 0.13, 0.05), marks=pytest.mark.long)])
def test_kill_at_any_moment_leaves_every_row_in_one_file(tmp_path: Path, waits: tuple[float, ...]) -> None:
    app = tmp_path / "app.toml"
    app.write_text(APP)
    command = [sys.executable, "-m", "freshet", "run", str(app)]
    for wait in waits:
        before = len(files(tmp_path))
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while len(files(tmp_path)) < before + 3 * QUERIES:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    before = len(files(tmp_path))
    with App.from_toml(app).start() as run:
        while len(files(tmp_path)) < before + QUERIES:
            assert run.report()["status"] == "running"
            time.sleep(0.01)
    with LogReader(tmp_path / "state") as log:
        for number in range(QUERIES):
            name = f"q{number}"
            rows = pyarrow.dataset.dataset(tmp_path / "out" / name, format="parquet").to_table()
            wanted = log.read(name, 0, log.end(name))["id"].to_pylist()
            assert sorted(rows["id"].to_pylist()) == sorted(wanted)
            assert len(set(wanted)) == len(wanted) > 0
    assert not list(tmp_path.glob("out/*/.*")), "what was not complete is thrown away"
