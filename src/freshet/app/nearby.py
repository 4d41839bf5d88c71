"""Python modules that lie beside an application file."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from freshet.app.config import AppFile


def make_importable(file: AppFile, folder: Path) -> None:
    """Lets the functions of callback sinks come from modules beside their file, as a script can import its neighbours.

    The folder stays on the path, because a function may import more when it is called; it comes last, so that it
    hides no other module.
    """
    place = str(folder.resolve())
    calls = any(sink.kind == "callback" for query in file.queries.values() for sink in query.sinks)
    if calls and place not in sys.path:
        sys.path.append(place)
        importlib.invalidate_caches()
