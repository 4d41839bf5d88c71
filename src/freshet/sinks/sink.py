"""What a sink is: a consumer of a query's output with a cursor of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from freshet.sources.options import Options

if TYPE_CHECKING:
    from freshet.log import Export, Exported


@dataclass(frozen=True, slots=True)
class Token:
    """The output range [first, end) of a write. After a failure a range may come again, and may then be longer: a sink
    that must not do things twice remembers the ``end`` of what it has done, and leaves out what lies before it.

    >>> Token("q", 10, 30).rows
    20
    """

    stream: str
    first: int
    end: int

    @property
    def rows(self) -> int:
        """Number of rows in it."""
        return self.end - self.first


class SinkOptions(Options):
    """Options that all sinks have.

    Args:
        arrival: Also show the hidden column ``__arrival`` (microseconds since the epoch), and those of answers of
            periodic queries: ``__release``, ``__window_start`` and ``__quality``.
    """

    arrival: bool = False


class Sink(Protocol):
    """Where output goes. One thread at a time uses a sink."""

    @property
    def arrival(self) -> bool:
        """Whether it wants hidden columns."""

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Continues from what the last write that counts has returned (nothing, at the very first time). What this
        returns is kept in its place. Called again after a failure."""

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        """Takes rows; what it returns is kept in one transaction with the sink's cursor."""

    def close(self) -> None:
        """Closes files."""


@runtime_checkable
class TellingSink(Protocol):
    """A sink that has something to say besides errors."""

    @property
    def note(self) -> str | None:
        """What a person should know about where its rows went."""


@runtime_checkable
class GatheringSink(Protocol):
    """A sink that prefers many rows seldom to few rows often, in files. What waits for it waits in the log, and
    its cursor moves with each file, as that of any sink does with each write.

    It does not write the files itself. If Spark's tasks see its folder, they write all files that are due in one job.
    """

    @property
    def most_rows(self) -> int:
        """The number of rows that are worth a file; no file has more."""

    @property
    def patience(self) -> float:
        """Seconds after which fewer rows are worth a file, too."""

    @property
    def shared(self) -> bool:
        """Whether its folder is the same one on all machines."""

    def prepare(self, token: Token) -> tuple[Token, Path] | None:
        """What is still to be written of a range, and the path of the file; None if all of it is there."""

    def take(self, made: Exported, path: Path, token: Token) -> dict[str, Any]:
        """Gives a complete file its name; what it returns is kept like that of :meth:`Sink.write`."""


class Exporter(Protocol):
    """Writes files where Spark computes, so that the driver need not read their rows."""

    @property
    def sees_all(self) -> bool:
        """Whether its tasks see every folder that the driver sees."""

    def export(self, number: int, exports: Sequence[Export]) -> list[Exported | Exception]:
        """Writes files in one job; a file that could not be written gives the exception instead.

        Args:
            number: Number of the dispatch; the hidden names already carry it.
            exports: The files.

        Raises:
            Exception: There was no such job, or it failed as a whole.
        """
