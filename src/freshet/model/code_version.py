"""Versions of the user's code: a hash of all that decides its values, as far as that can be seen.

Code of installed packages counts by its name. All other code counts by its content, as it goes to workers: source,
closures, defaults, attributes, and the values, helpers and classes that it names. Nothing here depends on addresses or
on the order of sets, so the same content has the same version in every process.
"""

from __future__ import annotations

import copyreg
import hashlib
import inspect
import sysconfig
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

_FOLDERS: Final = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED: Final = tuple(
    {sysconfig.get_path(name).rstrip("/\\") + separator for name in _FOLDERS for separator in "/\\"}
)
_PLAIN: Final = (type(None), bool, int, float, complex, str)


def is_users(module: ModuleType) -> bool:
    """Whether a module is the user's own: neither installed nor built in, nor a part of Freshet."""
    file, name = getattr(module, "__file__", None), getattr(module, "__name__", "")
    if name == "__main__":
        return True
    if not isinstance(file, str) or name.partition(".")[0] == "freshet":
        return False
    parts = file.replace("\\", "/").split("/")
    return not file.startswith(_INSTALLED) and not {"site-packages", "dist-packages"} & set(parts)


def code_version(thing: Any) -> str:
    """A version of a function, a class or an object that changes with its content.

    >>> def times(factor):
    ...     return lambda x: x * factor
    >>> code_version(times(2)) == code_version(times(2)), code_version(times(2)) == code_version(times(3))
    (True, False)
    """
    kind = thing if isinstance(thing, FunctionType | type) else type(thing)
    text = _Description(_package(kind.__module__), {}).of(thing)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class _Description:
    """Describes things so that equal texts mean equal content.

    Args:
        package: Its code counts by content, although it may be installed.
        seen: Number of each thing that is described already, by its id; the thing is kept, so that its id stays taken.
    """

    def __init__(self, package: str, seen: dict[int, tuple[int, Any]]) -> None:
        self._package, self._seen = package, seen

    def of(self, thing: Any) -> str:
        if type(thing) in _PLAIN:
            return repr(thing)
        if type(thing) is bytes:
            return f"bytes {hashlib.sha256(thing).hexdigest()}"
        if type(thing) is tuple:
            return f"({self._all(thing)})"
        if id(thing) in self._seen:
            return f"again {self._seen[id(thing)][0]}"
        self._seen[id(thing)] = len(self._seen), thing
        return self._content(thing)

    def _content(self, thing: Any) -> str:
        if isinstance(thing, ModuleType):
            return f"module {thing.__name__}"
        if isinstance(thing, CodeType):
            return self._code(thing)
        if isinstance(thing, FunctionType | type):
            if not self._counts_by_content(thing):
                return f"{thing.__module__}.{thing.__qualname__}"
            return self._class(thing) if isinstance(thing, type) else self._function(thing)
        if type(thing) is list:
            return f"list({self._all(thing)})"
        if type(thing) is dict:
            return f"dict({self._all(thing.items())})"
        if type(thing) is set or type(thing) is frozenset:
            # Each member is described as if it came first, because their order differs between processes.
            return f"set{sorted(_Description(self._package, dict(self._seen)).of(each) for each in thing)}"
        return self._object(thing)

    def _counts_by_content(self, code: FunctionType | type) -> bool:
        module = inspect.getmodule(code)
        # A name such as "make.<locals>.made" may stand for several functions.
        return (
            "<" in code.__qualname__ or module is None or is_users(module) or _package(module.__name__) == self._package
        )

    def _all(self, things: Iterable[Any]) -> str:
        return ", ".join(map(self.of, things))

    def _function(self, function: FunctionType) -> str:
        code, cells = function.__code__, function.__closure__ or ()
        attributes = {name: value for name, value in vars(function).items() if not name.startswith("__")}
        parts = (
            *_named(function.__globals__, set(_names(code))),
            *zip(code.co_freevars, map(_cell_content, cells), strict=True),
            ("defaults", (function.__defaults__, function.__kwdefaults__)),
            *sorted(attributes.items()),
        )
        return f"{_source(code) or self._code(code)} with {self._all(parts)}"

    def _class(self, kind: type) -> str:
        members = [
            (name, getattr(value, "__func__", value))  # of static methods and class methods
            for name, value in sorted(vars(kind).items())
            if not name.startswith("__") or isinstance(value, FunctionType | staticmethod | classmethod)
        ]
        return f"class {kind.__qualname__}({self._all(kind.__bases__)}): {self._all(members)}"

    def _code(self, code: CodeType) -> str:
        return f"code {self._all((code.co_code, code.co_consts, code.co_names, code.co_varnames))}"

    def _object(self, thing: Any) -> str:
        """What a pickle would hold; of what cannot be pickled only its class."""
        if isinstance(thing, property):
            return f"property {self._all((thing.fget, thing.fset))}"
        try:
            registered = copyreg.dispatch_table.get(type(thing))
            reduced = thing.__reduce_ex__(4) if registered is None else registered(thing)
        except Exception:
            return f"a {self.of(type(thing))}"
        if isinstance(reduced, str):
            module, wrapped = getattr(thing, "__module__", ""), getattr(thing, "__wrapped__", None)
            return f"{module}.{reduced} of {self.of(wrapped)}"
        made, arguments, state, members, items = (*reduced, None, None, None)[:5]
        return f"object {self._all((made, arguments, state, [*(members or ())], [*(items or ())]))}"


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return None


def _source(code: CodeType) -> str | None:
    """The source of a function; None: it is not known, or may be that of several functions in one line."""
    try:
        source = inspect.getsource(code)
    except (OSError, TypeError):  # typed into a shell
        return None
    return None if code.co_name == "<lambda>" and source.count("lambda") > 1 else source


def _names(code: CodeType) -> Iterator[str]:
    """All names that code and the functions in it read: those of globals, and of attributes."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _named(space: dict[str, Any], names: set[str]) -> Iterator[tuple[str, Any]]:
    """The globals that have one of some names; of the user's modules what these names mean there."""
    for name in sorted(names & space.keys()):
        value = space[name]
        if isinstance(value, ModuleType) and is_users(value):
            inside = vars(value)
            yield from ((f"{name}.{each}", inside[each]) for each in sorted(names & inside.keys()))
        else:
            yield name, value
