"""Records as plain values, by the names of their fields: for JSON, for workers, and for state folders.

A field that comes :func:`later` than the first stored form has a default, and is left out of the stored form where it
has that. So what was stored before it came is still equal to what is stored now, with its fingerprint, and reads as it
did.
"""

from __future__ import annotations

from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")
_LATER: Final = "later"


def later(default: T, *, compare: bool = True) -> T:
    """A field of a stored record that earlier forms do not have; they mean the default.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Box:
    ...     name: str
    ...     rows: int = 0
    ...     sorted: bool = later(False)
    >>> named(Box("a")), named(Box("b", 3, True))
    ({'name': 'a', 'rows': 0}, {'name': 'b', 'rows': 3, 'sorted': True})
    >>> Box(**named(Box("a"))) == Box("a")
    True
    """
    found: T = field(default=default, compare=compare, metadata={_LATER: True})
    return found


def named(value: Any) -> Any:
    """A record as a dict by the names of its fields, with all records inside it; other values as they are."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: named(found)
            for each in fields(value)
            if not _is_left_out(each.metadata.get(_LATER, False), each.default, found := getattr(value, each.name))
        }
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return type(value)(map(named, value))
    return value


def _is_left_out(is_later: bool, default: Any, value: Any) -> bool:
    return is_later and default is not MISSING and bool(value == default)
