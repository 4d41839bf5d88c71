"""How much memory the processes of an application hold, by kind of process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psutil

_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes that would be free if the processes ended (their unique set), and open files.

    ``workers`` are Spark's Python workers and the process that forks them.
    """

    driver: float
    jvm: float
    workers: float
    worker_processes: int
    open_files: int

    @property
    def total(self) -> float:
        """All of it."""
        return self.driver + self.jvm + self.workers


def measure() -> Memory:
    """The memory of this process and of all that it has started.

    >>> measure().driver > 1
    True
    """
    own = psutil.Process()
    sizes: dict[str, list[float]] = {"jvm": [], "workers": []}
    files = own.num_fds()
    for process in own.children(recursive=True):
        # A worker may end while one looks at it.
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            kind = "jvm" if process.name().startswith("java") else "workers"
            sizes[kind].append(_unique(process))
            files += process.num_fds()
    jvm, workers = sum(sizes["jvm"]), sum(sizes["workers"])
    return Memory(_unique(own), jvm, workers, len(sizes["workers"]), files)


def _unique(process: psutil.Process) -> float:
    size: float = process.memory_full_info().uss / _MB
    return size


def live_heap() -> Callable[[], float]:
    """What measures the megabytes that are reachable on the heap of this process's Spark, by a full collection."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None or context._jvm is None:
        raise RuntimeError("there is no Spark in this process")
    jvm = context._jvm
    bean = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()

    def measure_heap() -> float:
        jvm.java.lang.System.gc()
        used: float = bean.getHeapMemoryUsage().getUsed() / _MB
        return used

    return measure_heap
