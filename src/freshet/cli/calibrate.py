"""``freshet calibrate``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from freshet.cli.check import AppPath

if TYPE_CHECKING:
    from freshet.app.remembered.ranks import MeasuredRanks


def calibrate(
    app: AppPath,
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="How long to measure each strategy.")] = "20s",
    json: Annotated[bool, typer.Option("--json", help="Print the figures and ranks as JSON.")] = False,
) -> None:
    """Measure which strategy suits each query.

    It replays the last seconds of what the log has kept, once with each strategy, on Spark and with a state folder of
    its own. Sources are not asked, and sinks get nothing. The figures and ranks go to the state folder; the optimizer
    uses them with ranks = "measured". If the application runs meanwhile, the two disturb each other.
    """
    from freshet.app import App
    from freshet.app.running.calibrating import calibrate as measure
    from freshet.model import UserError, parse_duration

    seconds = parse_duration(for_)
    if seconds < 1.0:
        raise UserError("--for: strategies cannot be told apart in less than 1 s: use for example 20s")
    made = App.from_toml(app)
    made.checked()
    with _shown() as tell:
        found = measure(made, seconds, tell)
    print(found.text() if json else "\n".join(_lines(found)))


@contextmanager
def _shown() -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error; where that is no terminal, a line for each strategy."""
    if not sys.stderr.isatty():
        said: set[str] = set()

        def say(strategy: str, share: float) -> None:
            if strategy not in said:
                said.add(strategy)
                print(f"{strategy} ...", file=sys.stderr, flush=True)

        yield say
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=1.0)
        yield lambda strategy, share: shown.update(task, description=strategy, completed=share)


def _lines(found: MeasuredRanks) -> Iterator[str]:
    """The figures of each strategy, with its rank in brackets; the greatest is the best."""
    from freshet.model import MEASURES

    for query, table in found.tables().items():
        yield f"query {query}"
        for strategy, figures in found.figures[query].items():
            cells = (
                f"{name} {'-' if (seen := figures.get(name)) is None else measure.text(seen)} "
                f"({table.ranks[name][strategy]:g})"
                for name, measure in MEASURES.items()
            )
            yield f"  {strategy}: {', '.join(cells)}"
    yield 'The optimizer goes by these ranks with [app] ranks = "measured".'
