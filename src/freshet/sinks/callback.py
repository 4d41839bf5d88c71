"""Passes rows to a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import pyarrow as pa
from pydantic import BeforeValidator

from freshet.model import UserError
from freshet.sinks.place import check_place, load
from freshet.sinks.sink import SinkOptions, Token


def _placed(value: Any) -> Any:
    """A function, or a place that may be that of a function."""
    if isinstance(value, str):
        check_place(value)
    elif not callable(value):
        raise ValueError(f"must be a function or its place as 'package.module:name', not {value!r}")
    return value


class CallbackOptions(SinkOptions):
    """Options of the sink kind ``callback``.

    Args:
        function: Called with a table and its :class:`Token`. In a file it is a place, ``"package.module:name"``.
    """

    function: Annotated[Callable[[pa.Table, Token], object] | str, BeforeValidator(_placed)]


class CallbackSink:
    """Calls a function, at least once for each row: after a failure the same rows may come again, beginning at the
    same offset. A function that must not do things twice compares the token with the last ``end`` that it has seen.

    >>> seen = []
    >>> sink = CallbackSink(CallbackOptions(function=lambda table, token: seen.append((token.first, token.end))))
    >>> sink.write(pa.table({"v": [1, 2]}), Token("q", 5, 7)), seen
    ({}, [(5, 7)])
    """

    def __init__(self, options: CallbackOptions) -> None:
        self.arrival = options.arrival
        self._function = _imported(options.function)

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        self._function(table, token)
        return {}

    def close(self) -> None:
        """Has nothing to close."""


def _imported(function: Callable[[pa.Table, Token], object] | str) -> Callable[[pa.Table, Token], object]:
    if not isinstance(function, str):
        return function
    try:
        return load(function)
    except ValueError as error:
        raise UserError(f"function: {error}") from None


KINDS: Final = {"callback": (CallbackOptions, CallbackSink)}
