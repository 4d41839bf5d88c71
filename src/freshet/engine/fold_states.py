"""The states of folds as ranges of the log: in how many parts each lies, and when it is written anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from freshet.engine.protocols import QueueLog
from freshet.engine.states import FoldState
from freshet.model import State, Train, state_stream
from freshet.model.names import MOST_PARTS

MOST_PIECES: Final = 64
"""Number of segments that a state may always have, however small they are."""
_SMALL_PIECE: Final = 2**18
_LARGEST: Final = 2**28
WantedParts = Callable[[str, int, int, int], int]
"""In how many parts a state should lie; see :meth:`freshet.engine.protocols.Executor.parts`."""


class FoldStates:
    """Knows where the states of folds are.

    Args:
        log: The log.
        wanted: Says in how many parts a state should lie.
    """

    def __init__(self, log: QueueLog, wanted: WantedParts) -> None:
        self._log, self._wanted = log, wanted

    def start(self, fold: FoldState) -> None:
        """Takes up a fold where it was."""
        fold.streams, fold.lows, fold.present = fold.node.operator.states, {}, ()
        self._register(fold, 1)
        self.became(fold, 1)
        there = self._log.named(f"{state_stream(fold.node.name, 0)}_")
        for parts in range(2, MOST_PARTS + 1) if there else ():
            names = _names(fold, parts)
            if not there.isdisjoint(names):
                self._register(fold, parts)
                if any(self._log.end(name) > fold.lows[name] for name in names):
                    self.became(fold, parts)

    def _register(self, fold: FoldState, parts: int) -> None:
        for name in _names(fold, parts):
            if name not in fold.lows:
                fold.lows[name] = self._log.start_reader(name, name, "earliest", "state", fold.node.query)

    def became(self, fold: FoldState, parts: int) -> None:
        """Notes in how many parts the state of a fold lies."""
        if parts != fold.parts or not fold.present:
            fold.parts, fold.present = parts, _names(fold, parts)

    def ranges(self, fold: FoldState) -> tuple[Train, ...]:
        """The live range of each state stream of a fold."""
        lows = [(stream, fold.lows[stream]) for stream in fold.present]
        return tuple([self._log.train(stream, low, max(low, self._log.end(stream))) for stream, low in lows])

    def has_state(self, fold: FoldState) -> bool:
        """Whether a fold remembers anything that the passing of time could bring out."""
        return any(self._log.end(stream) > fold.lows[stream] for stream in fold.present[:: fold.streams])

    def is_scattered(self, fold: FoldState) -> bool:
        """Whether a state should be written anew by a unit of its own."""
        return any(map(self._is_scattered, self.ranges(fold)))

    def _is_scattered(self, state: Train, patience: int = 1) -> bool:
        size = self._log.bytes(state.stream, state.first, state.end) if state.rows else 0
        return is_scattered(len(state.segments), size, patience)

    def state(self, fold: FoldState, after: tuple[int | None, ...], rows: int) -> State:
        """The state of a fold for a unit over this number of tuples.

        States are rewritten by units without tuples, which nobody waits for, unless there is never time for one.
        """
        ranges = self.ranges(fold)
        becomes = self._becomes(fold, rows, sum([each.rows for each in ranges]))
        if fold.parts * fold.streams != len(ranges):
            ranges = self.ranges(fold)
        patience = 2 if rows else 1
        scattered = tuple([place for place, each in enumerate(ranges) if self._is_scattered(each, patience)])
        return State(fold.node.name, ranges, tuple(fold.seen), after, scattered, fold.parts, becomes)

    def _becomes(self, fold: FoldState, rows: int, remembered: int) -> int | None:
        """The number of parts into which a unit has to divide a state; None: it stays as it is. A state without rows
        lies in as many parts as one likes."""
        wanted = self._wanted(fold.node.name, fold.parts, rows, remembered)
        if wanted == fold.parts:
            return None
        self._register(fold, wanted)
        if remembered:
            return wanted
        self.became(fold, wanted)
        return None


def _names(fold: FoldState, parts: int) -> tuple[str, ...]:
    name = fold.node.name
    return tuple([state_stream(name, number, part, parts) for part in range(parts) for number in range(fold.streams)])


def is_scattered(pieces: int, size: int, times: int = 1) -> bool:
    """Whether a state has so many small segments that it is worth rewriting.

    Each unit adds at least one segment. A larger state may have more segments, so that on average a unit rewrites no
    more bytes than a small segment has. A state that hardly fits into one worker is never rewritten.

    Args:
        pieces: Number of its segments.
        size: Their bytes.
        times: How many times as many segments are still good.

    >>> is_scattered(65, 10_000), is_scattered(64, 10_000), is_scattered(65, 10_000, times=2)
    (True, False, False)
    """
    return pieces > times * max(MOST_PIECES, size // _SMALL_PIECE) and size <= _LARGEST
