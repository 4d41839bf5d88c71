"""A side of ``freshet bench many`` in a process of its own, with a Spark of its own.

So the CPU time and the memory of a side are those of its processes, no side profits from Java code that another one
made hot, and a side that hangs can be ended. The process lives through all trials with the same number of queries, and
is idle while other sides are at work.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import psutil
from numpy.typing import NDArray

from freshet.bench.many.answers import GivenRows
from freshet.bench.many.queries import ManyQuery
from freshet.bench.rig.meter import ByKind
from freshet.bench.rig.processes import still_there

HEAP: Final = "2g"
"""Heap of every side's JVM."""
LOOK: Final = 0.02
"""Seconds between two looks into the folder, of Freshet and of the floor."""
GRACE: Final = 60.0
"""Seconds that a call may take beyond its own limit before the side counts as hung."""

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SideSetting:
    """What a side is started with.

    Args:
        queries: The queries.
        master: Spark master.
        logs: Folder for Spark's messages.
    """

    queries: tuple[ManyQuery, ...]
    master: str
    logs: Path


@dataclass(frozen=True, slots=True)
class Opening:
    """What a trial is opened with.

    Args:
        folder: An empty folder; the side watches ``input`` in it.
        rows: Number of rows of an input file.
        sinks: Whether outputs go to Parquet.
        limit: Seconds after which it stops starting more queries.
        train: Maximum number of rows of a train; None: as many as wait.
    """

    folder: Path
    rows: int
    sinks: bool
    limit: float
    train: int | None = None

    @property
    def input(self) -> Path:
        """Where files come."""
        return self.folder / "input"

    @property
    def output(self) -> Path:
        """Where Parquet goes, a folder for each query."""
        return self.folder / "output"


@dataclass(frozen=True, slots=True)
class Notes:
    """What a side knows of a trial.

    Args:
        ready: For each query and input file, when its output could be read; NaN: not yet.
        rounds: When each step or micro-batch ended.
        sunk: Like ``ready``, for the Parquet sink behind an output that could be read before; None: there is none.
    """

    ready: Times
    rounds: Times
    sunk: Times | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """How a backlog was worked off.

    Args:
        rows: Number of input rows that were measured.
        seconds: Seconds that they took.
        answering: CPU time from the log to the output.
        taking_in: CPU time from the files to the log.
    """

    rows: int
    seconds: float
    answering: ByKind
    taking_in: ByKind


class Side(Protocol):
    """A system under test."""

    def open(self, opening: Opening) -> int:
        """Starts all queries over an empty folder; returns how many could be started within the limit."""

    def wait(self, files: int, seconds: float) -> bool:
        """Waits until every query has answered this many files; returns whether that is so."""

    def notes(self, files: int) -> Notes:
        """What is known of the first ``files`` files."""

    def answers(self, files: int) -> list[GivenRows]:
        """What every query has given."""

    def close(self) -> None:
        """Ends all queries."""


class Remote:
    """A side in another process; its methods are called by :meth:`call`.

    Args:
        make: Makes the side, in its process; a function of a module.
        setting: What it is made with.
    """

    def __init__(self, make: Callable[[SideSetting], Side], setting: SideSetting) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, make, setting), name=make.__name__)
        self._process.start()
        theirs.close()
        self.process = psutil.Process(self._process.pid)
        self._receive(GRACE * 2)

    def call(self, name: str, *arguments: Any, within: float = 0.0) -> Any:
        """Calls a method; ``within`` is how long the method itself may take.

        Raises:
            SideHangs: It takes far longer.
        """
        self._connection.send((name, arguments))
        return self._receive(within + GRACE)

    def _receive(self, seconds: float) -> Any:
        if not self._connection.poll(seconds):
            raise SideHangs(f"a side of the benchmark did not answer for {seconds:g} s")
        try:
            good, value = self._connection.recv()
        except EOFError:
            raise SideFailed("a side of the benchmark has ended by itself") from None
        if not good:
            raise SideFailed(f"a side of the benchmark failed:\n{value}")
        return value

    def end(self) -> None:
        """Ends the process and everything that it has started."""
        with suppress(psutil.NoSuchProcess):
            family = [*self.process.children(recursive=True), self.process]
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            still_there(family, 10.0)
        self._process.join()
        self._connection.close()


class SideFailed(RuntimeError):
    """A side raised, or its process has ended."""


class SideHangs(SideFailed):
    """A side did not answer in time."""


def serve(connection: Connection, make: Callable[[SideSetting], Side], setting: SideSetting) -> None:
    """The loop of a side's process, until the other end is gone."""
    try:
        side = make(setting)
        connection.send((True, None))
        while True:
            name, arguments = connection.recv()
            try:
                reply = True, getattr(side, name)(*arguments)
            except Exception:
                reply = False, traceback.format_exc()
            connection.send(reply)
    except (EOFError, BrokenPipeError):
        pass
    except Exception:
        connection.send((False, traceback.format_exc()))
    finally:
        # What still runs in Spark's threads does not matter any more; the JVM ends with its standard input.
        os._exit(0)
