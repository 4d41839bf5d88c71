"""The view: all that a policy may look at. Read-only, the same in simulated time and on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from freshet.model.curve import Curve


class OperatorView(Protocol):
    """An operator with the queue in front of it."""

    @property
    def query(self) -> int:
        """Number of the query that it belongs to."""

    @property
    def path(self) -> tuple[int, ...]:
        """Numbers of the operators of its path, from the stream to the output."""

    @property
    def pending(self) -> int:
        """Tuples waiting in its queue, not counting those being processed; one where none waits, but event time has
        passed windows that are to be closed."""

    @property
    def head_arrival(self) -> float:
        """Arrival of the first waiting tuple; infinity where none waits."""

    @property
    def mean_arrival(self) -> float:
        """Mean arrival of the waiting tuples; infinity where none waits."""

    @property
    def bytes_waiting(self) -> int:
        """Bytes of the waiting tuples."""

    @property
    def cost(self) -> float:
        """Seconds per tuple that a unit keeps its worker: where its tasks run side by side, those of the longest."""

    @property
    def selectivity(self) -> float:
        """Tuples out per tuple in."""


class QueryView(Protocol):
    """A query with what was promised to it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def weight(self) -> float:
        """Importance in (0, 1]."""

    @property
    def paths(self) -> Sequence[tuple[int, ...]]:
        """Operator numbers of each of its paths."""

    @property
    def deadline(self) -> float | None:
        """Seconds after release by which an answer is due."""

    @property
    def curve(self) -> Curve | None:
        """What its answers are worth by their latency."""


class View(Protocol):
    """What waits, what it costs, what was promised."""

    @property
    def now(self) -> float:
        """Time of the clock, in seconds."""

    @property
    def operators(self) -> Sequence[OperatorView]:
        """By operator number; numbers of dropped queries stay in place and never become ready."""

    @property
    def queries(self) -> Sequence[QueryView]:
        """By query number."""

    @property
    def ready(self) -> Mapping[int, None]:
        """Operators with waiting tuples that may run now (query active, not running), oldest entry first."""

    @property
    def overhead(self) -> float:
        """Seconds that a step costs before it touches a tuple; like costs, seconds that it keeps its worker."""

    @property
    def workers(self) -> int:
        """Units that can run at once."""

    @property
    def idle_workers(self) -> int:
        """Workers without a unit."""
