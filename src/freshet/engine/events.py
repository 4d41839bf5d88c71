"""Events: what the engine tells those who watch it, each when it has happened. There is none for a single tuple."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from freshet.model import Chain, Decision, Instance, Promises, Shed, Unit, UnitResult
from freshet.policies import Reason


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened."""

    now: float


class Began(Event):
    """The loop begins; what was told before it is about installing."""


@dataclass(frozen=True, slots=True)
class Added(Event):
    """A query was added; ``streams`` are the streams and outputs that it reads."""

    query: str
    promises: Promises
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Promised(Event):
    """The promises of a query changed."""

    query: str
    promises: Promises


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """A query was taken out."""

    query: str


@dataclass(frozen=True, slots=True)
class Arrived(Event):
    """Tuples came into a stream, up to ``end``; ``operators`` read it."""

    stream: str
    end: int
    operators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decided(Event):
    """The policy was asked, and took ``seconds`` to answer.

    ``why`` asks it for its reason. Only while the event is told: later the queues are not what they were.
    """

    decision: Decision
    seconds: float
    why: Callable[[], Reason]


@dataclass(frozen=True, slots=True)
class Submitted(Event):
    """A unit was given to the executor."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class Returned(Event):
    """A unit is back from the executor."""

    result: UnitResult


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """What came of a unit is durable; ``chains`` are those that took effect."""

    result: UnitResult
    chains: Sequence[Chain]


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """Nothing of a unit was committed, and its tuples wait again; ``result.retry`` says why."""

    result: UnitResult


@dataclass(frozen=True, slots=True)
class Held(Event):
    """An output or a queue takes nothing now, so whatever writes to it waits; ``reason`` is None when it continues.

    ``queries`` are those that are held back: the one whose output it is, or those that need the operator in front of
    the queue.
    """

    stream: str
    queries: tuple[str, ...]
    reason: str | None


@dataclass(frozen=True, slots=True)
class Thinned(Event):
    """A query keeps another share of what comes in from now on."""

    action: Shed


@dataclass(frozen=True, slots=True)
class Released(Event):
    """Instances of periodic queries were released."""

    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class Answered(Event):
    """An instance of a periodic query was answered, or abandoned."""

    instance: Instance


@dataclass(frozen=True, slots=True)
class Quarantined(Event):
    """A query cannot continue; the others do."""

    query: str
    reason: str


class Observer(Protocol):
    """Is told what happens, on the thread of the loop: it must not take long."""

    def tell(self, event: Event) -> None:
        """Something happened."""
