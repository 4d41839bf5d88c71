"""Something to look at while Spark starts: that takes from a few seconds to the better part of a minute."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def starting() -> Iterator[Callable[[str], None]]:
    """A way to say what a start is about, on standard error: a spinner with its seconds on a terminal, else a line."""
    if not sys.stderr.isatty():
        yield lambda text: print(f"{text} ...", file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Standard output is left alone: the rows of a console sink may already come.
    with Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as shown:
        task = shown.add_task("", total=None, visible=False)
        yield lambda text: shown.update(task, description=f"{text} ...", visible=True)
