"""What the optimizer remembers of a query, from one look and one run to the next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from freshet.quality.optimizer.look import Look, MeasureLook

SAME: Final = 0.05
"""Share by which an expected figure may have moved and still counts as unchanged. Otherwise an expectation that slowly
changes over time would be another one at each look, and would let every cycle through."""


@dataclass(frozen=True, slots=True)
class StrategySwitch:
    """A remembered decision (MAV §4.10).

    Args:
        left: The strategy that was left.
        taken: The strategy that was taken.
        violated: The violated measures of the class that was decided for.
        expected: By measure, what was expected, and the weight of its class.
    """

    left: str
    taken: str
    violated: frozenset[str]
    expected: Mapping[str, tuple[float, float]]

    def as_expected(self, measures: Iterable[MeasureLook]) -> bool:
        """Whether the same was expected then as is now."""
        now = {each.measure: (each.ahead, each.class_weight) for each in measures}
        return now.keys() == self.expected.keys() and all(
            math.isclose(figure, self.expected[name][0], rel_tol=SAME) and weight == self.expected[name][1]
            for name, (figure, weight) in now.items()
        )


@dataclass(frozen=True, slots=True)
class StrategyState:
    """The strategy of a query, since when it has it, and the latest switches: as many as there are strategies.

    It never changes; :meth:`after` gives the next one. :meth:`record` and :meth:`read` carry it over a restart.

    Args:
        strategy: The present strategy.
        since: The query's age at the last switch; None: there was none.
        switches: The latest ones, oldest first.

    >>> state = StrategyState("segment")
    >>> state = state.after(Look(7.0, 3.0, "segment", "pcs", "best", scores={"segment": 0.25, "pcs": 1.0}))
    >>> state.strategy, state.since, len(state.switches), StrategyState.read(state.record()) == state
    ('pcs', 3.0, 1, True)
    """

    strategy: str
    since: float | None = None
    switches: tuple[StrategySwitch, ...] = ()

    def after(self, look: Look) -> StrategyState:
        """The state once a look has been acted upon (MAV Alg. 1, lines 29-33, for every new strategy)."""
        if not look.switches:
            return self
        worst = look.worst_class
        switch = StrategySwitch(
            look.strategy,
            look.to,
            frozenset(each.measure for each in look.measures if each.violated and each.class_weight == worst),
            {each.measure: (each.ahead, each.class_weight) for each in look.measures},
        )
        return StrategyState(look.to, look.age, (*self.switches, switch)[-len(look.scores) :])

    def record(self) -> dict[str, Any]:
        """The state as plain values that JSON can hold."""
        switches = [
            {
                "left": each.left,
                "taken": each.taken,
                "violated": sorted(each.violated),
                "expected": {name: list(known) for name, known in each.expected.items()},
            }
            for each in self.switches
        ]
        return {"strategy": self.strategy, "since": self.since, "switches": switches}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> StrategyState:
        """The state that a record tells."""
        switches = tuple(
            StrategySwitch(
                each["left"],
                each["taken"],
                frozenset(each["violated"]),
                {name: (figure, weight) for name, (figure, weight) in each["expected"].items()},
            )
            for each in record["switches"]
        )
        return cls(record["strategy"], record["since"], switches)
