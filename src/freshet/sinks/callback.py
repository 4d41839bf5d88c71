"""Rows handed to a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BeforeValidator

from freshet.sinks.sink import SinkOptions, Token


def _imported(value: Any) -> Any:
    """The function of a place such as ``"package.module:name"``; what is no text stays as it is."""
    if not isinstance(value, str):
        if not callable(value):
            raise ValueError(f"must be a function or its place as 'package.module:name', not {value!r}")
        return value
    module, _, name = value.partition(":")
    if not module or not name:
        raise ValueError(f"must be the place of a function as 'package.module:name', not {value!r}")
    found = _attribute(_module(module), module, name)
    if not callable(found):
        raise ValueError(f"{name} of module {module} is no function but {type(found).__name__}")
    return found


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        inner = "" if error.name and name.startswith(error.name) else f" (imported by {name})"
        where = "beside the application file or on PYTHONPATH"
        raise ValueError(f"there is no module {error.name!r}{inner} {where}") from None
    except Exception as error:  # whatever the user's module does when it is imported
        reason = next(iter(str(error).splitlines()), "")
        raise ValueError(f"module {name} cannot be imported: {type(error).__name__}: {reason}") from None


def _attribute(module: ModuleType, place: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [word for word, value in vars(module).items() if callable(value) and not word.startswith("_")]
            close = get_close_matches(name, known, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"module {place} has no function {name!r}{hint}")
        found = getattr(found, part)
    return found


class CallbackOptions(SinkOptions):
    """Options of the sink kind ``callback``.

    Args:
        function: Called with a table and its :class:`Token`; in a file its place, ``"package.module:name"``.
    """

    function: Annotated[Callable[[pa.Table, Token], object], BeforeValidator(_imported)]


class CallbackSink:
    """Calls a function, at least once for each row: after a failure the same rows may come again, beginning at the
    same offset. A function that must not do things twice compares the token with the last ``end`` it has seen.

    >>> seen = []
    >>> sink = CallbackSink(CallbackOptions(function=lambda table, token: seen.append((token.first, token.end))))
    >>> sink.write(pa.table({"v": [1, 2]}), Token("q", 5, 7)), seen
    ({}, [(5, 7)])
    """

    def __init__(self, options: CallbackOptions) -> None:
        self.arrival = options.arrival
        self._function = options.function

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        self._function(table, token)
        return {}

    def close(self) -> None:
        """Has nothing to let go of."""
