from __future__ import annotations

import subprocess
import sys

import pytest

from freshet.bench.rig.meter import ProcessMeter


def test_a_process_that_has_ended_holds_nothing():
    before = ProcessMeter().memory()
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read()  # it has closed its output: it ends, and nobody has waited for it yet
        assert ProcessMeter().memory().workers == pytest.approx(before.workers, abs=40)
    assert child.returncode == 0


def test_memory_that_is_written_counts():
    before = ProcessMeter().memory().driver
    held = bytearray(b"x") * 50_000_000
    assert ProcessMeter().memory().driver - before == pytest.approx(len(held) / 1e6, abs=10)
