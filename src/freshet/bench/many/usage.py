"""CPU time and memory of a side of ``freshet bench many``: its process and all that it has started."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import psutil

from freshet.bench.memory import Memory, measure

SAMPLE: Final = 1.0
"""Seconds between looks at the memory: each of them holds up the process that is looked at for some milliseconds."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds of CPU, in user mode and in the system; ``workers`` are Spark's Python workers and what forks them."""

    driver: float = 0.0
    jvm: float = 0.0
    workers: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.driver + self.jvm + self.workers

    def __sub__(self, other: Cpu) -> Cpu:
        return Cpu(self.driver - other.driver, self.jvm - other.jvm, self.workers - other.workers)

    def times(self, factor: float) -> Cpu:
        """A part of it."""
        return Cpu(self.driver * factor, self.jvm * factor, self.workers * factor)


def cpu_of(process: psutil.Process) -> Cpu:
    """Of a process and its descendants, those that have ended and were waited for included.

    >>> cpu_of(psutil.Process()).driver > 0
    True
    """
    seconds = {"jvm": 0.0, "workers": 0.0}
    for child in process.children(recursive=True):
        # A worker may end while one looks at it; then the one that forked it has its seconds.
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            seconds["jvm" if child.name().startswith("java") else "workers"] += sum(child.cpu_times()[:4])
    return Cpu(sum(process.cpu_times()[:4]), **seconds)


class Peak:
    """The memory that was seen, in megabytes.

    >>> peak = Peak()
    >>> for driver in (5.0, 9.0, 6.0):
    ...     peak.see(Memory(driver, 100.0, 20.0, 2, 30))
    >>> peak.mb, peak.driver_growth_mb
    (129.0, 1.0)
    """

    def __init__(self) -> None:
        self.mb = 0.0
        """The most that all processes together held."""
        self._driver: list[float] = []

    def see(self, memory: Memory) -> None:
        """Takes a look into account."""
        self.mb = max(self.mb, memory.total)
        self._driver.append(memory.driver)

    @property
    def driver_mb(self) -> float:
        """The most that the driver held."""
        return max(self._driver, default=0.0)

    @property
    def driver_growth_mb(self) -> float:
        """How much more the driver held at the end than at the beginning."""
        return self._driver[-1] - self._driver[0] if self._driver else 0.0


@contextmanager
def watching(process: psutil.Process) -> Iterator[Peak]:
    """Looks at the memory of a process and its descendants now and then."""
    peak, ended = Peak(), threading.Event()

    def look() -> None:
        while True:
            with suppress(psutil.NoSuchProcess):
                peak.see(measure(process))
            if ended.wait(SAMPLE):
                return

    thread = threading.Thread(target=look, name="memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()
