"""``freshet mirror rates``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.check import AppPath
from freshet.model import duration_text

if TYPE_CHECKING:
    from freshet.cli.mirrors.known import KnownMirror
    from freshet.sources.mirror.status import ElementRate

EXAMPLES: Final = """\b
Examples:
  freshet mirror rates app.toml
  freshet mirror rates app.toml prices --json
"""
_FIGURES: Final = 57
"""Characters of a line besides the element's name."""
_LEAST: Final = 20
"""Minimum number of characters of a name."""


def rates(
    app: AppPath,
    mirror: Annotated[str | None, typer.Argument(help="One stream or table; all mirrors if left out.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Show at most this many elements of a mirror.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that is known of all elements.")] = False,
) -> None:
    """Show how often elements of mirrors change, as far as polls have told.

    It shows for each element its worth, its estimated time between changes, how often the plan polls it, what polls
    found, and why it fails. It reads the state folder, also while the application runs.
    """
    from freshet.cli.mirrors.known import known_mirrors
    from freshet.sources.mirror.remembered import RememberedMirror

    found = {
        each.name: (each, RememberedMirror(each.options, each.records, each.learned).rates())
        for each in known_mirrors(app, mirror)
    }
    if as_json:
        print(json.dumps({name: [asdict(row) for row in rows] for name, (_, rows) in found.items()}, indent=2))
        return
    print("\n\n".join("\n".join(_table(known, rows, top)) for known, rows in found.values()))


def _table(known: KnownMirror, rows: list[ElementRate], top: int) -> list[str]:
    lines = [f"mirror {known.name}: {len(rows)} elements, budget {known.options.rate:g} {known.unit}"]
    if not rows:
        return [*lines, "  nothing is known yet: run the application"]
    room = shutil.get_terminal_size((120, 24)).columns - _FIGURES
    width = min(max(room, _LEAST), max(len("element"), *(len(row.element) for row in rows[:top])))
    lines.append(f"  {'element':<{width}}  {'worth':>8}  {'changes every':>13}  {'polled every':>12}  polls  changes")
    lines += [f"  {line}" for row in rows[:top] for line in _lines(row, width)]
    return [*lines, f"  ... and {len(rows) - top} more"] if len(rows) > top else lines


def _lines(row: ElementRate, width: int) -> Iterator[str]:
    yield (
        f"{_shortened(row.element, width):<{width}}  {row.worth:>8.3g}  {_every(row.changes_per_s):>13}"
        f"  {_every(row.polls_per_s):>12}  {row.polls:>5}  {row.changes:>7}"
    )
    if row.failures:
        yield f"  failing: {row.reason}"


def _shortened(name: str, width: int) -> str:
    """A name in at most this many characters. The end of an address tells more than its beginning.

    >>> _shortened("https://example.org/items/tea", 20), _shortened("tea", 20)
    ('https...rg/items/tea', 'tea')
    """
    if len(name) <= width:
        return name
    head = (width - 3) // 3
    return f"{name[:head]}...{name[head + 3 - width :]}"


def _every(rate: float | None) -> str:
    """The time between events of a rate.

    >>> _every(0.5), _every(0.0), _every(None)
    ('2 s', 'never', '-')
    """
    return "-" if rate is None else "never" if rate <= 0.0 else duration_text(1.0 / rate)
