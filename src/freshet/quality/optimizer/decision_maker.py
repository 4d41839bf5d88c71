"""Which strategy a query should run by, from what was measured and what is expected."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from freshet.model import MEASURES, Expectation, Expectations, UserError
from freshet.model.promises.decision_table import SHIPPED, DecisionTable
from freshet.model.promises.look_settings import LookSettings
from freshet.quality.optimizer.interval_meter import IntervalFigures
from freshet.quality.optimizer.look import Look, LookRule, MeasureLook
from freshet.quality.optimizer.strategy_state import StrategyState, StrategySwitch

_EQUAL: Final = 1e-9
"""Scores that differ by less are equal: weights are sums and products of floating-point numbers."""

_BEGINNING: Final = {"latency": math.inf, "memory": 0.0, "throughput": 0.0}
"""What is observed of a query that begins: nothing waits, and nothing was answered yet."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What one look has to decide: measures with their weights, and the violated ones that it decides for."""

    measures: tuple[MeasureLook, ...]
    violated: frozenset[str]
    any_better: bool
    must: bool

    @property
    def weights(self) -> dict[str, float]:
        return {each.measure: each.weight for each in self.measures if each.weight is not None}

    def with_violated(self, before: Collection[str]) -> _Case:
        """The same where measures that were violated before count like violated ones."""
        counted = (
            replace(each, weight=each.class_weight) if each.measure in before else each for each in self.measures
        )
        return replace(self, measures=tuple(counted))


class DecisionMaker:
    """Chooses the strategy of a query at a look (MAV Alg. 1, Eq. 1-2, §4.7-4.12).

    Classes are considered from the greatest weight down, and the first with a violated measure decides. Violated
    measures of that class count with the weight of the class, satisfied measures of *higher* classes with their reduced
    weight (Eq. 2). The strategy with the greatest score (Eq. 1) wins. What differs from the printed algorithm, and why:

    - Satisfied measures of the same class do not count. If they did, Segment would never win where memory alone is
      violated, against Table 2 and Fig. 10.
    - A candidate must rank above the present strategy in a violated measure. Otherwise Table 5 leads from Segment, the
      best for memory, to Simplified Segment because memory is violated.
    - Reductions are in [0, 1] (:meth:`freshet.model.QosMeasure.reduction`).
    - A cycle is recognised over as many decisions as there are strategies, and only while expectations stay the same.
    - After a switch, a query stays for a least time.
    - At equal scores it stays; then the better rank in what is violated most, by proportion, decides; then the order of
      the table.

    Args:
        table: Ranks of strategies.
        strategies: Those that may be chosen; None: all of the table.
        settings: How far ahead it looks, and how long a query stays; a query may have its own time between looks.

    >>> from freshet.quality.optimizer.interval_meter import IntervalFigures
    >>> wishes = Expectations.parse({"latency": {"class": "must", "points": "2 s"}, "memory": "1 MB"})
    >>> figures = IntervalFigures(3.0, {"latency": 1.0, "memory": 2e6})
    >>> look = DecisionMaker().look(wishes, figures, StrategyState("pcs"), time=60.0, age=60.0)
    >>> look.to, look.rule, list(look.scores.values())
    ('simplified-segment', 'best', [0.625, 0.875, 0.6875, 0.9375])
    """

    def __init__(
        self,
        table: DecisionTable = SHIPPED,
        strategies: Collection[str] | None = None,
        settings: LookSettings | None = None,
    ) -> None:
        self.table, self.settings = table, settings or LookSettings()
        self.strategies = tuple(name for name in table.strategies if strategies is None or name in strategies)
        for name in strategies or ():
            if name not in table.strategies:
                raise UserError(f"the decision table has no column {name!r} (it has: {', '.join(table.strategies)})")

    def first(self, expectations: Expectations) -> str:
        """The strategy of a query that has none yet: the best one for the other measures than memory. Nothing waits
        when a query begins, so memory is as expected, and nothing has been answered. If there are none, memory counts.

        >>> [DecisionMaker().first(Expectations.parse(given)) for given in ({"memory": 5}, {"memory": 5, "latency": 1})]
        ['segment', 'pcs']
        """
        self.table.check_measures([each.measure for each in expectations])
        case = _case([_judged(each, _BEGINNING[each.measure]) for each in expectations], expectations)
        weights = case.weights or {each.measure: each.priority.weight for each in expectations}
        scores = self.table.scores(weights, self.strategies)
        return max(scores, key=scores.__getitem__)

    def look(
        self,
        expectations: Expectations,
        figures: IntervalFigures,
        state: StrategyState,
        *,
        time: float,
        age: float,
        round_s: float = 0.0,
    ) -> Look:
        """What to do about a query; nothing changes until the state is told by :meth:`StrategyState.after`.

        Args:
            expectations: What is expected of it.
            figures: What was measured since the last look.
            state: What is remembered of it.
            time: The time, for the record.
            age: Seconds since the query's first start.
            round_s: Seconds that running all of its operators once takes.
        """
        self.table.check_measures([each.measure for each in expectations])
        settings = self.settings.of_query(expectations)
        note = settings.refused(round_s)
        ahead = age if note is not None else age + settings.ahead
        middle = age - figures.seconds / 2.0
        seen = tuple(_judged(each, figures.observed.get(each.measure), age, ahead, middle) for each in expectations)
        case = _case(seen, expectations)
        to, rule, case = self._decided(case, state, age, settings.stay)
        return Look(
            time, age, state.strategy, to, rule, case.measures, self.table.scores(case.weights, self.strategies),
            exhausted=case.must and rule in ("none-better", "cycle") and to == state.strategy,
            arrivals=dict(figures.arrivals), note=note or "", seconds=figures.seconds,
        )  # fmt: skip

    def _decided(self, case: _Case, state: StrategyState, age: float, stay: float) -> tuple[str, LookRule, _Case]:
        if not case.violated:
            return state.strategy, "satisfied", case
        to, rule = self._best(case, state.strategy, self.strategies)
        refused: list[StrategySwitch] = []
        allowed = list(self.strategies)
        while to != state.strategy and (cycle := _cycle(state, to, case)):
            # The strategy would be left again for what it was left for before: that counts, too, and others must do.
            refused += cycle
            allowed.remove(to)
            case = case.with_violated(frozenset[str]().union(*(each.violated for each in refused)))
            to, rule = self._best(case, state.strategy, allowed)[0], "cycle"
        if to != state.strategy and state.since is not None and 0.0 <= age - state.since < stay:
            return state.strategy, "least-stay", case
        return to, rule, case

    def _best(self, case: _Case, present: str, allowed: Sequence[str]) -> tuple[str, LookRule]:
        """The best strategy that may be taken, or the present one."""
        scores, violated = self.table.scores(case.weights), case.violated
        least = scores[present] + _EQUAL if present in scores else 0.0
        better = [
            name
            for name in allowed
            if scores[name] > least and (present not in scores or self.table.better(name, present, violated))
        ]
        if not better:
            return present, "none-better"
        if case.any_better:
            return better[0], "any-better"
        best = max(scores[name] for name in better)
        tied = [name for name in better if scores[name] >= best - _EQUAL]
        ranks = self.table.ranks[_most_violated(case)]
        return max(tied, key=lambda name: ranks[name]), "best"


def _judged(
    wish: Expectation, observed: float | None, age: float = 0.0, ahead: float = 0.0, middle: float = 0.0
) -> MeasureLook:
    """One measure before it is weighed: violations are found ahead."""
    expected = wish.at(ahead)
    return MeasureLook(
        wish.measure,
        wish.priority.name,
        wish.priority.weight,
        observed,
        wish.at(age),
        expected,
        violated=not MEASURES[wish.measure].meets(observed, expected),
        meanwhile=wish.at(middle),
    )


def _case(seen: Sequence[MeasureLook], expectations: Expectations) -> _Case:
    """Weighs the measures for the greatest class with a violated one."""
    worst = max((each.class_weight for each in seen if each.violated), default=0.0)
    decided = [each for each in seen if each.violated and each.class_weight == worst]
    names = frozenset(each.measure for each in decided)
    weighed = tuple(replace(each, weight=_weight(each, worst, expectations)) for each in seen)
    classes = [wish.priority for wish in expectations if wish.measure in names]
    any_better = bool(classes) and all(priority.any_better for priority in classes)
    return _Case(weighed, names, any_better, any(priority.must for priority in classes))


def _weight(each: MeasureLook, worst: float, expectations: Expectations) -> float | None:
    """The weight with which a measure counts if this class decides (MAV Eq. 2); None: it does not count."""
    if each.violated:
        return each.class_weight if each.class_weight == worst else None
    if worst == 0.0 or each.class_weight <= worst:
        return None
    saved = MEASURES[each.measure].reduction(each.observed, each.expected)
    return each.class_weight - saved * (each.class_weight - expectations.floor(each.class_weight))


def _most_violated(case: _Case) -> str:
    """The measure that misses its expectation by the greatest factor."""
    missed = {
        each.measure: MEASURES[each.measure].excess(each.observed, each.ahead)
        for each in case.measures
        if each.measure in case.violated
    }
    return max(missed, key=missed.__getitem__)


def _cycle(state: StrategyState, to: str, case: _Case) -> list[StrategySwitch]:
    """The remembered decisions that a switch would go around again: those since the strategy was left. None, if it
    would not close a cycle.

    It closes one if something that the strategy was left for is satisfied now, so that the two will take turns (MAV
    §4.10, for the previous strategy). Other measures may be violated all the time, as latency is under overload: a
    query that left PCS for both must not go back for latency alone, once memory is as expected. It also closes one if
    the very same switch is remembered.
    """
    for number in range(len(state.switches) - 1, -1, -1):
        switch = state.switches[number]
        if not switch.as_expected(case.measures):
            break  # what was decided for other expectations says nothing
        exchanged = switch.left == to and not switch.violated <= case.violated
        repeated = (switch.left, switch.taken) == (state.strategy, to)
        if exchanged or repeated:
            return list(state.switches[number:])
    return []
