"""The decision table: how strategies rank in each measure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from freshet.model.errors import UserError
from freshet.model.promises.measure import MEASURES, QosMeasure

_ALIKE: Final = 0.05
"""Share by which figures must differ to rank differently."""


@dataclass(frozen=True, slots=True)
class DecisionTable:
    """Ranks of strategies by measure; the greatest is the best (MAV §4.6).

    A score divides ranks by the number of strategies of the *whole* table, also where only some of them may be chosen:
    a subset is not ranked anew (MAV §5 with the scores of §4.8).

    Args:
        strategies: Policies, in the order that settles ties.
        ranks: By measure, the rank of each strategy.

    >>> SHIPPED.scores({"latency": 1.0, "memory": 1.0}, among=("pcs", "segment", "simplified-segment"))
    {'pcs': 1.25, 'segment': 1.25, 'simplified-segment': 1.5}
    """

    strategies: tuple[str, ...]
    ranks: Mapping[str, Mapping[str, float]]

    @classmethod
    def parse(cls, given: Any, check: Callable[[str], object] | None = None) -> DecisionTable:
        """The table that a user writes: by measure, the rank of each strategy.

        Args:
            given: Rows by measure; the first row gives the order of the strategies.
            check: Raises :class:`UserError` for a strategy that is no policy.

        >>> DecisionTable.parse({"latency": {"pcs": 2, "segment": 1}, "memory": {"pcs": 1}})
        Traceback (most recent call last):
        freshet.model.errors.UserError: memory: the rank of segment is missing
        """
        if not isinstance(given, Mapping) or not any(given.values()):
            raise UserError(
                'a decision table has a row for each measure, such as {"latency": {"pcs": 2, "segment": 1}}'
            )
        strategies = tuple(dict.fromkeys(name for row in given.values() if isinstance(row, Mapping) for name in row))
        if check is not None:
            for strategy in strategies:
                check(strategy)
        return cls(strategies, {measure: _row(measure, row, strategies) for measure, row in given.items()})

    @classmethod
    def of_figures(cls, figures: Mapping[str, Mapping[str, float | None]]) -> DecisionTable:
        """The table that figures lead to: by strategy, what each measure was or will be.

        The rank of a strategy is 1 + the number of strategies that are worse by more than a twentieth. So strategies
        that hardly differ in a measure have the same rank, and none of them is preferred for it.

        >>> table = DecisionTable.of_figures(
        ...     {"pcs": {"latency": 0.5, "memory": 8e6}, "segment": {"latency": 2.0, "memory": 7.9e6}}
        ... )
        >>> table.ranks
        {'latency': {'pcs': 2.0, 'segment': 1.0}, 'memory': {'pcs': 1.0, 'segment': 1.0}}
        """
        measures = dict.fromkeys(measure for each in figures.values() for measure in each)
        return cls(tuple(figures), {name: _ranked(MEASURES[name], figures) for name in measures})

    def check_measures(self, measures: Collection[str]) -> None:
        """Refuses measures that the table has no ranks for.

        >>> DecisionTable.parse({"latency": {"pcs": 2, "segment": 1}}).check_measures(["latency", "memory"])
        Traceback (most recent call last):
        freshet.model.errors.UserError: the decision table has no ranks for memory: add a row for it
        """
        for measure in measures:
            if measure not in self.ranks:
                raise UserError(f"the decision table has no ranks for {measure}: add a row for it")

    def score(self, strategy: str, weights: Mapping[str, float]) -> float:
        """Score of a strategy for the weights of measures (MAV Eq. 1).

        >>> SHIPPED.score("pcs", {"latency": 0.75, "memory": 0.5})
        0.875
        """
        # Divided last, so that equal scores are equal as numbers wherever the weights allow it.
        return sum(weight * self.ranks[measure][strategy] for measure, weight in weights.items()) / len(self.strategies)

    def scores(self, weights: Mapping[str, float], among: Collection[str] | None = None) -> dict[str, float]:
        """Scores of the strategies that may be chosen, in the order of the table."""
        chosen = self.strategies if among is None else [name for name in self.strategies if name in among]
        return {strategy: self.score(strategy, weights) for strategy in chosen}

    def better(self, strategy: str, than: str, measures: Collection[str]) -> bool:
        """Whether a strategy ranks above another one in at least one of these measures."""
        return any(self.ranks[measure][strategy] > self.ranks[measure][than] for measure in measures)


def _ranked(measure: QosMeasure, figures: Mapping[str, Mapping[str, float | None]]) -> dict[str, float]:
    """The ranks of strategies in one measure. Where nothing was observed, nothing was wrong."""
    costs = {strategy: measure.excess(each.get(measure.name), 1.0) for strategy, each in figures.items()}
    return {strategy: 1.0 + sum(other > cost * (1.0 + _ALIKE) for other in costs.values())
            for strategy, cost in costs.items()}  # fmt: skip


def _row(measure: Any, row: Any, strategies: tuple[str, ...]) -> dict[str, float]:
    if measure not in MEASURES:
        raise UserError(f"{measure}: there is no such measure (there are: {', '.join(MEASURES)})")
    if not isinstance(row, Mapping):
        raise UserError(f"{measure}: must be a table of ranks by strategy, not {row!r}")
    for strategy in strategies:
        if strategy not in row:
            raise UserError(f"{measure}: the rank of {strategy} is missing")
        rank = row[strategy]
        if isinstance(rank, bool) or not isinstance(rank, int | float) or not 1 <= rank <= len(strategies):
            text = f"from 1 (the worst) to {len(strategies)}, the number of strategies"
            raise UserError(f"{measure}: the rank of {strategy} must be {text}, not {rank!r}")
    return {strategy: float(row[strategy]) for strategy in strategies}


ROUND_ROBIN: Final = "wrr(0.02, 1, 1)"
"""MavStream's round robin: all operators in turn, for the same time (MAV §3.1)."""
SHIPPED: Final = DecisionTable.parse(
    {
        "latency": {ROUND_ROBIN: 2, "pcs": 4, "segment": 1, "simplified-segment": 3},
        "memory": {ROUND_ROBIN: 2, "pcs": 1, "segment": 4, "simplified-segment": 3},
        "throughput": {ROUND_ROBIN: 2, "pcs": 4, "segment": 1, "simplified-segment": 3},
    }
)
"""MAV Table 1."""
