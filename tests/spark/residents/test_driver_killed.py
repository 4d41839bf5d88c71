"""A driver that is killed leaves no resident behind, whatever they do. It needs a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import psutil
import pytest

from freshet.spark.driver.residents.listener import Listener, Newcomer
from freshet.spark.worker.resident import Post, run_resident

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_PROGRAM = """
import json, signal, sys, time
from pathlib import Path
from freshet.spark.session.session import open_session
from tests.spark.kit import Harness
from tests.spark.residents.test_residents import Hooked, sleep_while_there

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored
folder = Path(sys.argv[1])
session = open_session("killed", sys.argv[2], log_folder=folder / "log", residents=lambda cores: 2)
with Harness(session, folder / "state", residents=2) as harness:
    assert harness.pool.wait_until_there(300.0)
    hooked = Hooked(harness, folder, sleep_while_there)
    hooked.submit("q")
    told = {"busy": hooked.process(), "there": [each["process"] for each in harness.pool.whereabouts()]}
    told["address"] = harness.pool._listener.address
    print(json.dumps(told), flush=True)
    time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("master", "by"),
    [("local[1]", signal.SIGKILL), pytest.param("local[2,3]", signal.SIGHUP, marks=pytest.mark.long)],
)
def test_nothing_is_left_behind(tmp_path: Path, master: str, by: signal.Signals) -> None:
    """The driver is killed, or its terminal is closed."""
    driver = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path), master], stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert driver.stdout is not None
    told = json.loads(driver.stdout.readline())
    assert len(told["there"]) == 2
    assert told["busy"] in told["there"]
    started = psutil.Process(driver.pid).children(recursive=True)
    os.kill(driver.pid, by)
    driver.wait()
    (tmp_path / "mark").unlink()
    left = psutil.wait_procs(started, timeout=600)[1]
    assert [each.name() for each in left if each.is_running()] == []
    assert not list((tmp_path / "state" / "segments").glob("unit*-d*"))


_ENDS = """
import json, sys, psutil
from freshet.app import App

app = App("ends", state=sys.argv[1], master="local[1]")
app.stream("s", "v bigint")
app.query("q", "SELECT v FROM s WHERE v > 1")
run = app.start()
run.push("s", [{"v": 1}, {"v": 2}])
assert run.drain()
[there] = run.report()["residents"]["present"]
print(json.dumps([there["process"], *(each.pid for each in psutil.Process().children(recursive=True))]), flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_a_program_that_ends_without_ending_its_run_leaves_nothing_behind(tmp_path: Path) -> None:
    """As the kernel of a notebook does that is restarted."""
    driver = subprocess.Popen(
        [sys.executable, "-c", _ENDS, str(tmp_path / "state")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert driver.stdin is not None
    assert driver.stdout is not None
    started = list(map(psutil.Process, json.loads(driver.stdout.readline())))
    driver.stdin.close()
    assert driver.wait() == 0
    left = psutil.wait_procs(started, timeout=600)[1]
    assert [each.name() for each in left if each.is_running()] == []


def test_folders_of_killed_drivers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for owner in (gone.pid, os.getpid()):
        (tmp_path / f"freshet-residents-{owner}-x").mkdir()
    Listener(b"secret", lambda newcomer: None).close()
    assert [each.name for each in tmp_path.iterdir()] == [f"freshet-residents-{os.getpid()}-x"]


_LISTENS = """
import sys
from freshet.spark.driver.residents.listener import Listener

listener = Listener(b"secret", lambda newcomer: print("welcome", flush=True))
print(listener.address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, as those of Unix sockets must be."""
    with tempfile.TemporaryDirectory(prefix="f-") as folder:
        yield Path(folder)


def test_a_resident_of_a_killed_driver_removes_its_socket(short: Path) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", _LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(short)},
    )  # fmt: skip
    assert driver.stdout is not None
    address = Path(driver.stdout.readline().strip())
    assert address.is_socket()
    residents = [
        Thread(target=list, args=(run_resident(Post(str(address), b"secret", seat, 1), iter(())),)) for seat in (0, 1)
    ]
    for resident in residents:
        resident.start()
    assert [driver.stdout.readline() for _ in residents] == ["welcome\n"] * 2
    driver.kill()
    for resident in residents:
        resident.join()
    driver.communicate()
    assert list(short.iterdir()) == []


def test_a_resident_that_a_driver_has_replaced_leaves_its_socket_there(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short))
    come: Queue[Newcomer] = Queue()
    listener = Listener(b"secret", come.put)
    address = str(listener.address)
    resident = Thread(target=list, args=(run_resident(Post(address, b"secret", 0, 1), iter(())),))
    resident.start()
    come.get().channel.close()
    resident.join()
    assert Path(address).is_socket()
    listener.close()
    assert list(short.iterdir()) == []
