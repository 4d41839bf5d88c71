"""The application of the demo, as a user would declare it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import freshet

PACKETS: Final = "packets"
"""The stream that is flooded."""
LOGINS: Final = "logins"
"""The other stream."""
MASTER: Final = "local[2]"
"""Two cores, so that the other cores can make and store a flood that is too much for these two."""


def text() -> str:
    """The application file.

    >>> text().count("[queries.")
    25
    """
    return (files("freshet.demo") / "demo.toml").read_text()


def monitor(folder: Path, sources: Mapping[str, Mapping[str, Any]] | None = None) -> freshet.App:
    """The application.

    Args:
        folder: Folder for its state and its report.
        sources: By stream, options of its source that replace the declared ones, key by key; another ``kind`` replaces
            all of them.

    >>> app = monitor(Path("demo"), {"packets": {"kind": "push"}, "logins": {"limit": 10}})
    >>> app.streams["packets"].source, sorted(app.streams["logins"].source)
    ({'kind': 'push'}, ['arrival', 'columns', 'kind', 'limit', 'seed'])
    >>> app.check()
    []
    """
    with as_file(files("freshet.demo") / "demo.toml") as path:
        app = freshet.App.from_toml(path)
    app.state, app.report = folder / "state", folder / "report.json"
    for name, changes in (sources or {}).items():
        declared = {} if "kind" in changes else options(app, name)
        app.streams[name] = replace(app.streams[name], source={**declared, **changes})
    return app


@cache
def read_directly(stream: str) -> frozenset[str]:
    """The queries that read a stream directly, and not only the outputs of others.

    >>> sorted(read_directly("logins"))
    ['password_guessing', 'root_login']
    """
    queries = monitor(Path()).checked().queries
    return frozenset(name for name, query in queries.items() if stream in query.graph.streams)


def options(app: freshet.App, stream: str) -> dict[str, Any]:
    """The options of a stream's source."""
    source = app.streams[stream].source
    assert isinstance(source, Mapping), "a source of an application file is a table of options"
    return dict(source)
