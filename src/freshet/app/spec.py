"""What an application declares, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pyarrow as pa

from freshet.log import Retention
from freshet.model import Stream, UserError
from freshet.sinks import Sink, Token
from freshet.sources import Source

SourceLike = Source | Mapping[str, Any]
"""A source, or the options of one: ``{"kind": "generator", ...}``."""
SinkLike = Sink | Mapping[str, Any] | Callable[[pa.Table, Token], object]
"""A sink, the options of one (``{"kind": "jsonl", "path": ...}``), or a function as of a callback sink."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A declared stream, where its tuples come from and how long they are kept."""

    stream: Stream
    source: SourceLike = field(default_factory=lambda: {"kind": "push"})
    retention: Retention = field(default_factory=Retention)


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """A declared query, where its output goes and how long that is kept."""

    name: str
    sql: str
    weight: float = 1.0
    start: Literal["earliest", "latest"] = "earliest"
    on_error: Literal["null", "fail"] = "null"
    sinks: tuple[SinkLike, ...] = ()
    retention: Retention = field(default_factory=Retention)


@dataclass(frozen=True, slots=True)
class Settings:
    """How an application runs. See the ``[app]`` and ``[spark]`` tables of the file for what each means."""

    policy: str = "everything"
    workers: int = 2
    max_train_rows: int = 500_000
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)


def check_name(name: str, kind: str) -> str:
    """A name that can stand in SQL and in the names of operators.

    >>> check_name("2fast", "query")
    Traceback (most recent call last):
    freshet.model.errors.UserError: '2fast' cannot name a query: use letters, digits and _, beginning with a letter
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot name a {kind}: use letters, digits and _, beginning with a letter")
    return name
