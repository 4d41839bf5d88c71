"""The view: all that a policy may look at. Read-only, the same in simulated time and on Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from freshet.model.promises.promise import Promises
from freshet.model.scheduling.instance import InstanceInput


class OperatorView(Protocol):
    """An operator in its place in the graph, with what waits at its inputs."""

    @property
    def kind(self) -> str:
        """What it is: ``filter``, ``project``, ``join`` and so on."""

    @property
    def ports(self) -> int:
        """How many inputs it has."""

    @property
    def inputs(self) -> tuple[int, ...]:
        """The operators whose output it reads; fewer than ``ports`` if it reads streams."""

    @property
    def readers(self) -> tuple[int, ...]:
        """The operators that read its output, each once."""

    @property
    def outputs(self) -> tuple[int, ...]:
        """The queries whose output it gives."""

    @property
    def queries(self) -> tuple[int, ...]:
        """The queries that need it; none if all of them were dropped."""

    @property
    def promises(self) -> Promises:
        """What was promised to its query; for shared work, what follows from the promises to all of its queries."""

    @property
    def pending(self) -> int:
        """Number of waiting tuples, not counting those in progress. It is 1 when none waits but a window is due to
        close."""

    @property
    def head_arrival(self) -> float:
        """Arrival of the first waiting tuple; infinity if none waits."""

    @property
    def mean_arrival(self) -> float:
        """Mean arrival of the waiting tuples; infinity if none waits."""

    @property
    def left_behind(self) -> int:
        """Number of tuples of its queues that were passed over and still are to be done."""

    @property
    def came(self) -> int:
        """Number of tuples that have come to its queues so far; only differences mean something."""

    def expiry(self, rank: int = 0) -> float:
        """When the waiting tuple of a rank expires (WU §4.3): until then an answer that it brings out is of use. With
        several queues, the least over the tuples of this rank in each; infinity if there is none, or it never does."""

    @property
    def bytes_waiting(self) -> int:
        """Bytes of the waiting tuples."""

    @property
    def size_in(self) -> float:
        """Bytes of a tuple in front of it, as far as the types of its columns say; the mean over its inputs."""

    @property
    def size_out(self) -> float:
        """Bytes of a tuple that it gives out, in the same measure."""

    @property
    def cost(self) -> float:
        """Seconds per tuple for which a unit keeps its worker; if tasks run side by side, those of the longest."""

    @property
    def selectivity(self) -> float:
        """Tuples out per tuple in."""


class QueryView(Protocol):
    """A query with what was promised to it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def promises(self) -> Promises:
        """What was promised to it."""

    @property
    def operators(self) -> Sequence[int]:
        """The operators that it needs, each after those that it reads."""

    @property
    def root(self) -> int:
        """The operator whose output is its own."""


class InstanceView(Protocol):
    """An instance of a periodic query that was released and is not answered yet (RT §2.2)."""

    @property
    def key(self) -> tuple[str, int]:
        """Name of the query, and the release in microseconds."""

    @property
    def query(self) -> int:
        """Number of the query."""

    @property
    def release(self) -> float:
        """When it was released, in seconds."""

    @property
    def deadline(self) -> float:
        """When its answer is due, in seconds."""

    @property
    def inputs(self) -> tuple[InstanceInput, ...]:
        """What it sees of each edge from a stream or an output."""

    @property
    def running(self) -> bool:
        """Whether its unit is running, or has run and is not committed yet."""

    @property
    def began(self) -> float:
        """When its unit began, if it is running."""

    @property
    def back(self) -> bool:
        """Whether its unit has run and is not committed yet."""

    @property
    def may_run(self) -> bool:
        """Whether it may run now: the instances of a query run one after the other."""


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
    def instances(self) -> Sequence[InstanceView]:
        """Instances of periodic queries that are not answered yet, by release."""

    def overhead(self, nodes: Collection[int] = ()) -> float:
        """Seconds that a step costs before it touches a tuple, by the way in which these nodes would run; like costs,
        seconds that it keeps its worker. Without nodes: of the latest steps, whichever way they went."""

    @property
    def deciding(self) -> float:
        """Seconds that the latest decision took; 0 before the first."""

    @property
    def workers(self) -> int:
        """Units that can run at once."""

    @property
    def idle_workers(self) -> int:
        """Workers without a unit."""
