"""Chains of the fast loop: what a unit does to its tuples, whose departures are worked out at the end."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from itertools import chain as chained

import numpy as np
from numpy.typing import NDArray

from freshet.simulation.executor import Departs
from freshet.simulation.fast_queues import FastEdge, FastOperator, FastToken
from freshet.simulation.outcome import Floats

ChainMark = tuple[int, list[tuple[int, list[FastToken]]]]
"""Where a chain is: its runs, and for each of its queues the next tuple and what was left behind."""


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
        holes: Whether its queues give what was left behind there.
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
        holes: bool = False,
    ) -> None:
        self.through, self.queues, self.leaves, self.holes = through, queues, leaves, holes
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

    def queued(self) -> list[FastEdge]:
        """Those of its inputs that come from queues."""
        return [edge for edge, source in self._ports if source is None]

    def mark(self) -> ChainMark:
        """Where it is, so that a run can be taken back."""
        return len(self._begins), [(edge.next, list(edge.holes)) for edge in self.queued()]

    def take_back(self, mark: ChainMark, times: Sequence[float]) -> None:
        """Takes the runs since a mark back; what came since then stays."""
        runs, places = mark
        self._forget(runs)
        for edge, (first, holes) in zip(self.queued(), places, strict=True):
            edge.next, edge.holes = first, list(holes)
            edge.head = times[edge.tokens[first]] if first < edge.end else math.inf
        self.first.refresh()

    @abstractmethod
    def _forget(self, runs: int) -> None:
        """Forgets all but the first runs from which tuples left."""

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
        parts = [
            given[source] if source is not None else edge.take_holes(limit) if self.holes else edge.take(limit, times)
            for edge, source in self._ports
        ]
        self.first.refresh()
        return parts[0] if len(parts) == 1 else list(chained.from_iterable(parts))

    def end(self, tokens: Sequence[FastToken], moment: float) -> None:
        if self._departs == "unit":
            self._left(tokens, moment)

    def _forget(self, runs: int) -> None:
        del self._begins[runs:], self._left_in[runs:]

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

    def _forget(self, runs: int) -> None:
        del self._begins[runs:], self._firsts[runs:], self._ends[runs:]

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
