"""What a strategy would bring about: a small simulation of one query, with expected numbers of tuples."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from freshet.model import Step, View
from freshet.policies import Policy
from freshet.quality.optimizer.interval_meter import IntervalFigures, IntervalMeter, IntervalTotals
from freshet.quality.optimizer.predicted_view import ExpectedTuples, PredictedView
from freshet.quality.waiting import Waiting

_TICKS: Final = 24
"""Number of portions in which tuples come. Their waits for each other are small beside what a strategy causes."""
_MOST_STEPS: Final = 1000
"""Maximum number of steps: a prediction must take little time, whatever a policy does."""


@dataclass(slots=True)
class PredictedStep:
    """A step on its way: what it took, and what comes of it when it ends."""

    nodes: tuple[int, ...]
    held: float
    """Bytes of the tuples that it took; they count until it ends."""
    oldest: float
    given: list[tuple[int, ExpectedTuples]]
    """(reader, tuples) for queues."""
    answers: list[ExpectedTuples]


class Predictor:
    """Simulates a query under a strategy for some seconds, from its queues as they are now and from measured costs.

    It knows neither draws nor rows: an operator gives out its selectivity times what it takes. Other queries take their
    share of the workers, as they did lately. Windows are not closed, and shared work runs for this query alone. It is
    much simpler than the simulator (:mod:`freshet.simulation`), which tests hold it against.

    Args:
        view: The present view.
        query: Number of the query.
        arrivals: By operator that reads streams, tuples that come per second.
        share: Share of the workers' time that is left to the query, in (0, 1].

    >>> from freshet.policies import create
    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); first, second = view.add("q", [(0.01, 0.5), (0.02, 1.0)])
    >>> figures = Predictor(view, 0, {first: 20.0}).predict(create("pcs"), seconds=10.0)
    >>> round(figures.observed["throughput"], 1), figures.observed["latency"] < 1.0
    (9.6, True)
    """

    def __init__(self, view: View, query: int, arrivals: Mapping[int, float], share: float = 1.0) -> None:
        self._present, self._query = view, query
        self._arrivals, self._share = arrivals, max(share, 1e-3)

    def predict(self, strategy: Policy, seconds: float) -> IntervalFigures:
        """The figures of the seconds to come."""
        self._view, self._policy = PredictedView(self._present, self._query), strategy
        self._running: dict[int, PredictedStep] = {}
        self._ends: list[tuple[float, int, PredictedStep]] = []
        self._steps = 0
        self._totals = IntervalTotals()
        view, start = self._view, self._view.now
        meter, end = IntervalMeter(start), start + seconds
        strategy.changed(view, self._query)
        strategy.arrived(view, view.refresh(list(view.own), self._running))
        ticks = [start + seconds * number / _TICKS for number in range(1, _TICKS + 1)]
        self._measure(meter)
        self._start()
        while view.now < end:
            view.now = min(ticks[0], self._ends[0][0]) if self._ends else ticks[0]
            while self._ends and self._ends[0][0] <= view.now:
                self._finish(heapq.heappop(self._ends)[2])
            if view.now >= ticks[0]:
                self._come(ticks.pop(0), seconds / _TICKS)
            self._start()
            self._measure(meter)
        came = {"": round(sum(self._arrivals.values()) * seconds)}
        totals = self._totals
        return meter.close(view.now, IntervalTotals(totals.answers, totals.seconds, totals.tuples_out, came))

    def _come(self, now: float, seconds: float) -> None:
        """The tuples of a tick are there."""
        for number, rate in self._arrivals.items():
            if rate > 0.0:
                self._view.own[number].queue.append(ExpectedTuples(rate * seconds, now - seconds / 2.0))
        self._policy.arrived(self._view, self._view.refresh(list(self._arrivals), self._running))

    def _start(self) -> None:
        view = self._view
        while view.idle_workers and view.ready and self._steps < _MOST_STEPS:
            decision = self._policy.decide(view)
            if not decision.steps:
                return
            for step in decision.steps:
                self._steps += 1
                self._begin(step)

    def _begin(self, step: Step) -> None:
        view = self._view
        nodes = tuple(number for number in step.nodes if number in view.own and number not in self._running)
        inside: dict[int, list[ExpectedTuples]] = {}
        begun = PredictedStep(nodes, 0.0, math.inf, [], [])
        took = 0.0
        for number in (each for each in view.queries[self._query].operators if each in nodes):
            each = view.own[number]
            own = each.take(math.inf if step.rows is None else float(step.rows))
            begun.held += sum(batch.rows for batch in own) * each.size
            begun.oldest = min([begun.oldest, *(batch.arrival for batch in own)])
            batches = own + inside.pop(number, [])
            took += each.cost * sum(batch.rows for batch in batches)
            out = [
                ExpectedTuples(batch.rows * each.selectivity, batch.arrival) for batch in batches if batch.rows > 0.0
            ]
            if self._query in each.outputs:
                begun.answers += out
            for reader in (reader for reader in each.readers if reader in view.own):
                if reader in nodes:
                    inside.setdefault(reader, []).extend(ExpectedTuples(batch.rows, batch.arrival) for batch in out)
                else:
                    begun.given += [(reader, ExpectedTuples(batch.rows, batch.arrival)) for batch in out]
        self._running |= dict.fromkeys(nodes, begun)
        view.refresh(nodes, self._running)
        view.idle_workers -= 1
        ends = view.now + (view.overhead(nodes) + took) / self._share
        heapq.heappush(self._ends, (ends, self._steps, begun))

    def _finish(self, step: PredictedStep) -> None:
        view = self._view
        for number in step.nodes:
            self._running.pop(number, None)
        view.idle_workers += 1
        for reader, batch in step.given:
            view.own[reader].queue.append(batch)
        rows = sum(batch.rows for batch in step.answers)
        waited = sum(batch.rows * (view.now - batch.arrival) for batch in step.answers)
        before = self._totals
        # Expected numbers: whoever reads them divides, and never counts.
        self._totals = IntervalTotals(before.answers + rows, before.seconds + waited, before.tuples_out + rows)  # type: ignore[arg-type]
        self._policy.completed(view, step.nodes)
        view.refresh(step.nodes, self._running)
        given = [number for number, _ in step.given]
        self._policy.arrived(view, view.refresh(list(dict.fromkeys([*given, *step.nodes])), self._running))

    def _measure(self, meter: IntervalMeter) -> None:
        own, steps = self._view.own.values(), {id(each): each for each in self._running.values()}.values()
        rows = sum(each.rows for each in own)
        held = sum(each.held for each in steps)
        heads = [each.head_arrival for each in own if each.pending] + [each.oldest for each in steps]
        since = min((head for head in heads if math.isfinite(head)), default=None)
        size = sum(each.bytes_waiting for each in own) + held
        meter.wait(self._view.now, Waiting(math.ceil(rows), round(size), since))
