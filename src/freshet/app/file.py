"""Reading the application file, with errors that say where and what would be right."""

from __future__ import annotations

import importlib
import sys
import tomllib
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from freshet.app.config import AppFile
from freshet.app.problems import InvalidApp, Problem
from freshet.app.validation import Location, location, place_text, problems_of
from freshet.model import UserError

MOST_BYTES: Final = 16 << 20
"""Bytes of an application file."""
MOST_LEVELS: Final = 32
"""Lists and tables within each other in an application file."""
_TOO_DEEP: Final = f"lists and tables are nested too deeply: use at most {MOST_LEVELS} levels"
_REQUIRED: Final = {"streams": ("schema",), "tables": ("file", "schema"), "queries": ("sql",)}
"""By table the keys without which nothing can be said of what it declares."""


@dataclass(frozen=True, slots=True)
class Read:
    """What could be read of a file.

    Args:
        file: What is right in it; a wrong key is as if it were not there.
        problems: What is wrong.
        broken: Names of streams and tables whose schema, and of queries whose SQL is not known; ``file`` has an empty
            one.
    """

    file: AppFile
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()


def read_leniently(path: Path) -> Read:
    """Reads an application file as far as it is right, so that one mistake does not hide the others.

    Raises:
        UserError: Where the file cannot be read at all.
    """
    try:
        # A pipe may never end and a device has no end: only a file is read, and no more of it than is allowed.
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: is not a file: name an application file, such as app.toml")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise UserError(f"{path}: has more than {MOST_BYTES >> 20} MiB, the most that an application file may have")
        return parse_leniently(content.decode(), str(path))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"{path}: cannot be read: {reason}") from None


def parse_leniently(content: str, origin: str = "") -> Read:
    r"""What is right in the content of a file, and what is wrong.

    >>> read = parse_leniently('[app]\nnme = "x"\nworkers = 3\n[streams.s]\nschema = 5')
    >>> read.file.app.workers, [problem.place for problem in read.problems], sorted(read.broken)
    (3, ['app.nme', 'streams.s.schema'], ['s'])
    """
    try:
        data = tomllib.loads(content)
    except RecursionError:
        raise InvalidApp([Problem("", _TOO_DEEP)], origin) from None
    except ValueError as error:  # also of a whole number with thousands of digits, or of a date that is none
        raise InvalidApp([Problem("", f"is not TOML: {error}")], origin) from None
    _check_values(data, origin)
    try:
        return Read(AppFile.model_validate(data))
    except ValidationError as error:
        return _salvage(data, error)


def _check_values(data: dict[str, Any], origin: str) -> None:
    """Refuses what TOML's grammar lets through and no key can mean: endless nesting, numbers beyond 64 bits, NUL."""
    waiting: list[tuple[Location, Any]] = [((), data)]
    while waiting:
        where, value = waiting.pop()
        if len(where) > MOST_LEVELS:
            raise InvalidApp([Problem(place_text(where[:3]), _TOO_DEEP)], origin)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            text = "the number is too large: at most 64 bits are allowed"
            raise InvalidApp([Problem(place_text(where), text)], origin)
        if isinstance(value, str) and "\0" in value and where[-1:] != ("sql",):
            raise InvalidApp([Problem(place_text(where), "holds the character NUL: leave it out")], origin)
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [((*where, key), each) for key, each in inner]


def _salvage(data: dict[str, Any], error: ValidationError) -> Read:
    """Takes away what is wrong, and then what cannot be without it, until the rest is right."""
    problems = tuple(problems_of(error, AppFile, data))
    rest, broken = deepcopy(data), set[str]()
    while True:
        # From the back: a place in a list must not move before its turn.
        places = {_taken_away(detail, rest) for detail in error.errors()}
        for where in sorted(places, key=str, reverse=True):
            if len(where) == 2 and where[0] in _REQUIRED:
                broken.add(str(where[1]))
                entry = rest[where[0]][where[1]]
                known = entry if isinstance(entry, dict) else {}
                rest[where[0]][where[1]] = dict.fromkeys(_REQUIRED[where[0]], "") | known
            else:
                _remove(rest, where)
        try:
            return Read(AppFile.model_validate(rest), problems, frozenset(broken))
        except ValidationError as again:
            error = again


def _taken_away(detail: Any, data: Any) -> Location:
    where = location(detail, data)
    if detail["type"] == "missing":
        where = where[:-1]
    # Without one of its members a list would number the others anew: it goes as a whole.
    while where and isinstance(where[-1], int):
        where = where[:-1]
    return where


def _remove(data: dict[str, Any], where: Location) -> None:
    current: Any = data
    for part in where[:-1]:
        inside = part in current if isinstance(current, dict) else isinstance(current, list)
        current = current[part] if inside else {}
    if where and isinstance(current, dict):
        current.pop(where[-1], None)


def make_importable(folder: Path) -> None:
    """Lets functions that a file names come from modules beside it, as a script can import its neighbours.

    The folder stays on the path, because a function may import more when it is called; it comes last, so that it
    hides no other module.
    """
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.append(place)
        importlib.invalidate_caches()
