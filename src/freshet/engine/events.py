"""Events: what the engine tells those who watch it, each when it has happened. There is none for a single tuple."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from freshet.model import Chain, Decision, Promises, Unit, UnitResult


@dataclass(frozen=True, slots=True)
class Began:
    """The loop begins; what was told before it is about installing."""

    now: float


@dataclass(frozen=True, slots=True)
class Added:
    """A query was added; ``streams`` are the streams and outputs that it reads."""

    now: float
    query: str
    promises: Promises
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Promised:
    """Something else was promised to a query."""

    now: float
    query: str
    promises: Promises


@dataclass(frozen=True, slots=True)
class Dropped:
    """A query was taken out."""

    now: float
    query: str


@dataclass(frozen=True, slots=True)
class Arrived:
    """Tuples came into a stream, up to ``end``; ``operators`` read it."""

    now: float
    stream: str
    end: int
    operators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """The policy was asked, and took ``seconds`` to answer."""

    now: float
    decision: Decision
    seconds: float


@dataclass(frozen=True, slots=True)
class Submitted:
    """A unit was given to the executor."""

    now: float
    unit: Unit


@dataclass(frozen=True, slots=True)
class Returned:
    """A unit is back from the executor."""

    now: float
    result: UnitResult


@dataclass(frozen=True, slots=True)
class Committed:
    """What came of a unit is durable; ``chains`` are those that took effect."""

    now: float
    result: UnitResult
    chains: Sequence[Chain]


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing of a unit was committed, and its tuples wait again; ``result.retry`` says why."""

    now: float
    result: UnitResult


@dataclass(frozen=True, slots=True)
class Held:
    """A query is held back because its output takes nothing now; ``reason`` is None where it goes on."""

    now: float
    query: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A query cannot go on; the others do."""

    now: float
    query: str
    reason: str


Event = (
    Began | Added | Promised | Dropped | Arrived | Decided | Submitted | Returned | Committed | Failed | Held
    | Quarantined
)  # fmt: skip


class Observer(Protocol):
    """Is told what happens, on the thread of the loop: it must not take long."""

    def tell(self, event: Event) -> None:
        """Something happened."""
