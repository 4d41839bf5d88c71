"""One worker and straight-line queries in simulated time: the engine's schedule, without the engine's bookkeeping."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from freshet.model import Step, UserError
from freshet.policies import Policy
from freshet.quality import OverheadStatistics
from freshet.simulation.charge import Charge
from freshet.simulation.draws import Draws
from freshet.simulation.outcome import Outcome, outcome
from freshet.simulation.view import OperatorRecord, RecordView
from freshet.simulation.world import SimulatedQuery

Floats = NDArray[np.float64]


@dataclass(slots=True)
class _Line:
    """A query's way: what each tuple of its stream will cost, and when trains of it were begun."""

    operator: OperatorRecord
    path: tuple[int, ...]
    stream: int
    arrivals: array[float]
    work: array[float]
    """Seconds of all tuples before a place: ``work[k + 1] - work[k]`` is the service of tuple k."""
    matches: NDArray[np.bool_]
    busy: bool = False
    firsts: list[int] = field(default_factory=list)
    begins: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    """Ends of the steps that the trains were part of; kept where tuples depart then."""


class SingleWorker:
    """Gives what :class:`~freshet.simulation.world.World` gives with one worker and known costs, many times faster.

    It calls the same policy objects with the same view and the same notices in the same order, and draws the same
    tuples. What it leaves out is what a schedule does not depend on: units, logs, commits, meters. The time of
    each tuple is worked out beforehand for all tuples at once, the quality afterwards. Queries are chains over one
    stream, and a step runs whole paths.

    Args:
        streams: Arrival times by stream, nondecreasing.
        queries: The queries.
        policy: The scheduler.
        overhead: Seconds per step.
        seed: Of the draws.
        charge: What the scheduler's own operations cost.
        together: Whether all tuples of a step depart at its end, as on Spark, where they depart with the commit.

    >>> from freshet.policies import FirstComeFirstServed
    >>> from freshet.simulation.executor import Profile
    >>> query = SimulatedQuery("q", "s", (Profile(0.5),))
    >>> worker = SingleWorker({"s": np.array([0.0, 1.0])}, [query], FirstComeFirstServed())
    >>> worker.run()
    >>> worker.now, worker.outcome().staleness
    (1.5, 0.666...)
    """

    def __init__(
        self,
        streams: Mapping[str, Floats],
        queries: Sequence[SimulatedQuery],
        policy: Policy,
        *,
        overhead: float = 0.0,
        seed: int = 0,
        charge: Charge | None = None,
        together: bool = False,
    ) -> None:
        self.policy = policy
        self.decisions = 0
        self._overhead, self._charge, self._together = overhead, charge, together
        self._learned = OverheadStatistics()
        self._view = RecordView()
        self._lines: dict[int, _Line] = {}
        names = sorted(streams)
        self._readers: list[list[int]] = [[] for _ in names]
        times = {name: array("d", streams[name].tobytes()) for name in names}
        sums = {name: _running_sum(streams[name]) for name in names}
        for query in queries:
            line = self._add(query, names.index(query.stream), times[query.stream], seed)
            line.operator.arrival_sums = sums[query.stream]
        self._events = _events([streams[name] for name in names])
        self._taken = 0

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return self._view.now

    def _add(self, query: SimulatedQuery, stream: int, arrivals: array[float], seed: int) -> _Line:
        view = self._view
        boxes = [(each.cost, each.selectivity) for each in query.operators]
        path = view.add(query.name, boxes, query.query().promises)
        first = path[0]
        work, matches = _work_of(query, len(arrivals), seed)
        line = self._lines[first] = _Line(view.operators[first], path, stream, arrivals, work, matches)
        self._readers[stream].append(first)
        self.policy.changed(view, len(view.queries) - 1)
        return line

    def run(self) -> None:
        """Runs until all tuples are processed."""
        view, policy, ready = self._view, self.policy, self._view.ready
        times = self._events[0]
        while True:
            if ready:
                actions = policy.decide(view).actions
                self.decisions += 1
                if not actions:
                    raise UserError(f"policy {policy.name} declines to run what waits: only the engine can wait for it")
                for action in actions:
                    self._run(action.step)
            elif self._taken < len(times):
                self._take_arrivals(times[self._taken])
            else:
                return

    def _take_arrivals(self, until: float) -> None:
        """Lets the tuples in that come no later than ``until``, with a notice for each moment."""
        times, streams, ends = self._events
        view, lines = self._view, self._lines
        place, ready = self._taken, view.ready
        while place < len(times) and times[place] <= until:
            view.now = times[place]
            readers, end = self._readers[streams[place]], ends[place]
            for number in readers:
                line = lines[number]
                operator = line.operator
                if not operator.pending and not line.busy:
                    operator.head_arrival = view.now
                    ready[number] = None
                elif not operator.pending:
                    operator.head_arrival = view.now
                operator.pending = end - operator.next
            place += 1
            if readers:
                self.policy.arrived(view, readers)
        self._taken = place

    def _run(self, step: Step) -> None:
        view, lines, limit = self._view, self._lines, step.rows
        moment = view.now
        if self._overhead or self._charge is not None:
            overhead = self._overhead + (self._charge.due() if self._charge is not None else 0.0)
            self._learned.add(overhead)
            moment += overhead
        view.idle_workers = 0
        firsts = self._firsts(step)
        for number in firsts:
            line = lines[number]
            operator = line.operator
            first = operator.next
            if not operator.pending:
                continue
            rows = operator.pending if limit is None or limit > operator.pending else limit
            line.firsts.append(first)
            line.begins.append(moment)
            operator.next = end = first + rows
            moment += line.work[end] - line.work[first]
            operator.pending -= rows
            operator.head_arrival = line.arrivals[end] if operator.pending else math.inf
            line.busy = True
            view.ready.pop(number, None)
        if self._together:
            for line in (lines[number] for number in firsts):
                if len(line.ends) < len(line.begins):
                    line.ends.append(moment)
        self._finish(step, firsts, moment)

    def _finish(self, step: Step, firsts: Sequence[int], moment: float) -> None:
        view, times = self._view, self._events[0]
        if self._taken < len(times) and times[self._taken] <= moment:
            self._take_arrivals(moment)
        view.now = moment
        view.seconds_per_step = self._learned.seconds
        view.idle_workers = 1
        for number in firsts:
            line = self._lines[number]
            line.busy = False
            if line.operator.pending:
                view.ready[number] = None
        self.policy.completed(view, step.nodes)

    def _firsts(self, step: Step) -> Sequence[int]:
        """The first operators of the paths of a step, in the order of their numbers, as the engine binds them."""
        lines, nodes = self._lines, step.nodes
        if nodes[0] in lines and nodes == lines[nodes[0]].path:
            return nodes[:1]
        firsts = sorted(number for number in nodes if number in lines)
        if sorted(nodes) != [number for first in firsts for number in lines[first].path]:
            raise UserError("only whole paths can be simulated without the engine")
        return firsts

    def tuples(self) -> dict[str, tuple[Floats, Floats]]:
        """Arrivals and departures of the tuples that each query has put out."""
        return {query.name: _tuples(self._lines[query.operators[0]]) for query in self._view.queries}

    def outcome(self, until: float | None = None) -> Outcome:
        """The quality of all outputs, over the time from 0 until now.

        Args:
            until: Look at the time up to here only, as where tuples stop coming while a backlog is left that depends on
                the policy.
        """
        queries = self.tuples()
        if until is not None:
            queries = {name: _cut(*times, until) for name, times in queries.items()}
        weights = {query.name: query.promises.weight for query in self._view.queries}
        return outcome(queries, self.now if until is None else until, weights)


def _work_of(query: SimulatedQuery, count: int, seed: int) -> tuple[array[float], NDArray[np.bool_]]:
    """Running sum of what the tuples of a stream cost a query, and which of them match."""
    names = list(query.profiles())
    alive = np.ones(count, dtype=bool)
    service = np.zeros(count)
    for name, profile in zip(names, query.operators, strict=True):
        service += np.where(alive, profile.cost, 0.0)
        if profile.selectivity < 1.0:
            alive &= Draws(seed, name, profile.selectivity).passes(np.arange(count))
    return _running_sum(service), alive


def _running_sum(values: Floats) -> array[float]:
    """The sum of all values before a place, for every place and the end."""
    return array("d", np.concatenate(([0.0], np.cumsum(values))).tobytes())


def _events(streams: Sequence[Floats]) -> tuple[list[float], list[int], list[int]]:
    """(time, stream, tuples of it that have come by then), in the order of time; bursts are one event."""
    times, numbers, ends = [], [], []
    for number, arrivals in enumerate(streams):
        last = np.flatnonzero(np.append(arrivals[1:] != arrivals[:-1], True)) if len(arrivals) else np.empty(0, int)
        times.append(arrivals[last])
        numbers.append(np.full(len(last), number))
        ends.append(last + 1)
    every = np.concatenate(times) if times else np.empty(0)
    if not len(every):
        return [], [], []
    order = np.lexsort((np.concatenate(numbers), every))
    return every[order].tolist(), np.concatenate(numbers)[order].tolist(), np.concatenate(ends)[order].tolist()


def _cut(arrivals: Floats, departures: Floats, until: float) -> tuple[Floats, Floats]:
    """The tuples that came before a moment, as if all had departed by then."""
    came = arrivals < until
    return arrivals[came], np.minimum(departures[came], until)


def _tuples(line: _Line) -> tuple[Floats, Floats]:
    """Arrivals and departures of the matching tuples that were processed."""
    end = line.operator.next
    work = np.frombuffer(line.work)
    if not end:
        return np.empty(0), np.empty(0)
    firsts = np.array(line.firsts)
    rows = np.diff(np.append(firsts, end))
    if line.ends:
        departures = np.repeat(line.ends, rows)
    else:
        departures = np.repeat(np.array(line.begins) - work[firsts], rows) + work[1 : end + 1]
    matches = line.matches[:end]
    return np.frombuffer(line.arrivals)[:end][matches], departures[matches]
