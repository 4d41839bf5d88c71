"""Something to look at while Spark starts, which takes from a few seconds to the better part of a minute."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def starting() -> Iterator[Callable[[str], None]]:
    """Gives a function that reports the progress of a start on standard error: a spinner with seconds on a terminal,
    lines elsewhere.

    Ctrl-C and SIGTERM raise :class:`Interrupted` meanwhile, because nothing runs yet that would have to be drained.
    """
    with _raising(), _shown() as tell:
        yield tell


class Interrupted(BaseException):
    """A signal has ended a start."""

    def __init__(self, number: int) -> None:
        super().__init__(f"{signal.Signals(number).name} during the start: nothing has run")
        self.code = 128 + number


@contextmanager
def _raising() -> Iterator[None]:
    """Lets the first signal raise in the middle of the start, and the second one end the process."""
    heard = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        if heard:
            os._exit(128 + number)
        heard = True
        raise Interrupted(number)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _shown() -> Iterator[Callable[[str], None]]:
    if not sys.stderr.isatty():
        yield lambda text: print(f"{text} ...", file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Standard output is left alone: a console sink may already write rows to it.
    with Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as shown:
        task = shown.add_task("", total=None, visible=False)
        yield lambda text: shown.update(task, description=f"{text} ...", visible=True)
