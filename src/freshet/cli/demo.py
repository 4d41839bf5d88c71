"""``freshet demo``."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from freshet.cli.interrupts import Interrupts
from freshet.model import UserError
from freshet.model.places import check_local

if TYPE_CHECKING:
    from freshet.demo.stories import Told, Watch

LINE: Final = 4.0
"""Seconds between lines if there is no terminal."""
FIRST: Final = "flood"
"""The default story."""

demo = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXAMPLES: Final = """\b
Examples:
  freshet demo                           the flood: about a minute, then a picture and a summary
  freshet demo --list                    all stories
  freshet demo --policy rr               the same story, with the queries served in turn
  freshet demo --quick                   half a minute
  freshet demo --show > monitor.toml     the application; change it, and then run it:
  freshet run monitor.toml
"""


@demo.command(epilog=EXAMPLES)
def play_demo(
    name: Annotated[str, typer.Argument(help="The story; see --list.")] = FIRST,
    stories: Annotated[bool, typer.Option("--list", help="Show the stories and exit.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option(min=5.0, help="How long the story lasts.  [default: 34 for the flood]", show_default=False),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The policy, instead of that of the demo's file; see `freshet policies`."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Tell a short story; the flood takes 10 seconds.")] = False,
    out: Annotated[Path, typer.Option(help="The file for the picture.")] = Path("freshet-demo.png"),
    state: Annotated[
        Path | None, typer.Option(help="A new folder for the state.  [default: a temporary one]", show_default=False)
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the state, with the reports, afterwards.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the application file of the demo and exit.")] = False,
) -> None:
    """See Freshet at work: a story of about a minute, with a picture at the end.

    The flood: 25 continuous SQL queries of different worth watch two made-up streams. The demo first finds out how many
    packets a second this machine sustains. Then it sends calm traffic (a quarter of that), a flood (three times that)
    and calm traffic again. A live table shows for each query how old its answers are (from the arrival of a tuple to
    its answer; the mean and the p95 of the last seconds), how old the oldest waiting tuple is, how many tuples wait,
    and the freshness (the share of time in which no matching tuple waited).

    The demo ends with a picture of all queries and of the course of the flood, and with a summary in words that has
    the figures of this run. Ctrl-C ends the demo and leaves nothing behind.
    """
    from freshet.demo.plot import check_plots
    from freshet.demo.stories import Wishes, cards, find_card
    from freshet.policies import create

    if stories:
        for card in cards().values():
            print(f"{card.name:<12} {card.summary}")
        return
    card = find_card(name)
    if show:
        print(card.text(), end="")
        return
    if policy is not None:
        create(policy)  # reports a wrong name before Spark starts
    check_plots()
    if not out.absolute().parent.is_dir():
        raise UserError(f"{out.parent}: there is no such folder for the picture")
    with _DemoInterrupts() as interrupts, _folder(state, keep) as folder:
        told = card.tell(folder, Wishes(seconds, quick, policy), _Stage(interrupts.check))
        _conclude(told, card.name, out, folder, keep)


def _conclude(told: Told, name: str, out: Path, folder: Path, keep: bool) -> None:
    from rich.console import Console

    told.save(out)
    print("\n3. What was seen\n")
    console = Console(width=min(110, Console().width), highlight=False)
    for paragraph in told.paragraphs():
        console.print(paragraph, markup=False)
        console.print()
    print(f"The picture: {out}")
    if keep:
        (folder / "demo.json").write_text(json.dumps(told.to_json()) + "\n")
        print(f"The state, the reports and the figures of the picture (demo.json): {folder}")
    shown = "freshet demo --show" if name == FIRST else f"freshet demo {name} --show"
    print(f"The application, to change and run yourself: {shown}")


class _Stage:
    """The terminal, or wherever standard output goes."""

    def __init__(self, check: Callable[[], None]) -> None:
        self.check = check

    def say(self, text: str) -> None:
        print(text, flush=True)

    @contextmanager
    def screen(self, phase: Callable[[float], str], urgent: str) -> Iterator[Watch]:
        """Shows a live table on a terminal, and prints a line now and then elsewhere."""
        if not sys.stdout.isatty():
            from freshet.cli.live import line

            yield _every(LINE, lambda report, now: print(f"   {phase(now)} · {line(report)}", flush=True))
            return
        from rich.console import Group
        from rich.text import Text

        from freshet.cli.live import table
        from freshet.cli.screen import Screen

        with Screen() as screen:

            def show(report: Mapping[str, Any], now: float) -> None:
                style = "bold white on red" if phase(now) == urgent else "bold"
                head = Text(f"second {now:.0f}: {phase(now)}", style=style)
                screen.show(Group(head, table(report, screen.height - 1)))

            yield show


def _every(seconds: float, work: Watch) -> Watch:
    due = 0.0

    def maybe(report: Mapping[str, Any], now: float) -> None:
        nonlocal due
        if time.monotonic() >= due:
            work(report, now)
            due = time.monotonic() + seconds

    return maybe


@contextmanager
def _folder(state: Path | None, keep: bool) -> Iterator[Path]:
    """The folder of the demo. At the end, what the demo made is removed, unless it is to be kept."""
    check_local(state, "--state")
    if state is not None and state.exists() and (not state.is_dir() or any(state.iterdir())):
        raise UserError(f"{state}: already exists; name a new folder for the state")
    folder = Path(tempfile.mkdtemp(prefix="freshet-demo-")) if state is None else state
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


class _DemoInterrupts(Interrupts):
    """Ctrl-C and SIGTERM end the demo at the next :meth:`check`; a second one ends it wherever it is.

    If Spark were interrupted while it starts, it would continue to write its log into a folder that is gone.
    """

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        super().__exit__()
        if kind is KeyboardInterrupt:
            print("\nInterrupted: the demo ends here.", file=sys.stderr)
            raise typer.Exit(130)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.check()
        super()._handle(number, frame)

    def check(self) -> None:
        """Raises KeyboardInterrupt if there was an interrupt."""
        if self.count:
            raise KeyboardInterrupt
