"""Reading the application file, with errors that say where and what would be right."""

from __future__ import annotations

import importlib
import sys
import tomllib
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pydantic import ValidationError

from freshet.app.declared.config import AppFile
from freshet.app.declared.problems import InvalidApp, Problem
from freshet.app.declared.validation import Location, location, place_text, problems_of
from freshet.model import PriorityClass, UserError, priority_classes
from freshet.model.promises.priority import own_class

MOST_BYTES: Final = 16 << 20
"""Maximum size of an application file in bytes."""
MOST_LEVELS: Final = 32
"""Maximum depth of lists and tables within each other in an application file."""
_TOO_DEEP: Final = f"lists and tables are nested too deeply: use at most {MOST_LEVELS} levels"
_REQUIRED: Final = {"streams": ("schema",), "tables": ("file", "schema"), "queries": ("sql",)}
"""By table, the keys that an entry cannot be checked without."""


@dataclass(frozen=True, slots=True)
class Read:
    """What could be read of a file."""

    file: AppFile
    """What is right in it, as if wrong keys were not there."""
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()
    """Names of streams and tables without a schema and of queries without SQL; ``file`` has an empty one."""


def read_leniently(path: Path) -> Read:
    """Reads an application file as far as it is right, so that one mistake does not hide the others."""
    try:
        # A pipe or a device may never end: read only a file, and no more of it than is allowed.
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: is not a file: name an application file, such as app.toml")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise UserError(f"{path}: has more than {MOST_BYTES >> 20} MiB, the maximum for an application file")
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
    except ValueError as error:  # also for a number with thousands of digits, or an impossible date
        raise InvalidApp([Problem("", f"is not TOML: {error}")], origin) from None
    _check_values(data, origin)
    try:
        return Read(_validated(data))
    except ValidationError as error:
        return _salvage(data, error)


def _validated(data: dict[str, Any]) -> AppFile:
    """The file that data makes; queries may name the classes that ``[app]`` defines, also one whose weight is wrong."""
    app = data.get("app")
    own = app.get("classes") if isinstance(app, dict) else None
    classes = priority_classes({})
    for name, weight in own.items() if isinstance(own, dict) else ():
        try:
            classes[name] = own_class(name, weight)
        except UserError:
            classes[name] = PriorityClass(name, 1.0)
    return AppFile.model_validate(data, context={"classes": classes})


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
    """Takes away what is wrong, and then what depends on it, until the rest is right."""
    problems = tuple(problems_of(error, AppFile, data))
    rest, broken = deepcopy(data), set[str]()
    while True:
        # From the back, so that no place in a list moves before its turn.
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
            return Read(_validated(rest), problems, frozenset(broken))
        except ValidationError as again:
            error = again


def _taken_away(detail: Any, data: Any) -> Location:
    where = location(detail, data)
    if detail["type"] == "missing":
        where = where[:-1]
    # Without one of its members a list would number the others anew: remove the whole list.
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


_SET_ASIDE: Final[dict[str, dict[str, ModuleType]]] = {}
"""By folder of an application file, modules beside it while those of another file have their names."""


def make_importable(folder: Path) -> None:
    """Lets functions that a file names come from modules beside it, as a script can import its neighbours.

    The folder stays on the path, because a function may import more when it is called. It comes before the folders of
    other files and after everything else, so that it hides no other module.
    """
    place = str(folder.resolve())
    own = _SET_ASIDE.setdefault(place, {})
    for root in [name for name in sys.modules if "." not in name and _is_beside(folder, name)]:
        other = _folder_of(sys.modules[root])
        if other != place and other in _SET_ASIDE:
            inside = [name for name in sys.modules if name.partition(".")[0] == root]
            _SET_ASIDE[other] |= {name: sys.modules.pop(name) for name in inside}
    sys.modules.update(own)
    own.clear()
    path = [each for each in sys.path if each != place]
    first = next((number for number, each in enumerate(path) if each in _SET_ASIDE), len(path))
    sys.path[:] = [*path[:first], place, *path[first:]]
    importlib.invalidate_caches()


def _is_beside(folder: Path, module: str) -> bool:
    return (folder / f"{module}.py").exists() or (folder / module).is_dir()


def _folder_of(module: ModuleType) -> str:
    """The folder in which a module or a package was found; an empty text: it was not found in one."""
    place = next(iter(getattr(module, "__path__", ())), getattr(module, "__file__", None))
    return str(Path(place).parent) if isinstance(place, str) else ""
