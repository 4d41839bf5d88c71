"""Where a benchmark runs: a folder for its state, and a way to tell people how far it is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from freshet.model import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_BETWEEN_LINES: Final = 15.0


@dataclass(frozen=True, slots=True)
class Stage:
    """What every benchmark gets.

    Args:
        folder: An empty folder of its own; deleted afterwards.
        console: For messages to people; never standard output.
    """

    folder: Path
    console: Console = field(default_factory=lambda: Console(stderr=True))

    @property
    def logs(self) -> Path:
        """Where Spark's messages go."""
        return self.folder / "spark-logs"

    def say(self, text: str) -> None:
        """Prints a line for people."""
        self.console.print(text, highlight=False, markup=False)

    @contextmanager
    def spark(
        self, bench: str, master: str | None = None, settings: Mapping[str, str] | None = None
    ) -> Iterator[SparkSession]:
        """Starts Spark for a benchmark; in this process, unless the master says otherwise, with slots for residents."""
        from freshet.spark.session.embedded import embedded_session

        self.say("starting Spark ...")
        opened = embedded_session(
            f"freshet bench {bench}", master, settings, log_folder=self.logs, residents=lambda cores: cores
        )
        with opened as session:
            yield session

    @contextmanager
    def steps(self, title: str, total: int) -> Iterator[Callable[[], None]]:
        """Shows progress over a number of steps: a bar on a terminal, a line now and then elsewhere.

        Yields:
            A function to call after each step.
        """
        if not self.console.is_terminal:
            yield self._lines(title, total)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self.console) as progress:
            task = progress.add_task(title, total=total)
            yield lambda: progress.advance(task)

    def _lines(self, title: str, total: int) -> Callable[[], None]:
        done, told = 0, time.monotonic()

        def advance() -> None:
            nonlocal done, told
            done += 1
            if done == total or time.monotonic() - told >= _SECONDS_BETWEEN_LINES:
                told = time.monotonic()
                self.say(f"{title}: {done} of {total}")

        return advance


@contextmanager
def open_stage(parent: Path | None = None) -> Iterator[Stage]:
    """A stage in a new folder below ``parent`` (or where temporary files go)."""
    if parent is not None and not parent.is_dir():
        raise UserError(f"{parent} is not a folder; name one on the disk that you want to measure")
    folder = Path(tempfile.mkdtemp(prefix="freshet-bench-", dir=parent))
    try:
        yield Stage(folder)
    finally:
        # A JVM that is ending may still write into it.
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def silent_stdout() -> Iterator[None]:
    """Sends what this process and its children print to standard error, so that stdout holds the result alone."""
    try:
        descriptor = sys.__stdout__.fileno() if sys.__stdout__ is not None else None
    except (OSError, ValueError):
        descriptor = None
    if descriptor is None:
        with redirect_stdout(sys.stderr):
            yield
        return
    sys.stdout.flush()
    saved = os.dup(descriptor)
    try:
        os.dup2(2, descriptor)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, descriptor)
        os.close(saved)
