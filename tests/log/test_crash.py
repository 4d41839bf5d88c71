from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from freshet.log import DurableLines, Log

ROOT = Path(__file__).parents[2]


def run_and_kill(state: Path, seconds: float) -> int:
    """Lets the child work for a while after its first acknowledgement; returns the last one."""
    command = [sys.executable, "-m", "tests.log.crash_child", str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(seconds)
        child.kill()
        told = (first + child.stdout.read()).splitlines(keepends=True)
    assert child.returncode == -9
    return int([line for line in told if line.endswith("\n")][-1])


def check(state: Path, acknowledged: int) -> None:
    with Log.open(state) as log:
        end = log.end("in")
        assert end >= acknowledged
        assert log.read("in", 0, end)["v"].to_pylist() == list(range(end))
        assert log.source_position("in") == {"at": end}

        dead = [json.loads(line)["batch"] for line in (state / "dead" / "in.jsonl").read_text().splitlines()]
        assert len(dead) == len(set(dead)) == log.meters().streams["in"].dead
        starts = [part.first for part in log.train("in", 0, end).segments]
        assert dead == starts

        # Every input offset took effect once: behind the cursor all of it, beyond it nothing.
        cursor, sunk = log.cursor("q"), log.cursor("sink")
        assert cursor is not None
        assert sunk is not None
        assert log.end("out") == cursor
        DurableLines(state / "sink.txt", log.reader_state("sink").get("bytes", 0)).close()
        # A process that was killed before it had written a line has left no file.
        written = (state / "sink.txt").read_text() if (state / "sink.txt").exists() else ""
        output = [int(line) for line in written.splitlines()]
        assert output == [2 * value for value in range(sunk)]
        if sunk < cursor:
            waiting = log.read("out", sunk, cursor)["v"].to_pylist()
            assert waiting == [2 * value for value in range(sunk, cursor)]


def crash(state: Path, kills: int, seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(kills):
        check(state, run_and_kill(state, generator.uniform(0.0, 0.4)))


def test_killed_at_random_moments_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    crash(tmp_path, kills=8, seed=1)


@pytest.mark.long
def test_killed_very_often(tmp_path: Path) -> None:
    crash(tmp_path, kills=100, seed=2)
