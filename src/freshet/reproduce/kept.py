"""Results of simulations in a folder, so that hours of them survive an interruption."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Hashable
from hashlib import sha256
from pathlib import Path
from typing import Any


class KeptRuns:
    """Keeps what simulations gave, by what was simulated and by the code that did it.

    Any change of Freshet's code is another version, whose results begin anew: a kept figure is one that this code
    would give. The folder holds pickles, so give it only folders that you trust.

    Args:
        folder: Where they are kept; it is made if it is not there.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     KeptRuns(Path(folder)).save(abs, -1, 1)
    ...     KeptRuns(Path(folder)).load(abs, -1), KeptRuns(Path(folder)).load(abs, -2)
    ((1,), ())
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / version()
        self._folder.mkdir(parents=True, exist_ok=True)

    def load(self, function: Callable[[Any], Any], spec: Hashable) -> tuple[Any, ...]:
        """The result, alone in a tuple; an empty tuple if there is none."""
        file = self._file(function, spec)
        return (pickle.loads(file.read_bytes()),) if file.exists() else ()

    def save(self, function: Callable[[Any], Any], spec: Hashable, result: object) -> None:
        """Keeps a result; whoever is interrupted leaves no half of one."""
        file = self._file(function, spec)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(result))
        part.replace(file)

    def _file(self, function: Callable[[Any], Any], spec: Hashable) -> Path:
        text = f"{function.__module__}.{function.__qualname__}({spec!r})"
        return self._folder / f"{sha256(text.encode()).hexdigest()[:32]}.pickle"


def version(package: Path = Path(__file__).parents[1]) -> str:
    """A short text that changes with any line of a package's code; by default Freshet's."""
    digest = sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(f"{file.relative_to(package)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
