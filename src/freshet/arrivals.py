"""Arrival processes: when tuples come, in seconds from 0, the same for the same seed.

A process is cut into *blocks*. Each is made from a small JSON-ready *mark*, so that a cursor can continue after
a restart exactly where it stopped, and tuple ``i`` arrives at the same time however the stream is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from freshet.model import UserError

Times = NDArray[np.float64]
Mark = dict[str, Any]

_BLOCK: Final = 4096
_MAX_SPAN_TUPLES: Final = 20_000_000
_MAX_LEVELS: Final = 20


class Arrivals(ABC):
    """A process of arrivals. The process itself has no state; its :class:`ArrivalCursor` has."""

    @abstractmethod
    def start(self) -> Mark:
        """The mark of the first block."""

    @abstractmethod
    def block(self, mark: Mark) -> tuple[Times, Mark | None]:
        """The nondecreasing times of a block (possibly none), and the mark of the next; None if the process ends."""

    def cursor(self, position: Mapping[str, Any] | None = None) -> ArrivalCursor:
        """A cursor at the first tuple, or where an earlier cursor's ``position`` says."""
        return ArrivalCursor(self, position)

    def first(self, count: int) -> Times:
        """The times of the first ``count`` tuples (fewer, if the process ends)."""
        return self.cursor().take(count)


class ArrivalCursor:
    """Takes times from a process, in order.

    >>> cursor = Constant(2.0).cursor()
    >>> cursor.take(3).tolist(), cursor.peek()
    ([0.5, 1.0, 1.5], 2.0)
    >>> Constant(2.0).cursor(cursor.position).take_until(3.0).tolist()
    [2.0, 2.5, 3.0]
    """

    def __init__(self, process: Arrivals, position: Mapping[str, Any] | None = None) -> None:
        self._process = process
        where = position or {"index": 0, "mark": process.start(), "used": 0}
        self.index = int(where["index"])
        self._mark: Mark | None = where["mark"]
        self._used = int(where["used"])
        self._load()

    def _load(self) -> None:
        """Makes the block of the mark, and skips blocks that are empty or used up."""
        self._times: Times = np.empty(0)
        while self._mark is not None:
            self._times, self._next = self._process.block(self._mark)
            if self._used < len(self._times):
                return
            self._mark, self._used = self._next, 0

    @property
    def position(self) -> dict[str, Any]:
        """A JSON-ready position; :meth:`Arrivals.cursor` continues from it."""
        return {"index": self.index, "mark": self._mark, "used": self._used}

    def peek(self) -> float | None:
        """When the next tuple arrives; None if no more come."""
        return None if self._mark is None else float(self._times[self._used])

    def take(self, count: int) -> Times:
        """The times of the next ``count`` tuples; fewer only if the process ends."""
        return self.take_until(np.inf, count)

    def take_until(self, time: float, limit: int | None = None) -> Times:
        """The times of the next tuples that arrive no later than ``time``, at most ``limit`` of them."""
        parts: list[Times] = []
        left = np.iinfo(np.int64).max if limit is None else limit
        while self._mark is not None and left > 0:
            due = int(np.searchsorted(self._times, time, side="right"))
            end = min(due, self._used + left)
            if end <= self._used:
                break
            parts.append(self._times[self._used : end])
            left -= end - self._used
            self.index += end - self._used
            self._used = end
            if end == len(self._times):
                self._load()
        return np.concatenate(parts) if parts else np.empty(0)


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number])))


def _gaps(seed: int, number: int, rate: float) -> Times:
    # Inverse transform: with another rate and the same seed, the gaps are these, stretched.
    return -np.log1p(-_generator(seed, number).random(_BLOCK)) / rate


def _check_rate(rate: float) -> None:
    if not 0.0 < rate < np.inf:
        raise UserError(f"rate {rate} must be a positive number of tuples a second")


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise UserError(f"seed {seed} must be 0 or a positive whole number")


class Constant(Arrivals):
    """A tuple every ``1 / rate`` seconds.

    >>> Constant(rate=4).first(3).tolist()
    [0.25, 0.5, 0.75]
    """

    def __init__(self, rate: float) -> None:
        _check_rate(rate)
        self.rate = rate

    def start(self) -> Mark:
        return {"block": 0}

    def block(self, mark: Mark) -> tuple[Times, Mark | None]:
        first = mark["block"] * _BLOCK + 1
        return np.arange(first, first + _BLOCK) / self.rate, {"block": mark["block"] + 1}


class Poisson(Arrivals):
    """Independent, exponentially distributed gaps with mean ``1 / rate`` (FAS §6, RT §5).

    >>> times = Poisson(rate=100, seed=7).first(10_000)
    >>> bool(95 < times[-1] < 105)
    True
    """

    def __init__(self, rate: float, seed: int = 0) -> None:
        _check_rate(rate)
        _check_seed(seed)
        self.rate, self.seed = rate, seed

    def start(self) -> Mark:
        return {"block": 0, "time": 0.0}

    def block(self, mark: Mark) -> tuple[Times, Mark | None]:
        times = mark["time"] + np.cumsum(_gaps(self.seed, mark["block"], self.rate))
        return times, {"block": mark["block"] + 1, "time": float(times[-1])}


class Bursts(Arrivals):
    """Groups every ``size`` consecutive tuples of another process: all arrive with the first of them (FAS §6).

    >>> Bursts(Constant(1.0), size=3).first(7).tolist()
    [1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 7.0]
    """

    def __init__(self, inner: Arrivals, size: int = 10) -> None:
        if size < 1:
            raise UserError(f"burst size {size} must be at least 1")
        self.inner, self.size = inner, size

    def start(self) -> Mark:
        return {"inner": self.inner.start(), "count": 0, "time": 0.0}

    def block(self, mark: Mark) -> tuple[Times, Mark | None]:
        inner, after = self.inner.block(mark["inner"])
        count, time = mark["count"], mark["time"]
        # The block may begin inside a burst; the burst's time is then in the mark.
        place = np.arange(len(inner)) + count
        leader = place - place % self.size - count
        times = np.where(leader < 0, time, inner[np.maximum(leader, 0)])
        if len(times):
            count, time = (count + len(times)) % self.size, float(times[-1])
        return times, None if after is None else {"inner": after, "count": count, "time": time}


class BModel(Arrivals):
    """Self-similar bursts: the b-model (WU §4.9.2.4).

    The tuples of a span are divided among its halves: ``bias`` of them go to one, the rest to the other, and a draw
    decides which is which. This is repeated ``levels`` times. A count that does not divide is rounded up or down at
    random, so that single tuples follow the bias, too. Within an interval of the last level tuples are spread evenly.
    The spans follow each other, each with a cascade of its own.

    Args:
        rate: Tuples a second over a whole span.
        bias: From 0.5 (even) to 1 (one burst per span); network traffic has 0.6 to 0.8.
        span: Seconds of a span.
        levels: How often a span is halved; the resolution is ``span / 2 ** levels``.
        seed: Seed of the draws.

    >>> times = BModel(rate=1000, bias=0.8, span=10, seed=1).first(10_000)
    >>> counts, _ = np.histogram(times, bins=100, range=(0, 10))
    >>> bool(counts.var() / counts.mean() > 100)
    True
    """

    def __init__(self, rate: float, bias: float = 0.7, span: float = 64.0, levels: int = 10, seed: int = 0) -> None:
        _check_rate(rate)
        _check_seed(seed)
        if not 0.5 <= bias <= 1.0:
            raise UserError(f"bias {bias} must lie between 0.5 (even) and 1 (one burst)")
        if not 0.0 < span < np.inf:
            raise UserError(f"span {span} must be a positive number of seconds")
        if not 0 <= levels <= _MAX_LEVELS:
            raise UserError(f"levels {levels} must lie between 0 and {_MAX_LEVELS}")
        if rate * span > _MAX_SPAN_TUPLES:
            raise UserError(
                f"a span of {span} s at {rate} tuples/s has more than {_MAX_SPAN_TUPLES:,} tuples: shorten the span"
            )
        self.rate, self.bias, self.span, self.levels, self.seed = rate, bias, span, levels, seed

    def start(self) -> Mark:
        return {"block": 0}

    def counts(self, number: int) -> NDArray[np.int64]:
        """Number of tuples in each interval of the last level of a span."""
        generator = _generator(self.seed, number)
        # Differences of whole parts, so that no fraction of a tuple is lost from span to span.
        per_span = self.rate * self.span
        total = int(np.floor((number + 1) * per_span)) - int(np.floor(number * per_span))
        counts = np.array([total], dtype=np.int64)
        for _ in range(self.levels):
            share = np.where(generator.random(len(counts)) < 0.5, self.bias, 1.0 - self.bias)
            left = np.floor(share * counts + generator.random(len(counts))).astype(np.int64)
            left = np.minimum(left, counts)
            counts = np.stack([left, counts - left], axis=1).ravel()
        return counts

    def block(self, mark: Mark) -> tuple[Times, Mark | None]:
        number = mark["block"]
        counts = self.counts(number)
        interval = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(interval)) - np.repeat(np.cumsum(counts) - counts, counts)
        place = interval + (rank + 0.5) / counts[interval]
        times = (number + place / len(counts)) * self.span
        return times, {"block": number + 1}


class RateSchedule(Arrivals):
    """Poisson arrivals with a rate that changes by a schedule; a rate of 0 is a pause (MAV §3.2).

    Args:
        pieces: ``(seconds, rate)``, one after the other.
        repeat: Begin again at the end; otherwise the process ends there.
        seed: Seed of the draws.

    >>> times = RateSchedule([(1.0, 50.0), (9.0, 0.0)], seed=3).first(10_000)
    >>> bool(np.all(times % 10 < 1.0))
    True
    >>> len(RateSchedule([(1.0, 50.0), (9.0, 0.0)], repeat=False, seed=3).first(10_000)) < 100
    True
    """

    def __init__(self, pieces: Sequence[tuple[float, float]], repeat: bool = True, seed: int = 0) -> None:
        _check_seed(seed)
        if not pieces:
            raise UserError("a schedule needs at least one piece (seconds, rate)")
        for seconds, rate in pieces:
            if not 0.0 < seconds < np.inf:
                raise UserError(f"schedule: a piece of {seconds} s must last a positive time")
            if not 0.0 <= rate < np.inf:
                raise UserError(f"schedule: rate {rate} must be 0 (a pause) or positive")
        if all(rate == 0.0 for _, rate in pieces):
            raise UserError("schedule: every rate is 0, so nothing would ever arrive")
        self.pieces = tuple((float(seconds), float(rate)) for seconds, rate in pieces)
        self.repeat, self.seed = repeat, seed
        self._ends = np.cumsum([seconds for seconds, _ in self.pieces])

    def start(self) -> Mark:
        return {"block": 0, "piece": 0, "time": 0.0}

    def block(self, mark: Mark) -> tuple[Times, Mark | None]:
        number, piece, time = mark["block"], mark["piece"], mark["time"]
        cycle, place = divmod(piece, len(self.pieces))
        if cycle and not self.repeat:
            return np.empty(0), None
        end = float(cycle * self._ends[-1] + self._ends[place])
        following = {"block": number + 1, "piece": piece + 1, "time": end}
        rate = self.pieces[place][1]
        if rate == 0.0:
            return np.empty(0), following
        times = time + np.cumsum(_gaps(self.seed, number, rate))
        if times[-1] < end:
            return times, {"block": number + 1, "piece": piece, "time": float(times[-1])}
        # A Poisson process has no memory, so it may begin anew at the next piece.
        return times[times < end], following
