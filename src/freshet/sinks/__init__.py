"""Sinks: where the output of queries goes. One file for each kind; :func:`create` makes them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from freshet.model import UserError
from freshet.model.plugins import Registry
from freshet.sinks.sink import Exporter, GatheringSink, Sink, SinkOptions, Token
from freshet.sources.options import is_kind, parse

if TYPE_CHECKING:
    from freshet.sinks.callback import CallbackOptions, CallbackSink
    from freshet.sinks.console import ConsoleOptions, ConsoleSink
    from freshet.sinks.jsonl import JsonlOptions, JsonlSink
    from freshet.sinks.lane import SinkState, SinkStatus
    from freshet.sinks.memory import MemoryOptions, MemorySink
    from freshet.sinks.parquet import ParquetOptions, ParquetSink
    from freshet.sinks.runner import SinkRunner
    from freshet.sinks.table import TableOptions, TableSink

_MODULES: Final = {
    "callback": "callback",
    "console": "console",
    "jsonl": "jsonl",
    "memory": "memory",
    "parquet": "parquet",
    "table": "table",
}
"""The kinds of sinks with their modules. Each module names its kinds in ``KINDS``."""
KINDS: Final = Registry[tuple[type[SinkOptions], Callable[[Any], Sink]]](
    "freshet.sinks",
    {},
    is_kind,
    "a pair: the class of its options, and what makes a sink from them",
    homes={kind: f"freshet.sinks.{module}" for kind, module in _MODULES.items()},
)
"""The options and the class of each kind of sink; those of other packages are entry points of ``freshet.sinks``."""
_HOMES: Final = {
    "CallbackOptions": "callback",
    "CallbackSink": "callback",
    "ConsoleOptions": "console",
    "ConsoleSink": "console",
    "JsonlOptions": "jsonl",
    "JsonlSink": "jsonl",
    "MemoryOptions": "memory",
    "MemorySink": "memory",
    "ParquetOptions": "parquet",
    "ParquetSink": "parquet",
    "SinkRunner": "runner",
    "SinkState": "lane",
    "SinkStatus": "lane",
    "TableOptions": "table",
    "TableSink": "table",
}


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
    """Imports a sink, or what runs sinks, when it is first used: a mere check waits for none but those of its file."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
