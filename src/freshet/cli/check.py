"""``freshet check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

AppPath = Annotated[Path, typer.Argument(metavar="APP.toml", help="The application file.", show_default=False)]


EXAMPLES: Final = """\b
Example:
  freshet check app.toml
"""


def check(app: AppPath) -> None:
    """Check an application file.

    It looks at keys, units, schemas, sources, sinks, tables and the SQL of every query, and starts no Spark. Every
    problem is one line with its place, and for SQL the text with a mark; the exit code is 2 where there is one.
    """
    from freshet.app import App

    made = App.from_toml(app)
    for note in made.check():
        print(f"{app}: {note}")
    parts = [_count(len(made.streams), "stream"), _count(len(made.queries), "query", "queries")]
    if made.tables:
        parts.insert(1, _count(len(made.tables), "table"))
    print(f"{app}: right: {', '.join(parts)}")


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
