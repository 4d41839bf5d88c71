"""When and how a process is killed: drawn from a seed, aimed at the moments that hurt."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal, get_args

import psutil

KillMoment = Literal["start-up", "running", "file", "commit"]
MOMENTS: Final[tuple[KillMoment, ...]] = get_args(KillMoment)
Victim = Literal["driver", "tree", "resident", "executor"]
VICTIMS: Final[tuple[Victim, ...]] = get_args(Victim)

_POLICIES: Final = ("everything", "fcfs", "rr(200)")
_LONGEST_WATCH: Final = 5.0
_SHARES: Final = (1, 1, 2, 2)
"""A third each for drivers, with all that they started or without, for Python workers, and for executors."""
_DAEMON: Final = "freshet.spark.worker.daemon"
_EXECUTOR: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill to come.

    Args:
        moment: ``start-up``: at some point on the way to running; ``running``: some time after; ``file``: when a
            segment file has just appeared, before it is committed; ``commit``: while the store is written.
        place: A number in [0, 1): the place in the range of possible delays.
        victim: ``driver``: the JVM and the Python workers find out by themselves; ``tree``: they die with it;
            ``resident``: a Python worker, while the driver goes on; ``executor``: the JVM of an executor, too, which
            needs a cluster.
        policy: The policy of the process until then.
    """

    moment: KillMoment
    place: float
    victim: Victim
    policy: str


def draw_kills(count: int, seed: int) -> list[Kill]:
    """Draws ``count`` kills, the same for the same seed. The first two hit a running process, so that there is
    something to lose.

    >>> [kill.moment for kill in draw_kills(6, seed=1)]
    ['running', 'running', 'commit', 'running', 'running', 'commit']
    """
    draw = random.Random(seed)
    kills = []
    for number in range(count):
        moment: KillMoment = draw.choices(MOMENTS, (0.2, 0.3, 0.2, 0.3))[0]
        if number < 2 and moment == "start-up":
            moment = "running"
        kills.append(Kill(moment, draw.random(), draw.choices(VICTIMS, _SHARES)[0], draw.choice(_POLICIES)))
    return kills


def needs_cluster(kills: Sequence[Kill]) -> bool:
    """Whether a process needs executors of its own: one of them is killed before the process itself is.

    Args:
        kills: To come, from the start of the process on.

    >>> victims: list[Victim] = ["resident", "executor", "tree", "resident", "driver", "executor"]
    >>> kills = [Kill("running", 0.0, victim, "fcfs") for victim in victims]
    >>> [needs_cluster(kills[first:]) for first in range(6)]
    [True, True, False, False, False, True]
    """
    lives = takewhile(lambda kill: kill.victim in ("resident", "executor"), kills)
    return any(kill.victim == "executor" for kill in lives)


def wait_for(kill: Kill, state: Path, longest: float) -> None:
    """Returns at the moment at which a running process is to be killed.

    Args:
        kill: A kill at a moment other than ``start-up``.
        state: The process's state folder.
        longest: Maximum seconds that a process runs before.
    """
    time.sleep(kill.place * longest)
    if kill.moment == "file":
        _wait_for_change(lambda: (state / "segments").stat().st_mtime_ns)
        time.sleep(kill.place * 0.005)
    elif kill.moment == "commit":
        _wait_for_change(lambda: _touched(state / "store.db-wal"))
        time.sleep(kill.place * 0.002)


def _touched(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _wait_for_change(look: Callable[[], object]) -> None:
    until, before = time.monotonic() + _LONGEST_WATCH, look()
    while look() == before and time.monotonic() < until:
        time.sleep(0.0002)


def kill_now(driver: psutil.Process, tree: bool) -> list[psutil.Process]:
    """Kills a driver; with ``tree``, also everything that it started.

    Returns:
        What it had started, dead or about to find out.
    """
    others: list[psutil.Process] = driver.children(recursive=True)
    os.kill(driver.pid, signal.SIGKILL)
    if tree:
        kill_all(others)
    return others


def kill_worker(driver: psutil.Process, place: float) -> bool:
    """Kills one of the Python workers of a driver, the one at a place in [0, 1); returns whether there was one."""
    others = {process.pid: process for process in driver.children(recursive=True)}
    workers = sorted(pid for pid, process in others.items() if _is_worker(process) and _is_worker(_parent(process)))
    if not workers:
        return False
    kill_all([others[workers[int(place * len(workers))]]])
    return True


def kill_executor(driver: psutil.Process, place: float) -> bool:
    """Kills the JVM of an executor of a driver, the one at a place in [0, 1); returns whether there was one."""
    others = {process.pid: process for process in driver.children(recursive=True)}
    executors = sorted(pid for pid, process in others.items() if _runs(process, _EXECUTOR))
    if not executors:
        return False
    kill_all([others[executors[int(place * len(executors))]]])
    return True


def _parent(process: psutil.Process) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        found: psutil.Process | None = process.parent()
        return found
    return None


def _is_worker(process: psutil.Process | None) -> bool:
    """Whether a process is Freshet's daemon, or was forked from it: they have the same command line."""
    return process is not None and _runs(process, _DAEMON)


def _runs(process: psutil.Process, what: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        return what in process.cmdline()
    return False


def kill_all(processes: list[psutil.Process]) -> None:
    """Kills processes; some of them may already be gone."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
