"""The observer that keeps the history of a run, in simulated time and on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from freshet.engine.board import DROPPED
from freshet.engine.engine import Engine
from freshet.engine.events import Added, Began, Decided, Dropped, Event, Held, Promised, Quarantined, Thinned
from freshet.engine.metering import waiting_for
from freshet.quality import QueryMeter
from freshet.quality.history import History, HistoryRecord, MachineSample, QuerySample, RunSample, record_of
from freshet.quality.recent import ResponseCounts

_SHARE: Final = 100.0
"""A sample is followed by a pause of this many times what it took: sampling costs at most a hundredth of the time."""


class HistoryKeeper:
    """Takes a sample of the meters whenever one is due and something happens.

    Args:
        history: Takes the samples.
        stopwatch: Measures what a sample takes; simulations pass their clock.
    """

    def __init__(self, history: History, engine: Engine, stopwatch: Callable[[], float] = time.perf_counter) -> None:
        self.history, self._engine, self._stopwatch = history, engine, stopwatch
        self._seen: dict[str, ResponseCounts] = {}
        self._weights: dict[str, float] = {}
        self._decision: str | None = None
        self._asked = False

    def tell(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Began):
            # What was told before is about installing.
            self.history.clear()
        elif isinstance(event, Promised):
            self.history.mark(event.now, self._promised(event))
        elif (text := _in_words(event)) is not None:
            self.history.mark(event.now, text)
        elif isinstance(event, Decided) and event.decision.actions and not self._asked:
            self._decision, self._asked = str(event.why()), True
        if self.history.is_due(event.now):
            self.take(event.now)

    def take(self, now: float) -> None:
        """Takes a sample. On the loop's thread."""
        began, engine, queries = self._stopwatch(), self._engine, {}
        for state in engine.board.queries:
            meter = engine.meters.queries.get(state.name)
            if state.reason != DROPPED and meter is not None:
                self._weights[state.name] = meter.promises.weight
                engine.meters.wait(state.name, waiting_for(state, engine.board, engine.log))
                queries[state.name] = self._sample(state.name, meter, now)
        sample = RunSample(
            now, queries, MachineSample(*engine.meters.work(now, engine.running_since())), self._decision
        )
        self._decision, self._asked = None, False
        self.history.take(sample, _SHARE * (self._stopwatch() - began))

    def _promised(self, event: Promised) -> str:
        """What a person should see of new promises: the weight, if that is what changed."""
        weight = event.promises.weight
        before = self._weights.get(event.query)
        self._weights[event.query] = weight
        return f"{event.query} has new promises" if weight == before else f"{event.query} has weight {weight:g} now"

    def _sample(self, name: str, meter: QueryMeter, now: float) -> QuerySample:
        counts, qos = meter.response.seen(), meter.qos
        before = self._seen.get(name)
        # A query that was dropped and added again has a new meter.
        recent = counts if before is None or before.count > counts.count else counts.since(before)
        self._seen[name] = counts
        periodic = meter.promises.period is not None
        return QuerySample(
            waiting=meter.waiting.rows,
            fresh=None if periodic else meter.freshness(now) * max(0.0, now - meter.start),
            answers=counts.count,
            response=counts.sum,
            p95=recent.p95,
            rated=0 if qos is None else qos.count,
            utility=0.0 if qos is None else qos.total,
            tuples_in=meter.tuples_in,
            weight=meter.promises.weight,
        )

    def record(self, app: str, policy: str, workers: int, *, real: bool) -> Callable[[], HistoryRecord]:
        """A function that makes the record of what has been kept so far. It may be called on another thread: making it
        takes longer than keeping it."""
        samples, marks = list(self.history.samples), list(self.history.marks)
        promises = {name: meter.promises for name, meter in self._engine.meters.queries.items()}
        return lambda: record_of(samples, marks, promises, app=app, policy=policy, workers=workers, real=real)


def _in_words(event: Event) -> str | None:
    """What a person should see beside the figures; None for everything that the figures show.

    >>> _in_words(Quarantined(0.0, "q", "it raised")), _in_words(Dropped(0.0, "q"))
    ('q is quarantined: it raised', 'q was dropped')
    """
    match event:
        case Added():
            return f"{event.query} was added"
        case Dropped():
            return f"{event.query} was dropped"
        case Quarantined():
            return f"{event.query} is quarantined: {event.reason.splitlines()[0]}"
        case Thinned():
            return f"{event.action.query} keeps {100.0 * event.action.ratio:.3g} % of its input"
        case Held():
            names = ", ".join(event.queries[:3])
            return f"{names} held back: {event.reason}" if event.reason else f"{names} no longer held back"
        case _:
            return None
