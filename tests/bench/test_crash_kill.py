from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
from hypothesis import given
from hypothesis import strategies as st

from freshet.bench.crash.application import residents
from freshet.bench.crash.kill import (
    MOMENTS,
    VICTIMS,
    Kill,
    draw_kills,
    kill_all,
    kill_now,
    kill_one,
    victims_of,
    wait_for,
    workers_of,
)


@given(st.integers(1, 80), st.integers(0, 2**32))
def test_kills_repeat_with_their_seed_and_never_begin_with_the_start(count, seed):
    kills = draw_kills(count, seed)
    assert kills == draw_kills(count, seed)
    assert len(kills) == count
    assert all(kill.moment != "start-up" for kill in kills[:2])


def test_fifty_kills_are_spread_over_all_moments_and_policies():
    kills = draw_kills(50, seed=1)
    assert {kill.moment for kill in kills} == set(MOMENTS)
    assert len({kill.policy for kill in kills}) == 3
    assert {kill.victim for kill in kills} == set(VICTIMS)


@given(st.integers(1, 100), st.integers(0, 2**32))
def test_victims_are_dealt_a_third_each(count, seed):
    found = Counter(kill.victim for kill in draw_kills(count, seed))
    thirds = [found["driver"] + found["tree"], found["resident"], found["executor"]]
    assert thirds == [len(range(first, count, 3)) for first in range(3)]
    assert found["tree"] - found["driver"] in (0, 1)


def test_a_kill_at_a_file_waits_for_one(tmp_path):
    (tmp_path / "segments").mkdir()
    code = "import pathlib, sys, time; time.sleep(0.5); pathlib.Path(sys.argv[1], 'new').touch()"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "segments")]):
        wait_for(Kill("file", 0.0, "tree", "fcfs"), tmp_path, longest=0.0)
        assert (tmp_path / "segments" / "new").exists()


def _family(tmp_path: Path) -> tuple[subprocess.Popen[bytes], psutil.Process]:
    """A process with a child of its own."""
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(sys.argv[1], 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    note = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", code, str(note)])
    while not (note.exists() and note.read_text()):
        time.sleep(0.01)
    return parent, psutil.Process(int(note.read_text()))


def test_a_kill_takes_the_driver_and_where_told_all_that_it_started(tmp_path):
    for tree in (False, True):
        folder = tmp_path / str(tree)
        folder.mkdir()
        parent, child = _family(folder)
        others = kill_now(psutil.Process(parent.pid), tree)
        assert parent.wait() == -9
        assert [process.pid for process in others] == [child.pid]
        _, alive = psutil.wait_procs(others, timeout=30.0 if tree else 0.2)
        assert bool(alive) is not tree
        for process in alive:
            process.kill()


_DAEMON = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that are killed leave nothing behind
for number in range(2):
    if not os.fork():
        time.sleep(600)
print("ready", flush=True)
time.sleep(600)
"""
_DRIVER = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {_DAEMON!r}, "freshet.spark.worker.daemon"])
"""


def test_the_kill_of_a_worker_hits_a_resident(tmp_path):
    # A driver of its own: that of other tests in this process may have workers, too.
    with subprocess.Popen([sys.executable, "-c", _DRIVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        driver, kill = psutil.Process(process.pid), Kill("running", 0.99, "resident", "fcfs")
        one, other = workers_of(driver)
        assert victims_of(kill, driver, tmp_path) == [], "nobody has noted a resident"
        residents(tmp_path).write_text(f"{one.pid}\n1\n")
        assert victims_of(kill, driver, tmp_path) == [one]
        assert kill_one(victims_of(kill, driver, tmp_path), kill.place)
        one.wait()
        assert workers_of(driver) == [other]
        assert not kill_one(victims_of(kill, driver, tmp_path), kill.place)
        kill_all([*driver.children(recursive=True), driver])
