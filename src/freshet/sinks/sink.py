"""What a sink is: a consumer of a query's output with a cursor of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from freshet.sources.options import Options


@dataclass(frozen=True, slots=True)
class Token:
    """The output range [first, end) of a write. A range may come again after a failure, then maybe longer: a sink
    that must not do things twice remembers the ``end`` of what it has done and leaves out what lies before it.

    >>> Token("q", 10, 30).rows
    20
    """

    stream: str
    first: int
    end: int

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return self.end - self.first


class SinkOptions(Options):
    """Options that all sinks have.

    Args:
        arrival: Show the hidden arrival column ``__arrival`` (microseconds since the epoch) too.
    """

    arrival: bool = False


class Sink(Protocol):
    """Where output goes. A sink is used by one thread at a time."""

    @property
    def arrival(self) -> bool:
        """Whether it wants the arrival column."""

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Goes on from what the last write that counts has returned (nothing, at the very first time); what it
        returns is kept in its place. Called again after a failure."""

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        """Takes rows; what it returns is kept in one transaction with the sink's cursor."""

    def close(self) -> None:
        """Lets go of files."""


@runtime_checkable
class TellingSink(Protocol):
    """A sink that has something to say besides errors."""

    @property
    def note(self) -> str | None:
        """What a person should know of where its rows went."""


@runtime_checkable
class GatheringSink(Protocol):
    """A sink that would rather have many rows seldom than few often. What waits for it waits in the log, and its cursor
    moves with each write as any sink's does."""

    @property
    def most_rows(self) -> int:
        """So many rows are worth a write; no write has more."""

    @property
    def patience(self) -> float:
        """Seconds after which fewer are, too."""

    def write_all(self, pieces: Iterator[pa.Table], token: Token) -> dict[str, Any]:
        """As :meth:`Sink.write`, with the rows of the range in pieces, so that they need not be in memory at once."""
