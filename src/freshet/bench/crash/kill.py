"""When and how a process is killed: drawn from a seed, aimed at the moments that hurt."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal, get_args

import psutil

from freshet.bench.crash.application import residents

KillMoment = Literal["start-up", "running", "file", "commit"]
MOMENTS: Final[tuple[KillMoment, ...]] = get_args(KillMoment)
Victim = Literal["driver", "tree", "resident", "executor"]
VICTIMS: Final[tuple[Victim, ...]] = get_args(Victim)

_POLICIES: Final = ("everything", "fcfs", "rr(200)")
_LONGEST_WATCH: Final = 5.0
_DEALT: Final[tuple[tuple[Victim, ...], ...]] = (("tree", "driver"), ("resident",), ("executor",))
"""A third each. A driver dies alone or with all that it started, in turns."""
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
            ``resident``: a resident, while the driver goes on, or another Python worker if there is no resident;
            ``executor``: the JVM of an executor, too, which needs a cluster.
        policy: The policy of the process until then.
    """

    moment: KillMoment
    place: float
    victim: Victim
    policy: str


def draw_kills(count: int, seed: int) -> list[Kill]:
    """Draws ``count`` kills, the same for the same seed. The victims are dealt, a third each, and shuffled. The first
    two hit a running process, so that there is something to lose.

    >>> [kill.moment for kill in draw_kills(6, seed=1)]
    ['running', 'running', 'start-up', 'file', 'running', 'file']
    >>> sorted(kill.victim for kill in draw_kills(6, seed=1))
    ['driver', 'executor', 'executor', 'resident', 'resident', 'tree']
    """
    draw = random.Random(seed)
    # A remainder goes to drivers first: those kills hit everything else, too.
    victims = [kinds[number // len(_DEALT) % len(kinds)] for number in range(count) for kinds in [_DEALT[number % 3]]]
    draw.shuffle(victims)
    kills = []
    for number, victim in enumerate(victims):
        moment: KillMoment = draw.choices(MOMENTS, (0.2, 0.3, 0.2, 0.3))[0]
        if number < 2 and moment == "start-up":
            moment = "running"
        kills.append(Kill(moment, draw.random(), victim, draw.choice(_POLICIES)))
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


def victims_of(kill: Kill, driver: psutil.Process, folder: Path) -> list[psutil.Process]:
    """The processes, one of which a kill is to hit, while their driver goes on: its residents or the JVMs of its
    executors.

    Args:
        kill: Of a resident or an executor.
        driver: The driver.
        folder: Its folder, where it notes which processes are residents.
    """
    others = {process.pid: process for process in driver.children(recursive=True)}
    if kill.victim == "executor":
        return _ordered(process for process in others.values() if _runs(process, _EXECUTOR))
    told = _residents(folder)
    return [each for each in _workers(others.values()) if each.pid in told]


def workers_of(driver: psutil.Process) -> list[psutil.Process]:
    """The Python workers of a driver, residents or others."""
    return _workers(driver.children(recursive=True))


def kill_one(among: Sequence[psutil.Process], place: float) -> bool:
    """Kills one of some processes, the one at a place in [0, 1); returns whether there was one."""
    kill_all([among[int(place * len(among))]] if among else [])
    return bool(among)


def _workers(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    return _ordered(each for each in processes if _is_worker(each) and _is_worker(_parent(each)))


def _ordered(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    return sorted(processes, key=lambda process: process.pid)


def _residents(folder: Path) -> set[int]:
    try:
        return set(map(int, residents(folder).read_text().split()))
    except FileNotFoundError:
        return set()


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
