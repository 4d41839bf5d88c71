"""Trees of boxes in simulated time, as Aurora runs them: one worker, a price for each box call and for scheduling."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from freshet.model import Curve, Decision, Promises, Step, UserError, View, lead_to
from freshet.quality import Qos, QosMeter, overall
from freshet.simulation.executor import Profile

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BoxTree:
    """A query as a tree of boxes.

    Args:
        name: Of the query.
        profiles: Cost and selectivity of each box.
        after: The box (by its place here) that each box's output goes to; None: the query's output.
        curve: What answers are worth by their latency.
    """

    name: str
    profiles: tuple[Profile, ...]
    after: tuple[int | None, ...]
    curve: Curve | None = None

    @classmethod
    def straight(cls, name: str, profiles: Sequence[Profile], curve: Curve | None = None) -> BoxTree:
        """A query of one path."""
        after = (*range(1, len(profiles)), None)
        return cls(name, tuple(profiles), after, curve)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The boxes that no box leads to."""
        return tuple(place for place in range(len(self.profiles)) if place not in self.after)

    def downstream(self, place: int) -> tuple[int, ...]:
        """A box and all that comes after it."""
        found = [place]
        while (after := self.after[found[-1]]) is not None:
            found.append(after)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Prices:
    """What is not processing: seconds for each box call, and for each operation that a scheduler counts."""

    call: float = 0.0
    operation: float = 0.0


class Counting(Protocol):
    """A policy that counts its operations."""

    operations: int

    def decide(self, view: View) -> Decision:
        """What to run next."""

    def arrived(self, view: View, operators: Sequence[int]) -> None:
        """Tuples came."""

    def completed(self, view: View, operators: Sequence[int]) -> None:
        """Operators ran."""

    def changed(self, view: View, query: int) -> None:
        """A query was added."""


@dataclass(slots=True)
class _Box:
    """A box with its queue, as policies see it."""

    cost: float
    selectivity: float
    queries: tuple[int, ...]
    promises: Promises
    readers: tuple[int, ...]
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    kind: str = "filter"
    queue: list[float] = field(default_factory=list)
    total: float = 0.0
    pending: int = 0
    bytes_waiting: int = 0

    @property
    def ports(self) -> int:
        """How many inputs it has: those with boxes before it read nothing else."""
        return max(1, len(self.inputs))

    @property
    def head_arrival(self) -> float:
        """Arrival of the first waiting tuple."""
        return self.queue[0] if self.queue else math.inf

    @property
    def mean_arrival(self) -> float:
        """Mean arrival of the waiting tuples."""
        return self.total / self.pending if self.pending else math.inf


@dataclass(slots=True)
class _Query:
    name: str
    promises: Promises
    root: int
    operators: tuple[int, ...] = ()
    arrivals: list[float] = field(default_factory=list)
    departures: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _View:
    operators: list[_Box] = field(default_factory=list)
    queries: list[_Query] = field(default_factory=list)
    ready: dict[int, None] = field(default_factory=dict)
    now: float = 0.0
    seconds_per_call: float = 0.0
    workers: int = 1
    idle_workers: int = 1

    def overhead(self, nodes: Collection[int] = ()) -> float:
        """Seconds that a box call costs."""
        return self.seconds_per_call


@dataclass(frozen=True, slots=True)
class BoxOutcome:
    """What a run came to.

    Args:
        qos: By the latency curves.
        latency: Mean over output tuples, seconds.
        seconds: Until the last tuple was processed.
        processing: Seconds in boxes.
        calling: Seconds for box calls.
        scheduling: Seconds for scheduling.
        calls: Box calls.
        decisions: Plans made.
    """

    qos: Qos
    latency: float
    seconds: float
    processing: float
    calling: float
    scheduling: float
    calls: int
    decisions: int

    @property
    def overhead(self) -> float:
        """Seconds that were not processing."""
        return self.calling + self.scheduling


class BoxWorld:
    """Runs a policy over trees of boxes.

    A box call takes the train that waits (all of it, or as many rows as the step says) and passes what it lets through
    to the next queue when the whole train is processed; output tuples leave one by one. Scheduling takes time before
    its plan runs: the operations that the policy counted times their price. So results repeat exactly.

    Args:
        trees: The queries.
        arrivals: Arrival times by (number of the tree, place of its input box).
        policy: The scheduler.
        prices: Of box calls and scheduling.
        seed: Of the draws of boxes that do not let everything through.

    >>> from freshet.policies.aurora.two_level import BoxAtATime
    >>> tree = BoxTree.straight("q", [Profile(1.0), Profile(2.0)])
    >>> world = BoxWorld([tree], {(0, 0): np.array([0.0, 0.0])}, BoxAtATime(), prices=Prices(call=0.5))
    >>> world.run()
    >>> world.times("q")[1].tolist()
    [5.0, 7.0]
    """

    def __init__(
        self,
        trees: Sequence[BoxTree],
        arrivals: Mapping[tuple[int, int], Floats],
        policy: Counting,
        *,
        prices: Prices | None = None,
        seed: int = 0,
    ) -> None:
        self.policy, self.prices = policy, prices or Prices()
        self.calls = self.decisions = 0
        self.processing = self.scheduling = 0.0
        self._view = _View(seconds_per_call=self.prices.call)
        firsts = [self._add(tree) for tree in trees]
        self._random = np.random.default_rng(seed)
        self._times, self._targets = _merged({firsts[tree] + box: times for (tree, box), times in arrivals.items()})
        self._taken = 0
        self._next = self._times[0] if self._times else math.inf
        self._came: list[int] = []

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return self._view.now

    def _add(self, tree: BoxTree) -> int:
        view = self._view
        first, number = len(view.operators), len(view.queries)
        promises = Promises(curve=tree.curve)
        before: list[list[int]] = [[] for _ in tree.profiles]
        for place, after in enumerate(tree.after):
            if after is not None:
                before[after].append(first + place)
        for profile, after, inputs in zip(tree.profiles, tree.after, before, strict=True):
            readers, outputs = ((), (number,)) if after is None else ((first + after,), ())
            view.operators.append(
                _Box(profile.cost, profile.selectivity, (number,), promises, readers, outputs, tuple(inputs))
            )
        root = first + tree.after.index(None)
        view.queries.append(_Query(tree.name, promises, root, lead_to(view, root)))
        self.policy.changed(view, number)
        return first

    def run(self) -> None:
        """Runs until all tuples are processed."""
        view, policy = self._view, self.policy
        paid = policy.operations
        while True:
            self._admit()
            if not view.ready:
                if self._next == math.inf:
                    return
                view.now = self._next
                continue
            came, self._came = self._came, []
            policy.arrived(view, came)
            steps = policy.decide(view).steps
            if not steps:
                raise UserError("the policy declines to run what waits")
            self.decisions += 1
            due = (policy.operations - paid) * self.prices.operation
            paid = policy.operations
            self.scheduling += due
            view.now += due
            ran: list[int] = []
            for step in steps:
                self._run(step)
                ran += step.nodes
            policy.completed(view, ran)

    def _admit(self) -> None:
        """Lets the tuples in that have come by now."""
        view, times, targets = self._view, self._times, self._targets
        now, place = view.now, self._taken
        while self._next <= now:
            number = targets[place]
            box = view.operators[number]
            box.queue.append(self._next)
            box.total += self._next
            if not box.pending:
                view.ready[number] = None
            box.pending += 1
            self._came.append(number)
            place += 1
            self._next = times[place] if place < len(times) else math.inf
        self._taken = place

    def _run(self, step: Step) -> None:
        """Calls the boxes of a step in their order."""
        view, nodes = self._view, step.nodes
        for place, number in enumerate(nodes, 1):
            if self._next <= view.now:
                self._admit()
            box = view.operators[number]
            if not box.pending:
                continue
            train = self._take(number, box, step.rows)
            begin = view.now + self.prices.call
            view.now = begin + len(train) * box.cost
            self.calls += 1
            self.processing += len(train) * box.cost
            if box.readers:
                # What the next call takes at once never waits: nobody need be told.
                self._pass_on(box, train, tell=place == len(nodes) or nodes[place] not in box.readers)
            else:
                self._leave(box, train, begin)

    def _take(self, number: int, box: _Box, limit: int | None) -> list[float]:
        if limit is None or limit >= box.pending:
            train, box.queue, box.pending, box.total = box.queue, [], 0, 0.0
            del self._view.ready[number]
            return train
        train, box.queue = box.queue[:limit], box.queue[limit:]
        box.pending -= limit
        box.total -= sum(train)
        return train

    def _leave(self, box: _Box, train: list[float], begin: float) -> None:
        query = self._view.queries[box.queries[0]]
        departures = [begin + place * box.cost for place in range(1, len(train) + 1)]
        if box.selectivity < 1.0:
            kept = np.flatnonzero(self._random.random(len(train)) < box.selectivity).tolist()
            train, departures = [train[place] for place in kept], [departures[place] for place in kept]
        query.arrivals += train
        query.departures += departures

    def _pass_on(self, box: _Box, train: list[float], *, tell: bool) -> None:
        if box.selectivity < 1.0:
            kept = np.flatnonzero(self._random.random(len(train)) < box.selectivity).tolist()
            train = [train[place] for place in kept]
        if not train:
            return
        (number,) = box.readers
        after = self._view.operators[number]
        after.queue += train
        after.total += sum(train)
        if not after.pending:
            self._view.ready[number] = None
        after.pending += len(train)
        if tell:
            self._came.append(number)

    def times(self, query: str) -> tuple[Floats, Floats]:
        """Arrivals and departures of a query's output tuples, in the order in which they left."""
        found = next(each for each in self._view.queries if each.name == query)
        return np.array(found.arrivals), np.array(found.departures)

    def outcome(self) -> BoxOutcome:
        """All in all."""
        meters = {}
        waited, count = 0.0, 0
        for query in self._view.queries:
            latencies = np.array(query.departures) - np.array(query.arrivals)
            waited, count = waited + float(latencies.sum()), count + len(latencies)
            if query.promises.curve is not None:
                meters[query.name] = QosMeter(query.promises.curve)
                meters[query.name].add_many(latencies)
        return BoxOutcome(
            qos=overall(meters),
            latency=waited / count if count else 0.0,
            seconds=self.now,
            processing=self.processing,
            calling=self.calls * self.prices.call,
            scheduling=self.scheduling,
            calls=self.calls,
            decisions=self.decisions,
        )


def _merged(arrivals: Mapping[int, Floats]) -> tuple[list[float], list[int]]:
    """All arrivals in the order of time; at equal times in the order of the boxes."""
    if not arrivals:
        return [], []
    times = np.concatenate(list(arrivals.values()))
    boxes = np.repeat(list(arrivals), [len(each) for each in arrivals.values()])
    order = np.lexsort((boxes, times))
    return times[order].tolist(), boxes[order].tolist()
