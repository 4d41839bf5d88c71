"""``freshet check``."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
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

    It looks at keys, units, schemas, sources, sinks, tables and the SQL of every query, and does not start Spark. It
    prints one line for each problem, with its place; for SQL it also marks the place in the text. The exit code is 2 if
    there is a problem.
    """
    _load_arrow()
    from freshet.app import App

    made = App.from_toml(app)
    for note in made.check():
        print(f"{app}: {note}")
    parts = [_count(len(made.streams), "stream"), _count(len(made.queries), "query", "queries")]
    if made.tables:
        parts.insert(1, _count(len(made.tables), "table"))
    print(f"{app}: right: {', '.join(parts)}")


class _WithoutPandas(MetaPathFinder):
    """Hides pandas from whoever imports it."""

    @classmethod
    def find_spec(cls, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def _load_arrow() -> None:
    """Loads Arrow in a fresh process without pandas, which it would load for the first array, for half a second.

    Code of the user's that the file names may still import pandas.
    """
    if "pyarrow" not in sys.modules and "pandas" not in sys.modules:
        import pyarrow as pa

        sys.meta_path.insert(0, _WithoutPandas)
        pa.array([])  # Arrow looks for it once
        sys.meta_path.remove(_WithoutPandas)


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
