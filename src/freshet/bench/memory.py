"""How much memory the processes of an application hold, by kind of process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_MB: Final = 1e6
_ROLLUP: Final = Path("/proc/self/smaps_rollup")


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes of pages that only the process holds and that are no copy of a file, and open files.

    Pages of files (libraries, segments) are the system's to drop, and who shares them depends on what else runs on the
    machine: with the last other JVM, 20 MB of libraries would seem to be new.

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


def measure(process: psutil.Process | None = None) -> Memory:
    """The memory of a process (by default this one) and of all that it has started.

    >>> measure().driver > 1
    True
    """
    own = process or psutil.Process()
    sizes: dict[str, list[float]] = {"jvm": [], "workers": []}
    files = own.num_fds()
    for child in own.children(recursive=True):
        # A worker may end while one looks at it.
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            kind = "jvm" if child.name().startswith("java") else "workers"
            sizes[kind].append(_own(child))
            files += child.num_fds()
    jvm, workers = sum(sizes["jvm"]), sum(sizes["workers"])
    return Memory(_own(own), jvm, workers, len(sizes["workers"]), files)


def _own(process: psutil.Process) -> float:
    if not _ROLLUP.exists():
        unique: float = process.memory_full_info().uss / _MB
        return unique
    try:
        lines = Path(f"/proc/{process.pid}/{_ROLLUP.name}").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(process.pid) from None
    # One that has ended and was not waited for yet has a file without lines.
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:")) * 1024 / _MB


@dataclass(frozen=True, slots=True)
class Kept:
    """What is in use, not what is held in reserve.

    Args:
        heap: Megabytes that are reachable on the JVM's heap.
        code: Megabytes of classes and compiled code in the JVM.
        blocks: Blocks of memory that Python holds in this process.
    """

    heap: float
    code: float
    blocks: int


def measure_kept() -> Callable[[], Kept]:
    """What measures, by full collections, what this process and its Spark keep."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None or context._jvm is None:
        raise RuntimeError("there is no Spark in this process")
    jvm = context._jvm
    beans = jvm.java.lang.management.ManagementFactory
    memory = beans.getMemoryMXBean()

    def look() -> Kept:
        jvm.java.lang.System.gc()
        gc.collect()
        heap, code = memory.getHeapMemoryUsage().getUsed(), memory.getNonHeapMemoryUsage().getUsed()
        return Kept(heap / _MB, code / _MB, sys.getallocatedblocks())

    return look
