"""Odd rows by every way into a log, in a process of their own: a signal is a failed test, not the end of the suite."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

WAYS = ["push", "frame", "csv", "json", "parquet"]


def fuzz(way: str, rows: int, seed: int, limit: float) -> None:
    command = [sys.executable, "-m", "tests.log.intake.fuzz_child", way, str(rows), str(seed)]
    child = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=limit)
    assert child.returncode == 0, child.stderr[-3000:]
    counts = json.loads(child.stdout)
    assert counts["exceptions"] == 0, child.stderr[-3000:]
    assert counts["rows"] >= rows
    assert counts["tuples"] + counts["dead"] == counts["rows"]
    assert counts["letters"] == counts["dead"]


def test_odd_rows_become_tuples_or_dead_letters() -> None:
    fuzz("all", 20_000, 1, limit=280)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("way", WAYS)
def test_a_million_odd_rows_become_tuples_or_dead_letters(way: str) -> None:
    fuzz(way, 1_000_000 // len(WAYS), 20261116, limit=7000)
