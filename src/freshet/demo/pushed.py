"""An application file of a story, with streams that the story itself brings rows to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import freshet


def pushed(folder: Path, name: str, text: str) -> freshet.App:
    r"""The application, with its file and its state in a folder. All of its streams take pushes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     app = pushed(Path(folder), "shop", '[streams.s]\nschema = "n int"\nsource = {kind = "spark"}')
    >>> app.streams["s"].source
    {'kind': 'push'}
    """
    file = folder / f"{name}.toml"
    file.write_text(text)
    app = freshet.App.from_toml(file)
    for each in app.streams:
        app.streams[each] = replace(app.streams[each], source={"kind": "push"})
    return app
