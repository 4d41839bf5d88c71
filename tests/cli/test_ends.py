"""A run ends when it is told to, in whatever state it is."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

HANGS = """
import pathlib, threading

def hang(rows, token):
    pathlib.Path(__file__).with_name("called").touch()
    threading.Event().wait()
"""
APP = """
[spark]
master = "local[2]"

[streams.packets]
schema = "host string, size int"
source = {kind = "generator", rate = 500}

[queries.all]
sql = "SELECT host, size FROM packets"
sinks = [{kind = "callback", function = "hangs:hang"}]

[queries.counted]
sql = "SELECT count(*) AS n FROM packets [ROWS 10]"
"""
# The same command with less patience.
HASTY = """
import sys
from freshet.app.running import outlets
from freshet.cli.main import main

outlets.PATIENCE, outlets.HURRIED = 2.0, 1.0
sys.argv = ["freshet", "run", *sys.argv[1:]]
main()
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "hangs.py").write_text(HANGS)
    path = tmp_path / "app.toml"
    path.write_text(APP)
    return path


def start(app: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HASTY, str(app), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_signals_end_a_run_whose_callback_never_returns(app: Path) -> None:
    with start(app) as running:
        try:
            until = time.monotonic() + 600
            while not (app.parent / "called").exists():
                assert running.poll() is None, running.communicate()
                assert time.monotonic() < until
                time.sleep(0.1)
            for number in (signal.SIGINT, signal.SIGTERM):
                running.send_signal(number)
                time.sleep(1.5)
            _, errors = running.communicate()
        finally:
            running.kill()
    assert "sink all/callback does not return and is given up" in errors
    assert "warning: sink all/callback failed: it does not return (" in errors
    assert running.returncode == 1
    report = json.loads((app.parent / "report.json").read_text())
    assert report["status"] == "stopped"


@pytest.mark.long  # the same end as above, reached in another way
def test_a_run_for_some_time_ends_although_a_callback_never_returns(app: Path) -> None:
    with start(app, "--for", "3s") as running:
        try:
            _, errors = running.communicate()
        finally:
            running.kill()
    assert "sink all/callback does not return and is given up" in errors
    assert "warning: sink all/callback failed: it does not return (" in errors
    assert running.returncode == 1
    report = json.loads((app.parent / "report.json").read_text())
    assert report["queries"]["counted"]["tuples_out"] == report["streams"]["packets"]["tuples"] > 0
