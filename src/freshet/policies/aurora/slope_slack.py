"""Slope, then slack: first what loses utility fastest, then what will soon begin to lose it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from freshet.model import View
from freshet.policies.aurora.curve_table import CurveTable
from freshet.policies.aurora.schedule import SchedulePolicy, SizeOrAuto
from freshet.policies.aurora.trains import Trains

_MANY: Final = 48
"""From this number of ready operators on, arrays are faster than a loop."""


class SlopeSlack(SchedulePolicy):
    """Runs the operators whose tuples lose utility fastest; among equals, those closest to losing some (CAR §4.2.2).

    The p-tuple of an operator is (slope, -slack) of its latency curve at the expected output latency of its waiting
    tuples. Past the last critical point there is nothing to lose: such tuples wait until nothing better is ready. So
    under overload it serves what can still be answered in time, while fixed priorities serve what is already late.

    Args:
        size: N, the number of operators in a schedule.
        idle_only: Whether tuples past the last critical point stay out of a schedule as long as anything else is ready.
            Otherwise they fill it up, as in CAR §4.5.

    >>> from freshet.model import Curve, Promises
    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(now=3.0)
    >>> for name, deadline, arrival in (("late", 1.0, 0.0), ("loose", 9.0, 0.0), ("tight", 4.0, 0.0)):
    ...     (operator,) = view.add(name, [(0.5, 1.0)], Promises(curve=Curve.deadline(deadline)))
    ...     view.operators[operator].pending, view.operators[operator].head_arrival = 1, arrival
    ...     view.ready[operator] = None
    >>> [view.queries[number].name for number in SlopeSlack().ranked(view)]
    ['tight', 'loose', 'late']
    """

    name: ClassVar[str] = "slope-slack"
    rule = "steepest slope, then least slack"

    def __init__(self, size: SizeOrAuto = 10, *, idle_only: bool = False, trains: Trains | None = None) -> None:
        super().__init__(size, trains=trains)
        self.idle_only = idle_only
        self._table: CurveTable | None = None
        self._curves: list[int] = []
        """The number that each operator's curve has in the table."""

    def changed(self, view: View, query: int) -> None:
        """A query changed."""
        super().changed(view, query)
        self._table = None

    def p_tuple(self, view: View, operator: int) -> tuple[float, float]:
        """(slope, slack) at the expected output latency."""
        curve, latency = self.curve(view, operator), self.expected_latency(view, operator)
        return curve.slope(latency), curve.slack(latency)

    def ranked(self, view: View) -> Sequence[int]:
        """The ready operators by slope, steepest first, then by slack, least first, then as they became ready."""
        count = len(view.ready)
        self.operations += 1 + count + int(count * math.log2(count)) + self._looks(view)
        keys = self._by_array(view) if count >= _MANY else self._by_loop(view)
        if self.idle_only and keys and keys[0][1] < math.inf:
            keys = [key for key in keys if key[1] < math.inf]
        return [number for _, _, number in keys]

    def _looks(self, view: View) -> int:
        """How many queues the p-tuples are computed from. Push-through leaves nothing further on, and the cost of the
        way to the output is kept, so it looks at one queue. A box at a time also asks what waits on the way."""
        if self.push:
            return len(view.ready)
        return sum(len(self.through.of(view, number)) for number in view.ready)

    def _by_loop(self, view: View) -> list[tuple[float, float, int]]:
        p_tuples = ((number, *self.p_tuple(view, number)) for number in view.ready)
        keys = [(-slope, slack, number) for number, slope, slack in p_tuples]
        keys.sort(key=lambda key: key[:2])
        return keys[: self.size]

    def _by_array(self, view: View) -> list[tuple[float, float, int]]:
        operators, ready = view.operators, list(view.ready)
        table = self._table or self._lay_out(view)
        arrivals = np.array([operators[number].mean_arrival for number in ready])
        work = np.array([self.computation(view, number) for number in ready])
        curves = np.array([self._curves[number] for number in ready])
        slopes, slacks = table.look_up(curves, view.now - arrivals + work)
        best = np.lexsort((slacks, -slopes))[: self.size].tolist()
        return [(-float(slopes[place]), float(slacks[place]), ready[place]) for place in best]

    def _lay_out(self, view: View) -> CurveTable:
        curves = [self.curve(view, number) for number in range(len(view.operators))]
        numbers = {curve: number for number, curve in enumerate(dict.fromkeys(curves))}
        self._curves = [numbers[curve] for curve in curves]
        self._table = CurveTable(list(numbers))
        return self._table


class SlopeSlackPush(SlopeSlack):
    """Slope and slack with push-through (CAR §4.5): urgent tuples go all the way to the output."""

    name: ClassVar[str] = "slope-slack-push"
    push: ClassVar[bool] = True
    auto: ClassVar[tuple[str, ...]] = ("size",)


class SlopeSlackFused(SlopeSlackPush):
    """Slope and slack with push-through, a schedule as one step."""

    name: ClassVar[str] = "slope-slack-fused"
    fuse: ClassVar[bool] = True
    auto: ClassVar[tuple[str, ...]] = ()


POLICIES: Final = (SlopeSlack, SlopeSlackPush, SlopeSlackFused)
