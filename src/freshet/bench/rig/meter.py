"""The process meter: CPU time, private memory and open files of a process and its descendants, by kind."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import psutil

T = TypeVar("T")

KINDS: Final = ("driver", "jvm", "workers")
_MB: Final = 1e6
_ROLLUP: Final = Path("/proc/self/smaps_rollup")


@dataclass(frozen=True, slots=True)
class ByKind:
    """An amount by kind of process; ``workers`` are Spark's Python workers and the process that forks them.

    >>> (ByKind(3.0, 2.0, 1.0) - ByKind(1.0)).times(0.5)
    ByKind(driver=1.0, jvm=1.0, workers=0.5)
    """

    driver: float = 0.0
    jvm: float = 0.0
    workers: float = 0.0

    @property
    def total(self) -> float:
        """The sum over all kinds."""
        return self.driver + self.jvm + self.workers

    def __sub__(self, other: ByKind) -> ByKind:
        return ByKind(self.driver - other.driver, self.jvm - other.jvm, self.workers - other.workers)

    def times(self, factor: float) -> ByKind:
        """A multiple of it."""
        return ByKind(self.driver * factor, self.jvm * factor, self.workers * factor)


@dataclass(frozen=True, slots=True)
class ProcessMemory(ByKind):
    """Megabytes of pages that only the process holds and that are no copy of a file, and the number of open files.

    The system may drop pages of files (libraries, segments), and other programs on the machine may share them: when the
    last other JVM ends, 20 MB of libraries would seem to be new.
    """

    worker_processes: int = 0
    open_files: int = 0


class ProcessMeter:
    """Measures a process (by default this one) and its descendants.

    >>> meter = ProcessMeter()
    >>> meter.cpu().driver > 0, meter.memory().driver > 1
    (True, True)
    """

    def __init__(self, process: psutil.Process | None = None) -> None:
        self._process = process or psutil.Process()

    def cpu(self) -> ByKind:
        """Seconds of CPU, in user mode and in the system, including ended processes that were waited for."""
        return ByKind(**{kind: sum(each) for kind, each in self._each(lambda one: sum(one.cpu_times()[:4])).items()})

    def memory(self) -> ProcessMemory:
        """The memory that is held now."""
        found = self._each(lambda one: (_own(one), one.num_fds()))
        sizes = {kind: sum(size for size, _ in each) for kind, each in found.items()}
        files = sum(count for each in found.values() for _, count in each)
        return ProcessMemory(**sizes, worker_processes=len(found["workers"]), open_files=files)

    def _each(self, look: Callable[[psutil.Process], T]) -> dict[str, list[T]]:
        found: dict[str, list[T]] = {kind: [] for kind in KINDS}
        found["driver"].append(look(self._process))
        for child in self._process.children(recursive=True):
            # A worker may end while we look at it; then its parent has its seconds.
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                found["jvm" if child.name().startswith("java") else "workers"].append(look(child))
        return found

    @contextmanager
    def watching(self, every: float) -> Iterator[list[ProcessMemory]]:
        """Looks at the memory now and then, until the end; each look stops the processes for some milliseconds.

        Yields:
            What was seen so far.

        >>> with ProcessMeter().watching(1.0) as seen:
        ...     pass
        >>> peak(seen).driver > 1
        True
        """
        seen, ended = [self.memory()], threading.Event()

        def look() -> None:
            while not ended.wait(every):
                with suppress(psutil.NoSuchProcess):
                    seen.append(self.memory())

        thread = threading.Thread(target=look, name="process-meter", daemon=True)
        thread.start()
        try:
            yield seen
        finally:
            ended.set()
            thread.join()


def peak(seen: list[ProcessMemory]) -> ByKind:
    """The peak of each kind, whenever it was.

    >>> peak([ProcessMemory(1.0, 5.0), ProcessMemory(2.0, 4.0)])
    ByKind(driver=2.0, jvm=5.0, workers=0.0)
    """
    return ByKind(*(max(getattr(each, kind) for each in seen) for kind in KINDS))


def _own(process: psutil.Process) -> float:
    if not _ROLLUP.exists():
        unique: float = process.memory_full_info().uss / _MB
        return unique
    try:
        lines = Path(f"/proc/{process.pid}/{_ROLLUP.name}").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(process.pid) from None
    # A process that has ended and was not yet waited for has a file without lines.
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:")) * 1024 / _MB


@dataclass(frozen=True, slots=True)
class Kept:
    """What is in use, without reserves.

    Args:
        heap: Megabytes that are reachable on the JVM's heap.
        code: Megabytes of classes and compiled code in the JVM.
        blocks: Number of memory blocks that Python holds in this process.
    """

    heap: float
    code: float
    blocks: int


def measure_kept() -> Callable[[], Kept]:
    """Returns a function that measures, by full collections, what this process and its Spark keep."""
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
