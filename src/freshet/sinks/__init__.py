"""Sinks: where the output of queries goes. One file for each kind; :func:`create` makes them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from freshet.model import UserError
from freshet.model.plugins import Registry
from freshet.sinks.callback import CallbackOptions, CallbackSink
from freshet.sinks.console import ConsoleOptions, ConsoleSink
from freshet.sinks.jsonl import JsonlOptions, JsonlSink
from freshet.sinks.memory import MemoryOptions, MemorySink
from freshet.sinks.parquet import ParquetOptions, ParquetSink
from freshet.sinks.sink import Exporter, GatheringSink, Sink, SinkOptions, Token
from freshet.sinks.table import TableOptions, TableSink
from freshet.sources.options import is_kind, parse

if TYPE_CHECKING:
    from freshet.sinks.lane import SinkState, SinkStatus
    from freshet.sinks.runner import SinkRunner

_MODULES: Final = (
    "callback",
    "console",
    "jsonl",
    "memory",
    "parquet",
    "table",
)
"""Modules with kinds of sinks. Each names its kinds in ``KINDS``."""
_RUNNING: Final = {
    "SinkRunner": "freshet.sinks.runner",
    "SinkState": "freshet.sinks.lane",
    "SinkStatus": "freshet.sinks.lane",
}
KINDS: Final = Registry[tuple[type[SinkOptions], Callable[[Any], Sink]]](
    "freshet.sinks",
    {name: kind for module in _MODULES for name, kind in import_module(f"freshet.sinks.{module}").KINDS.items()},
    is_kind,
    "a pair: the class of its options, and what makes a sink from them",
)
"""The options and the class of each kind of sink; those of other packages are entry points of ``freshet.sinks``."""


def create(kind: str, options: Mapping[str, Any] | SinkOptions) -> Sink:
    """Makes a sink by its kind; a wrong option is a :class:`UserError` that names the key.

    >>> create("memory", {"limit": 10}).rows()
    []
    >>> create("memory", {"limt": 10})
    Traceback (most recent call last):
    freshet.model.errors.UserError: sink memory: limt is not a known key
    """
    if kind not in KINDS:
        raise UserError(f"sink kind {kind!r} is not known: use one of {', '.join(KINDS.names())}")
    model, make = KINDS[kind]
    return make(parse(model, options, f"sink {kind}"))


__all__ = [
    "KINDS",
    "CallbackOptions",
    "CallbackSink",
    "ConsoleOptions",
    "ConsoleSink",
    "Exporter",
    "GatheringSink",
    "JsonlOptions",
    "JsonlSink",
    "MemoryOptions",
    "MemorySink",
    "ParquetOptions",
    "ParquetSink",
    "Sink",
    "SinkOptions",
    "SinkRunner",
    "SinkState",
    "SinkStatus",
    "TableOptions",
    "TableSink",
    "Token",
    "create",
]


def __getattr__(name: str) -> Any:
    """Imports what runs sinks only when it is needed: a mere check does not wait for it."""
    if name in _RUNNING:
        return getattr(import_module(_RUNNING[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
