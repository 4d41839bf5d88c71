"""Tuples and queues of the fast loop: a tuple is a number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from freshet.model import Promises
from freshet.simulation.draws import first_passes
from freshet.simulation.outcome import Floats

FastToken = int
"""The number of a tuple of any stream."""


@dataclass(slots=True, eq=False)
class FastEdge:
    """An input of an operator, with its queue: the tokens from ``next`` to ``end``."""

    operator: FastOperator
    size: int
    tokens: range | list[FastToken]
    """All tuples of a source, or what the operator before has given out since the queue was last empty."""
    expire: list[float]
    """When tuples expire."""
    gone: int = 0
    """Number of tuples that were in the queue when it was last empty."""
    next: int = 0
    end: int = 0
    head: float = math.inf
    tail: float = math.inf
    holes: list[FastToken] = field(default_factory=list)
    """Tuples that were left behind."""

    def leave(self, before: float, times: Sequence[float]) -> int:
        """Leaves the first tuples behind that expire before a time; returns how many."""
        first, tokens, expire = self.next, self.tokens, self.expire
        while self.next < self.end and expire[tokens[self.next]] < before:
            self.next += 1
        self.holes += tokens[first : self.next]
        self.head = times[tokens[self.next]] if self.next < self.end else math.inf
        return self.next - first

    def take_holes(self, limit: int | None) -> Sequence[FastToken]:
        """Takes a train from what was left behind."""
        taken = self.holes[:limit]
        del self.holes[:limit]
        return taken

    def take(self, limit: int | None, times: Sequence[float]) -> Sequence[FastToken]:
        """Takes a train."""
        first, end = self.next, self.end
        if limit is not None and end - first > limit:
            end = first + limit
            self.head = times[self.tokens[end]]
        else:
            self.head = math.inf
        self.next = end
        return self.tokens[first:end]

    def append(self, tokens: Sequence[FastToken], times: Sequence[float]) -> None:
        """Adds tuples that come out of the operator before."""
        assert isinstance(self.tokens, list), "a source brings its own tuples"
        if self.next == self.end:
            self.head = times[tokens[0]]
            self.gone += self.end
            self.tokens, self.next = list(tokens), 0
        else:
            self.tokens.extend(tokens)
        self.tail = times[tokens[-1]]
        self.end = len(self.tokens)


@dataclass(slots=True, eq=False)
class FastOperator:
    """An operator as policies see it."""

    number: int
    cost: float
    selectivity: float
    kind: str
    ports: int
    inputs: tuple[int, ...]
    readers: tuple[int, ...]
    outputs: tuple[int, ...]
    queries: tuple[int, ...]
    promises: Promises
    edges: list[FastEdge] = field(default_factory=list)
    size_in: float = 1.0
    size_out: float = 1.0
    pending: int = 0
    head_arrival: float = math.inf
    busy: bool = False

    def refresh(self) -> None:
        """Sums up what waits at its edges."""
        if len(self.edges) == 1:
            edge = self.edges[0]
            self.pending, self.head_arrival = edge.end - edge.next, edge.head
        else:
            self.pending = sum([edge.end - edge.next for edge in self.edges])
            self.head_arrival = min([edge.head for edge in self.edges])

    @property
    def left_behind(self) -> int:
        """Number of tuples that were passed over."""
        return sum([len(edge.holes) for edge in self.edges])

    @property
    def came(self) -> int:
        """Number of tuples that have come to its queues so far."""
        return sum([edge.gone + edge.end for edge in self.edges])

    def expiry(self, rank: int = 0) -> float:
        """When the waiting tuple of a rank expires; with several queues, the least over them."""
        if len(self.edges) == 1:
            edge = self.edges[0]
            place = edge.next + rank
            return edge.expire[edge.tokens[place]] if place < edge.end else math.inf
        there = [(edge, edge.next + rank) for edge in self.edges if edge.next + rank < edge.end]
        return min([edge.expire[edge.tokens[place]] for edge, place in there], default=math.inf)

    @property
    def mean_arrival(self) -> float:
        """Mean arrival of the waiting tuples, as if those of an edge had come evenly from the first to the last."""
        if not self.pending:
            return self.head_arrival
        if len(self.edges) == 1:
            return (self.edges[0].head + self.edges[0].tail) / 2
        total = 0.0
        for edge in self.edges:
            waiting = edge.end - edge.next
            if waiting:
                total += (edge.head + edge.tail) / 2 * waiting
        return total / self.pending

    @property
    def bytes_waiting(self) -> int:
        """Bytes of the waiting tuples."""
        return sum(edge.size * (edge.end - edge.next) for edge in self.edges)


class FastTuples:
    """All tuples of a run: arrival times by stream, and what becomes of each by the draws of a seed."""

    def __init__(self, streams: Mapping[str, Floats], seed: int, expiries: Mapping[str, Floats]) -> None:
        self.tokens: dict[str, range] = {}
        count = 0
        for name, times in streams.items():
            self.tokens[name] = range(count, count + len(times))
            count += len(times)
        self.arrivals: Floats = np.concatenate([np.empty(0), *streams.values()])
        self.times: list[float] = self.arrivals.tolist()
        self.expiries: Floats = np.concatenate([np.empty(0), *(expiries[name] for name in streams)])
        self.expire: list[float] = self.expiries.tolist()
        self._origins = np.concatenate([np.empty(0, np.int64), *(np.arange(len(each)) for each in streams.values())])
        self._longest = max(map(len, streams.values()), default=0)
        self._seed = seed
        self._passed: dict[str, bytes] = {}

    def passed_by(self, name: str, selectivity: float) -> bytes | None:
        """For each tuple, whether an operator lets it through; None if it lets all through."""
        if selectivity == 1.0:
            return None
        if name not in self._passed:
            passes = first_passes(self._seed, name, selectivity, self._longest)
            self._passed[name] = passes[self._origins].tobytes()
        return self._passed[name]


def events_of(streams: Sequence[Floats]) -> tuple[list[float], list[int], list[int]]:
    """(time, stream, number of its tuples that have come by then), in the order of time; a burst is one event."""
    times, numbers, ends = [np.empty(0)], [np.empty(0, int)], [np.empty(0, int)]
    for number, arrivals in enumerate(streams):
        last = np.flatnonzero(np.append(arrivals[1:] != arrivals[:-1], len(arrivals) > 0))
        times.append(arrivals[last])
        numbers.append(np.full(len(last), number))
        ends.append(last + 1)
    every, streams_of, ends_of = np.concatenate(times), np.concatenate(numbers), np.concatenate(ends)
    order = np.lexsort((streams_of, every))
    return every[order].tolist(), streams_of[order].tolist(), ends_of[order].tolist()
