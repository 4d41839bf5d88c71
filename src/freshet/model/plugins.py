"""Things by name, each loaded when it is first asked for: built-in ones, and the entry points of other packages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from freshet.model.errors import UserError

Entry = TypeVar("Entry")


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group such as ``freshet.sinks``, by name."""
    return {point.name: point for point in entry_points(group=group)}


def package_of(point: EntryPoint) -> str:
    """The package that brings an entry point, with its version."""
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


class Registry(dict[str, Entry]):
    """Things by name: those that are built in, and those of installed packages, which are loaded when they are first
    asked for. What is built in wins.

    Args:
        group: Of the entry points.
        built_in: What needs no other package.
        fits: Whether an entry point is what it should be.
        form: What it should be, for whoever wrote the package.
        homes: The modules of more built-in things, by name. A module is imported when one of its things is first asked
            for; it has them by name in ``KINDS``.

    >>> sinks = Registry("freshet.no_such_group", {"a": 1}, lambda value: isinstance(value, int), "a number")
    >>> "a" in sinks, "b" in sinks, sinks.names()
    (True, False, ['a'])
    """

    def __init__(
        self,
        group: str,
        built_in: Mapping[str, Entry],
        fits: Callable[[Any], bool],
        form: str,
        homes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(built_in)
        self.group, self._fits, self._form, self._homes = group, fits, form, homes or {}
        self._built_in = frozenset([*built_in, *self._homes])

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._homes or self._load(name)

    def __missing__(self, name: str) -> Entry:
        if name in self._homes:
            self[name] = import_module(self._homes[name]).KINDS[name]
        elif not self._load(name):
            raise KeyError(name)
        return super().__getitem__(name)

    def names(self) -> list[str]:
        """All names; nothing is loaded."""
        return list(dict.fromkeys([*self._homes, *self, *installed(self.group)]))

    def package(self, name: str) -> str | None:
        """The package that a name comes from; None: it is built in, or not there."""
        point = None if name in self._built_in else installed(self.group).get(name)
        return None if point is None else package_of(point)

    def problems(self) -> list[str]:
        """Entry points that are of no use: they cannot be loaded, or have the name of something built in."""
        told = []
        for name, point in installed(self.group).items():
            if name in self._built_in:
                told.append(f"{name} of {package_of(point)} is not used: what is built in has that name")
                continue
            try:
                self._load(name)
            except UserError as error:
                told.append(str(error))
        return told

    def _load(self, name: object) -> bool:
        point = installed(self.group).get(name) if isinstance(name, str) else None
        if point is None:
            return False
        made = _loaded(point)
        if not self._fits(made):
            raise UserError(
                f"{point.name} of {package_of(point)} ({self.group}: {point.value}) must be {self._form}, not "
                f"{_described(made)}"
            )
        self[point.name] = made
        return True


def _described(made: object) -> str:
    """What a thing is, without its innards.

    >>> _described("red"), _described(UserError), _described((1, 2))
    ("'red'", 'the class UserError', 'a tuple')
    """
    if isinstance(made, type):
        return f"the class {made.__name__}"
    if made is None or isinstance(made, str | int | float):
        return repr(made)
    return f"the function {made.__name__}" if inspect.isfunction(made) else f"a {type(made).__name__}"


@cache
def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UserError(f"{point.name} of {package_of(point)} cannot be loaded ({point.value}): {told}") from None
