"""Values of any kind in messages and dead letters: always short, and never an error of their own."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

_LENGTH: Final = 80
_DEPTH: Final = 50
_PARTS: Final = 10_000


def shown(value: Any) -> str:
    """A value as a message shows it: one short line of text.

    >>> shown("abc"), shown([[1, 2]]), shown("x" * 1000)[70:]
    ("'abc'", '[[1, 2]]', 'xxxxxxx...')
    """
    try:
        value = value.as_py() if isinstance(value, pa.Scalar) else value
        # Cut first: nobody needs the whole text of a large value.
        text = repr(value[:_LENGTH]) if isinstance(value, str | bytes) else _Repr().repr(value)
    except Exception:
        return f"a value of type {type_name(value)}"
    text = clean(text if len(text) <= _LENGTH else text[: _LENGTH - 3] + "...")
    return " ".join(text.split("\n"))


def type_name(value: Any) -> str:
    """The name of a value's class, even if the class hides it.

    >>> type_name(5)
    'int'
    """
    return str(type.__dict__["__name__"].__get__(type(value)))


def clean(text: str) -> str:
    r"""Text that UTF-8 can hold: halves of characters are written as escapes.

    >>> clean("a\ud800b")
    'a\\ud800b'
    """
    return text.encode(errors="backslashreplace").decode()


class _Repr(reprlib.Repr):
    """Like ``repr``, but shows no more of a structure than a message needs: a structure may hold itself."""

    def __init__(self) -> None:
        super().__init__()
        self._left = _LENGTH
        self.maxlevel = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = _LENGTH
        self.maxstring = self.maxother = self.maxlong = 2 * _LENGTH

    def repr1(self, x: Any, level: int) -> str:
        self._left -= 1
        return super().repr1(x, level) if self._left >= 0 else "..."

    def repr_instance(self, x: Any, level: int) -> str:
        # Its own repr might never come to an end.
        if isinstance(x, Mapping):
            return f"{type_name(x)}({self.repr_dict(x, level)})"
        if isinstance(x, Sequence | Set | np.ndarray):
            return f"{type_name(x)}({self.repr_list(list(islice(x, max(self._left, 0))), level)})"
        return repr(x)

    def repr_dict(self, x: Mapping[Any, Any], level: int) -> str:
        # In the order of the row, not sorted.
        parts = (
            f"{self.repr1(key, level)}: {self.repr1(part, level)}"
            for key, part in islice(x.items(), max(self._left, 0))
        )
        return "{" + ", ".join(parts) + "}"


def jsonable(value: Any) -> Any:
    r"""A value as strict JSON; what JSON cannot express (times, bytes, NaN) becomes a string.

    If a structure is too deep or too large, or holds itself, its rest is ``"..."``.

    >>> jsonable({"v": float("nan"), "at": datetime(2024, 1, 2), "raw": b"\xff"})
    {'v': 'nan', 'at': '2024-01-02T00:00:00', 'raw': 'ff'}
    """
    return _Jsonable().of(value, _DEPTH)


class _Jsonable:
    def __init__(self) -> None:
        self._left = _PARTS

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if depth < 0 or self._left < 0:
            return "..."
        try:
            return self._of(value, depth)
        except Exception:
            return f"a value of type {type_name(value)}"

    def _of(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, str | bool | int | float):
            return _simple(value)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).hex()
        if isinstance(value, Sequence | Set):
            return self._sequence(value, depth)
        if isinstance(value, datetime | date | time):
            return str(value.isoformat())
        return str(value.total_seconds()) if isinstance(value, timedelta) else str(value)

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        found = {}
        for key, part in value.items():
            found[str(key)] = self.of(part, depth - 1)
            if self._left < 0:
                break
        return found

    def _sequence(self, value: Any, depth: int) -> list[Any]:
        found = []
        for part in value:
            found.append(self.of(part, depth - 1))
            if self._left < 0:
                break
        return found


def _simple(value: Any) -> Any:
    """The built-in type of a subclass's value, so that its methods are not called again."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        # Python refuses to write out more than some thousand digits.
        return int.__index__(value) if int.bit_length(value) < 10_000 else shown(value)
    number = float.__float__(value)
    return number if math.isfinite(number) else str(number)
