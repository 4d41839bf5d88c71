"""A Python that lacks packages."""

from __future__ import annotations

import venv
from pathlib import Path

import pyspark


def python_without(folder: Path, *packages: str) -> Path:
    """A Python with all packages of this environment but these."""
    venv.create(folder, symlinks=True, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    for entry in Path(pyspark.__file__).parents[1].iterdir():
        if not any(package in entry.name for package in packages):
            (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def heedless(folder: Path, python: Path) -> Path:
    """The same Python, deaf to the variables of its environment."""
    script = folder / "heedless"
    script.write_text(f'#!/bin/sh\nexec "{python}" -E "$@"\n')
    script.chmod(0o755)
    return script
