"""``freshet run``."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from freshet.cli.check import AppPath
from freshet.cli.starting import starting

if TYPE_CHECKING:
    from freshet.app import Run

LINE: Final = 5.0
"""Seconds between lines where there is no terminal."""
FRAME: Final = 0.5
"""Seconds between pictures of the live table."""
LAST: Final = 120.0
"""Seconds after the second signal in which the process ends, whatever it does."""


EXAMPLES: Final = """\b
Examples:
  freshet run app.toml
  freshet run app.toml --for 60s --policy "rr(1000)"
  freshet run app.toml --master spark://host:7077
  freshet run app.toml --for 60s --json > report.json
"""


def run(
    app: AppPath,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Policy, instead of the file's; see `freshet policies`.")
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="Stop after this time (60s, 5m), once what waits is answered."),
    ] = None,
    master: Annotated[str | None, typer.Option(metavar="URL", help="Spark master, instead of the file's.")] = None,
    try_again: Annotated[
        bool, typer.Option("--try-again", help="Let queries run again that stay out because runs died with them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="At the end print the report, and nothing else.")] = False,
) -> None:
    """Run an application.

    It runs until its sources end, --for has passed, or Ctrl-C. Ctrl-C (or SIGTERM) stops the sources, processes what
    waits and leaves; a second one leaves after what is running, and what does not end is left alone. Either way nothing
    is lost: the next run goes on where this one stopped.

    The exit code is 0, or 1 where at the end a source failed, a query is quarantined or a sink fails, or 2 where the
    application is wrong.
    """
    from freshet.app import App
    from freshet.model import parse_duration

    seconds = None if for_ is None else parse_duration(for_)
    made = App.from_toml(app)
    warnings.showwarning = _show_warning
    # With --json nothing but the report may reach standard output, not even the rows of a console sink.
    with redirect_stdout(sys.stderr) if as_json else nullcontext(), _told_at_the_end(), _Interrupts() as interrupts:
        with starting() as tell:
            started = made.start(policy=policy, master=master, progress=tell, try_again=try_again)
        try:
            for note in started.notes:
                print(note, file=sys.stderr)
            with _screen(started, interrupts, quiet=as_json) as show:
                _watch(started, interrupts, seconds, show)
        finally:
            started.stop(drain=False)
    report = started.report()
    if as_json:
        print(json.dumps(report, indent=2, allow_nan=False))
    elif made.report is not None:
        print(f"report: {made.report}")
    failures = list(_failures(report))
    for failure in [*_surprises(report), *failures]:
        print(f"warning: {failure}", file=sys.stderr)
    if failures:
        raise typer.Exit(1)


@contextmanager
def _told_at_the_end() -> Iterator[None]:
    """Keeps the warnings of quarantined queries back: the table shows them, and the last lines do."""
    from freshet.app.observers import LOGGER

    def nothing(record: logging.LogRecord) -> bool:
        return False

    LOGGER.addFilter(nothing)
    try:
        yield
    finally:
        LOGGER.removeFilter(nothing)


def _failures(report: Mapping[str, Any]) -> Iterator[str]:
    """What did not do its work, in a sentence each."""
    from freshet.spark.driver.suspects import STAYS_OUT

    for name, source in report["sources"].items():
        if source["state"] == "failed":
            yield f"the source of stream {name} failed: {_first_line(source['reason'])}"
    for name, query in report["queries"].items():
        if query["state"] == "quarantined":
            reason, waiting = _first_line(query["reason"]), f"{query['waiting']:,} tuples wait for it"
            again = "" if reason.endswith(STAYS_OUT) else "; the next run tries it again from there"
            yield f"query {name} is quarantined: {reason} ({waiting}{again})"
    for name, sink in report["sinks"].items():
        if sink["state"] == "failing":
            waiting = f"{sink['waiting']:,} rows are not delivered; the next run goes on with them"
            yield f"sink {name} failed: {_first_line(sink['reason'])} ({waiting})"


def _surprises(report: Mapping[str, Any]) -> Iterator[str]:
    """What a person did not expect, although all did their work."""
    for name, sink in report["sinks"].items():
        if sink["note"]:
            yield f"sink {name}: {_first_line(sink['note'])}"


def _first_line(text: str | None) -> str:
    return next(iter((text or "").splitlines()), "no reason was given")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from freshet.model.telling import masked

    print(f"warning: {masked(str(message))}", file=sys.stderr)


class _Interrupts:
    """Counts SIGINT and SIGTERM instead of dying of them."""

    def __init__(self) -> None:
        self.count = 0
        self.hurried = False
        """Whether the run was told not to drain any more."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1

    @property
    def hint(self) -> str:
        """What a run that ends does, and how to leave it sooner."""
        if self.hurried:
            return "leaving"
        return f"draining, Ctrl-C {'again ' if self.count else ''}to leave"


def _watch(run: Run, interrupts: _Interrupts, seconds: float | None, show: Any) -> None:
    """Shows the run until it should end, and then until it has drained."""
    until = None if seconds is None else time.monotonic() + seconds
    while not run.wait(FRAME / 2):
        show()
        if interrupts.count or (until is not None and time.monotonic() >= until):
            break
    stopping = threading.Thread(target=_stop, args=(run,), name="freshet-stop", daemon=True)
    stopping.start()
    heard = interrupts.count
    while stopping.is_alive():
        stopping.join(FRAME / 2)
        show()
        if interrupts.count > heard:
            heard = sys.maxsize
            interrupts.hurried = True
            _end_soon()
            run.hurry()


def _end_soon() -> None:
    """Ends the process some time from now, if it does not end itself. Nothing acknowledged is lost by that."""

    def end() -> None:
        print(f"warning: the run did not end within {LAST:g} s and is left as it is", file=sys.stderr, flush=True)
        os._exit(1)

    last = threading.Timer(LAST, end)
    last.daemon = True
    last.start()


def _stop(run: Run) -> None:
    with suppress(Exception):  # the main thread stops it again, and says why
        run.stop()


@contextmanager
def _screen(run: Run, interrupts: _Interrupts, quiet: bool) -> Iterator[Any]:
    """A way to show the run now: a live table on a terminal, a line now and then elsewhere, nothing if quiet."""
    if quiet:
        yield lambda: None
    elif sys.stdout.isatty():
        from freshet.cli.live import table
        from freshet.cli.screen import Screen

        with Screen() as screen:

            def show() -> None:
                report = run.report()
                hint = interrupts.hint if report["status"] == "draining" else ""
                screen.show(table(report, screen.height, hint))

            yield _every(FRAME, show)
            show()
    else:
        from freshet.cli.live import line

        yield _every(LINE, lambda: print(line(run.report()), flush=True))
        print(line(run.report()), flush=True)


def _every(seconds: float, work: Any) -> Any:
    due = 0.0

    def maybe() -> None:
        nonlocal due
        if time.monotonic() >= due:
            work()
            due = time.monotonic() + seconds

    return maybe
