"""``freshet run``."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from freshet.cli.check import AppPath
from freshet.cli.interrupts import Interrupts
from freshet.cli.starting import starting

if TYPE_CHECKING:
    from freshet.app import Run

LINE: Final = 5.0
"""Seconds between lines if there is no terminal."""
FRAME: Final = 0.5
"""Seconds between two pictures of the live table."""
LAST: Final = 120.0
"""Maximum number of seconds from the second signal to the end of the process, whatever it does."""


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
        str | None, typer.Option(metavar="NAME", help="The policy, instead of the file's; see `freshet policies`.")
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="Stop after this time (60s, 5m), once all that waits is answered."),
    ] = None,
    master: Annotated[str | None, typer.Option(metavar="URL", help="The Spark master, instead of the file's.")] = None,
    try_again: Annotated[
        bool,
        typer.Option("--try-again", help="Also run queries that stay out because earlier runs died with them."),
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="Also show residents, what workers keep of states, and the ways of steps.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the report, at the end.")] = False,
) -> None:
    """Run an application.

    It runs until its sources end, --for has passed, or Ctrl-C. Ctrl-C (or SIGTERM) stops the sources, processes what
    waits and leaves. A second Ctrl-C leaves as soon as the running units are done, and gives up on those that do not
    end. Either way nothing is lost: the next run continues where this one stopped.

    The exit code is 0 if all is well, 1 if at the end a source failed, a query is quarantined or a sink fails, and 2 if
    the application is wrong.
    """
    from freshet.app import App
    from freshet.model import parse_duration

    seconds = None if for_ is None else parse_duration(for_)
    made = App.from_toml(app)
    warnings.showwarning = _show_warning
    # With --json only the report may reach standard output; the rows of a console sink must not.
    with redirect_stdout(sys.stderr) if as_json else nullcontext(), _told_at_the_end(), Interrupts() as interrupts:
        with starting() as tell:
            started = made.start(policy=policy, master=master, progress=tell, try_again=try_again)
        try:
            for note in started.notes:
                print(note, file=sys.stderr)
            with showing(started, interrupts, quiet=as_json, wide=wide) as show:
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
    """Suppresses the warnings of quarantined queries: the table and the last lines show them."""
    from freshet.app.running.observers import LOGGER

    def nothing(record: logging.LogRecord) -> bool:
        return False

    LOGGER.addFilter(nothing)
    try:
        yield
    finally:
        LOGGER.removeFilter(nothing)


def _failures(report: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence for everything that did not do its work."""
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
            waiting = f"{sink['waiting']:,} rows are not delivered; the next run continues with them"
            yield f"sink {name} failed: {_first_line(sink['reason'])} ({waiting})"


def _surprises(report: Mapping[str, Any]) -> Iterator[str]:
    """Yields what a person did not expect, although everything did its work."""
    from freshet.cli.live import errors_text

    yield from (f"query {name}: {errors_text(query)}" for name, query in report["queries"].items() if query["errors"])
    for name, sink in report["sinks"].items():
        if sink["note"]:
            yield f"sink {name}: {_first_line(sink['note'])}"


def _first_line(text: str | None) -> str:
    return next(iter((text or "").splitlines()), "no reason was given")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from freshet.model.messages import masked

    print(f"warning: {masked(str(message))}", file=sys.stderr)


def _watch(run: Run, interrupts: Interrupts, seconds: float | None, show: Any) -> None:
    """Shows the run until it should end, and from then on until it has drained."""
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
    """Ends the process some time from now, if it does not end by itself. Nothing acknowledged is lost by that."""

    def end() -> None:
        print(f"warning: the run did not end within {LAST:g} s, so the process ends now", file=sys.stderr, flush=True)
        os._exit(1)

    last = threading.Timer(LAST, end)
    last.daemon = True
    last.start()


def _stop(run: Run) -> None:
    with suppress(Exception):  # the main thread stops it again, and says why
        run.stop()


@contextmanager
def showing(run: Run, interrupts: Interrupts, quiet: bool, wide: bool) -> Iterator[Any]:
    """Gives a function that shows the run: a live table on a terminal, a line now and then elsewhere, nothing if
    quiet."""
    if quiet:
        yield lambda: None
    elif sys.stdout.isatty():
        from freshet.cli.live import table
        from freshet.cli.screen import Screen

        with Screen() as screen:

            def show() -> None:
                report = run.report()
                hint = interrupts.hint if report["status"] == "draining" else ""
                screen.show(table(report, screen.height, hint, wide))

            yield _every(FRAME, show)
            show()
    else:
        from freshet.cli.live import ENDED, line

        def write() -> None:
            report = run.report()
            if report["status"] not in ENDED:  # that is the last line, and it comes once
                print(line(report, wide), flush=True)

        yield _every(LINE, write)
        print(line(run.report(), wide), flush=True)


def _every(seconds: float, work: Any) -> Any:
    due = 0.0

    def maybe() -> None:
        nonlocal due
        if time.monotonic() >= due:
            work()
            due = time.monotonic() + seconds

    return maybe
