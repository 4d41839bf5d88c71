"""Sources: where the tuples of streams come from. One file for each kind; :func:`create` makes them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from freshet.model import Stream, UserError
from freshet.model.plugins import Registry
from freshet.sources.feeder import Feeder, FeederState, FeederStatus
from freshet.sources.generator import Generator, GeneratorOptions
from freshet.sources.mirror import MirrorOptions
from freshet.sources.new_files import FilesOptions, FilesSource
from freshet.sources.options import Duration, Options, first_mistake, is_kind, parse
from freshet.sources.push import Backpressure, PushOptions, PushSource
from freshet.sources.source import Batch, Checkable, Source, Written
from freshet.sources.spark import SparkOptions, SparkSource
from freshet.sources.trace import Trace, TraceOptions

_MODULES: Final = (
    "new_files",
    "generator",
    "mirror",
    "push",
    "spark",
    "trace",
)
"""Modules with kinds of sources. Each names its kinds in ``KINDS``."""
KINDS: Final = Registry[tuple[type[Options], Callable[[Any, Stream], Source]]](
    "freshet.sources",
    {name: kind for module in _MODULES for name, kind in import_module(f"freshet.sources.{module}").KINDS.items()},
    is_kind,
    "a pair: the class of its options, and what makes a source from them",
)
"""The options and the class of each kind of source; those of other packages are entry points of ``freshet.sources``."""


def create(kind: str, options: Mapping[str, Any] | Options, stream: Stream) -> Source:
    """Makes a source for a stream by its kind; a wrong option is a :class:`UserError` that names the key.

    >>> from freshet.model import parse_schema
    >>> stream = Stream("s", parse_schema("k bigint"))
    >>> create("generator", {"rate": 100}, stream).next_due()
    0.0
    >>> create("generator", {"rate": -1}, stream)
    Traceback (most recent call last):
    freshet.model.errors.UserError: stream s: source generator: rate: must be a number of tuples ... above 0, not -1
    """
    if kind not in KINDS:
        raise UserError(
            f"stream {stream.name}: source kind {kind!r} is not known: use one of {', '.join(KINDS.names())}"
        )
    model, make = KINDS[kind]
    what = f"stream {stream.name}: source {kind}"
    chosen = parse(model, options, what)
    try:
        return make(chosen, stream)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None


__all__ = [
    "KINDS",
    "Backpressure",
    "Batch",
    "Checkable",
    "Duration",
    "Feeder",
    "FeederState",
    "FeederStatus",
    "FilesOptions",
    "FilesSource",
    "Generator",
    "GeneratorOptions",
    "MirrorOptions",
    "Options",
    "PushOptions",
    "PushSource",
    "Source",
    "SparkOptions",
    "SparkSource",
    "Trace",
    "TraceOptions",
    "Written",
    "create",
    "first_mistake",
    "parse",
]
