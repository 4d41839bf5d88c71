"""Sources: where the tuples of streams come from. One file for each kind; :func:`create` makes them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from freshet.model import Stream, UserError
from freshet.model.plugins import Registry
from freshet.sources.options import Duration, Options, first_mistake, is_kind, parse
from freshet.sources.source import Batch, Checkable, Source, Written

if TYPE_CHECKING:
    from freshet.sources.feeder import Feeder, FeederState, FeederStatus
    from freshet.sources.generator import Generator, GeneratorOptions
    from freshet.sources.mirror import MirrorOptions
    from freshet.sources.new_files import FilesOptions, FilesSource
    from freshet.sources.push import Backpressure, PushOptions, PushSource
    from freshet.sources.spark import SparkOptions, SparkSource
    from freshet.sources.trace import Trace, TraceOptions

_MODULES: Final = {
    "files": "new_files",
    "generator": "generator",
    "mirror": "mirror",
    "push": "push",
    "spark": "spark",
    "trace": "trace",
}
"""The kinds of sources with their modules. Each module names its kinds in ``KINDS``."""
KINDS: Final = Registry[tuple[type[Options], Callable[[Any, Stream], Source]]](
    "freshet.sources",
    {},
    is_kind,
    "a pair: the class of its options, and what makes a source from them",
    homes={kind: f"freshet.sources.{module}" for kind, module in _MODULES.items()},
)
"""The options and the class of each kind of source; those of other packages are entry points of ``freshet.sources``."""
_HOMES: Final = {
    "Backpressure": "push",
    "Feeder": "feeder",
    "FeederState": "feeder",
    "FeederStatus": "feeder",
    "FilesOptions": "new_files",
    "FilesSource": "new_files",
    "Generator": "generator",
    "GeneratorOptions": "generator",
    "MirrorOptions": "mirror",
    "PushOptions": "push",
    "PushSource": "push",
    "SparkOptions": "spark",
    "SparkSource": "spark",
    "Trace": "trace",
    "TraceOptions": "trace",
}


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


def __getattr__(name: str) -> Any:
    """Imports a source when it is first used: a mere check waits for none but those of its file."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
