"""Tuples, queues and chains of the fast loop: a tuple is a number, and its departure is worked out at the end."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain as chained

import numpy as np
from numpy.typing import NDArray

from freshet.model import Promises
from freshet.simulation.draws import first_passes
from freshet.simulation.executor import Departs
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


class FastChain(ABC):
    """A chain of fused operators.

    Args:
        through: The operators.
        inner: For each port of the first operator, the chain of the same unit that feeds it; None: its queue does.
        queues: Where its output waits next.
        passed: For each operator, which tuples it lets through; None: all.
        call: Seconds per call of a box.
        departs: When tuples leave a unit.
        leaves: Whether its output is the output of a query.
    """

    def __init__(
        self,
        through: Sequence[FastOperator],
        inner: Sequence[int | None],
        queues: Sequence[FastEdge],
        passed: Sequence[bytes | None],
        call: float,
        departs: Departs,
        leaves: bool,
    ) -> None:
        self.through, self.queues, self.leaves = through, queues, leaves
        self.first = through[0]
        self._ports = list(zip(self.first.edges, inner, strict=True))
        self.fed = any(source is not None for source in inner)
        """Whether another chain feeds it."""
        self.fused = [edge for edge, source in self._ports if source is not None]
        self.fused += [each.edges[0] for each in through[1:]]
        self._costs, self._passed, self._call, self._departs = [each.cost for each in through], passed, call, departs
        self._cost, self._all_pass = sum(self._costs), all(each is None for each in passed)
        self._begins: list[float] = []
        self._set_up()

    @abstractmethod
    def _set_up(self) -> None:
        """Makes what its runs need."""

    @abstractmethod
    def run(
        self, given: Sequence[Sequence[FastToken]], limit: int | None, times: Sequence[float], moment: float
    ) -> tuple[Sequence[FastToken], float, int, float]:
        """Takes what waits, or what other chains have given out, and runs over it from a moment on.

        Returns the tuples that pass, the end, the calls, and the seconds in boxes.
        """

    @abstractmethod
    def end(self, tokens: Sequence[FastToken], moment: float) -> None:
        """Ends the unit: if all tuples leave with the unit, those at the end of a query leave now."""

    @abstractmethod
    def _trains(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All tuples from which some left, train by train, and how many there are in each train."""

    def departed(self, moments: Floats) -> tuple[Floats, Floats]:
        """A moment of each tuple that left (as its arrival), given by token, and when it left."""
        tokens, counts = self._trains()
        if not len(tokens):
            return moments[tokens], np.empty(0)
        departures = np.repeat(np.array(self._begins), counts)
        alive = np.ones(len(tokens), dtype=bool)
        if self._departs != "unit":
            places = slice(None) if self._departs == "tuple" else slice(-1, None)
            service = np.zeros(len(tokens))
            for cost, passed in zip(self._costs[places], self._passed[places], strict=True):
                service += alive * cost
                if passed is not None:
                    alive &= np.frombuffer(passed, dtype=bool)[tokens]
            sums = np.cumsum(service)
            firsts = np.cumsum([0, *counts[:-1]])
            departures += sums - np.repeat(sums[firsts] - service[firsts], counts)
        return moments[tokens[alive]], departures[alive]


class ListedChain(FastChain):
    """A chain that lists the tuples in front of each of its operators: others read them, or feed it."""

    def _set_up(self) -> None:
        self._works = list(zip(self._costs, self._passed, strict=True))
        self._left_in: list[Sequence[FastToken]] = []

    def run(
        self, given: Sequence[Sequence[FastToken]], limit: int | None, times: Sequence[float], moment: float
    ) -> tuple[Sequence[FastToken], float, int, float]:
        tokens = self._take(given, limit, times)
        calls, seconds, call = 0, 0.0, self._call
        coming, last = tokens, tokens
        begin = moment
        if self._all_pass:
            if tokens:
                rows, calls = len(tokens), len(self._costs)
                seconds = rows * self._cost
                begin = moment + calls * call + rows * (self._cost - self._costs[-1])
        else:
            for cost, passed in self._works:
                if not coming:
                    break
                last, begin = coming, moment + calls * call + seconds + call
                calls += 1
                seconds += len(coming) * cost
                if passed is not None:
                    coming = [token for token in coming if passed[token]]
        end = moment + calls * call + seconds
        if self.leaves and coming:
            if self._departs == "tuple":
                self._left(tokens, end - seconds)
            elif self._departs == "box":
                self._left(last, begin)
        return coming, end, calls, seconds

    def _take(
        self, given: Sequence[Sequence[FastToken]], limit: int | None, times: Sequence[float]
    ) -> Sequence[FastToken]:
        """The tuples that come in, by port: the trains of its queues, and what other chains have given out."""
        parts = [edge.take(limit, times) if source is None else given[source] for edge, source in self._ports]
        self.first.refresh()
        return parts[0] if len(parts) == 1 else list(chained.from_iterable(parts))

    def end(self, tokens: Sequence[FastToken], moment: float) -> None:
        if self._departs == "unit":
            self._left(tokens, moment)

    def _left(self, tokens: Sequence[FastToken], begin: float) -> None:
        self._left_in.append(tokens)
        self._begins.append(begin)

    def _trains(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        counts = np.fromiter(map(len, self._left_in), np.int64, len(self._left_in))
        return np.fromiter(chained.from_iterable(self._left_in), np.int64, int(counts.sum())), counts


class CountedChain(FastChain):
    """A chain from a source to the end of queries: nobody asks which tuples pass, so it only counts them.

    How many tuples of a train reach an operator is the difference of two running counts, however long the train is.
    """

    def _set_up(self) -> None:
        self._edge = self.first.edges[0]
        assert isinstance(self._edge.tokens, range), "only a source numbers its tuples in a row"
        self._start, alive = self._edge.tokens.start, np.ones(len(self._edge.tokens), dtype=bool)
        self._works: list[tuple[float, array[int] | None]] = []
        """For each operator its cost, and how many of the first tuples it gives out; None: all that come in."""
        for cost, passed in zip(self._costs, self._passed, strict=True):
            counts = None
            if passed is not None:
                alive &= np.frombuffer(passed, dtype=bool)[self._start : self._edge.tokens.stop]
                counts = array("i", np.cumsum(np.concatenate([[False], alive]), dtype=np.int32).tobytes())
            self._works.append((cost, counts))
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def run(
        self, given: Sequence[Sequence[FastToken]], limit: int | None, times: Sequence[float], moment: float
    ) -> tuple[Sequence[FastToken], float, int, float]:
        edge, operator = self._edge, self.first
        first, until = edge.next, edge.end
        if limit is not None and until - first > limit:
            until = first + limit
            edge.head = times[self._start + until]
        else:
            edge.head = math.inf
        edge.next = until
        operator.pending, operator.head_arrival = edge.end - until, edge.head
        calls, seconds, call, coming = 0, 0.0, self._call, until - first
        begin = moment
        if self._all_pass:
            calls = len(self._costs)
            seconds = coming * self._cost
            begin = moment + calls * call + coming * (self._cost - self._costs[-1])
        else:
            for cost, counts in self._works:
                if not coming:
                    break
                begin = moment + calls * call + seconds + call
                calls += 1
                seconds += coming * cost
                if counts is not None:
                    coming = counts[until] - counts[first]
        end = moment + calls * call + seconds
        if not coming or not self.leaves:
            return (), end, calls, seconds
        self._firsts.append(first)
        self._ends.append(until)
        if self._departs == "tuple":
            self._begins.append(end - seconds)
        elif self._departs == "box":
            self._begins.append(begin)
        return (first,), end, calls, seconds

    def end(self, tokens: Sequence[FastToken], moment: float) -> None:
        if self._departs == "unit":
            self._begins.append(moment)

    def _trains(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        firsts = np.array(self._firsts, dtype=np.int64)
        counts = np.array(self._ends, dtype=np.int64) - firsts
        before = np.cumsum(counts) - counts
        tokens = np.arange(counts.sum()) + np.repeat(self._start + firsts - before, counts)
        seen = self._passed[: {"tuple": 0, "box": -1, "unit": len(self._passed)}[self._departs]]
        if any(each is not None for each in seen):
            # Times count from later on: of the tuples, only those that came so far.
            alive = np.ones(len(tokens), dtype=bool)
            for each in seen:
                if each is not None:
                    alive &= np.frombuffer(each, dtype=bool)[tokens]
            tokens, counts = tokens[alive], np.add.reduceat(alive, before, dtype=np.int64)
        return tokens, counts


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
