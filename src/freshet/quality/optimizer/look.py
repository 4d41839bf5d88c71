"""The record of one look at a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from freshet.model import MEASURES

LookRule = Literal["satisfied", "best", "any-better", "cycle", "none-better", "least-stay"]
"""Why a look stays or switches:

- ``satisfied``: everything is as expected;
- ``best``: the strategy with the greatest score is taken;
- ``any-better``: what is violated is of the class dont-care, and the first better strategy is taken;
- ``cycle``: the better strategy would close a cycle, so what was violated before counts, too;
- ``none-better``: something is violated, but no strategy that may be taken is better;
- ``least-stay``: another strategy is better, but the present one is too new.
"""


@dataclass(frozen=True, slots=True)
class MeasureLook:
    """One measure at a look.

    Args:
        measure: Its name.
        priority: The class of its expectation.
        class_weight: The weight of that class.
        observed: Its figure over the interval; None: there was nothing to observe.
        expected: What is expected now.
        ahead: What is expected at the look-ahead, where violations are found.
        violated: Whether it is violated.
        weight: The weight with which it counted in the scores; None: it did not count.
        meanwhile: What was expected in the middle of the interval; None: the same as now.

    >>> MeasureLook("memory", "must", 1.0, 2e6, 1e6, 1e6, violated=True, meanwhile=1e7).missed
    False
    """

    measure: str
    priority: str
    class_weight: float
    observed: float | None
    expected: float
    ahead: float
    violated: bool
    weight: float | None = None
    meanwhile: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the interval was not as expected in its own time. What is expected by now may be another thing: this
        is what a look decides by."""
        then = self.expected if self.meanwhile is None else self.meanwhile
        return not MEASURES[self.measure].meets(self.observed, then)


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one look at a query, and what was done.

    Args:
        time: When it was, in seconds of the clock.
        age: Seconds since the query's first start.
        strategy: The strategy at the look.
        to: The strategy from then on: the same one, or another.
        rule: Why.
        measures: What was measured and expected, with the weights.
        scores: Scores of all strategies that may be chosen. In a cycle they count what was violated before, too.
        exhausted: Whether an expectation of the class must is violated and no strategy is left that may be better: the
            time for thinning (MAV §4.3).
        arrivals: By stream that the query reads, tuples that came per second.
        note: What else a person should know.
        applied: Whether it took effect: not if the optimizer only advises, or if the query's strategy is pinned.
        predicted: By strategy, what each measure was predicted to become, if that decided.
        kept: Share of what comes in for the query that is kept from now on; below 1 it is thinned.
        seconds: Length of the interval that it judges; a query at rest is not looked at.

    >>> late = MeasureLook("latency", "must", 1.0, observed=3.0, expected=2.0, ahead=2.0, violated=True, weight=1.0)
    >>> look = Look(7.0, 3.0, "segment", "pcs", "best", (late,))
    >>> Look.read(look.record()) == look, look.switches, look.violated
    (True, True, ('latency',))
    """

    time: float
    age: float
    strategy: str
    to: str
    rule: LookRule
    measures: tuple[MeasureLook, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    exhausted: bool = False
    arrivals: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    applied: bool = True
    predicted: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    kept: float = 1.0
    seconds: float = 0.0

    @property
    def switches(self) -> bool:
        """Whether it changes the strategy."""
        return self.to != self.strategy

    @property
    def violated(self) -> tuple[str, ...]:
        """The violated measures of all classes."""
        return tuple(each.measure for each in self.measures if each.violated)

    @property
    def worst_class(self) -> float:
        """Weight of the greatest class of which something is violated; 0: nothing is."""
        return max((each.class_weight for each in self.measures if each.violated), default=0.0)

    def record(self) -> dict[str, Any]:
        """The look as plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Look:
        """The look that a record tells."""
        return cls(**dict(record) | {"measures": tuple(MeasureLook(**each) for each in record["measures"])})
