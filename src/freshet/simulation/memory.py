"""What simulated windows and joins remember: a range of a log, as on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from freshet.model import State, state_stream
from freshet.model.operators import earliest
from freshet.simulation.log import SimulatedLog, Tuples

Microseconds = NDArray[np.int64]
NOTHING: Tuples = Tuples(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0))


def together(parts: Sequence[Tuples]) -> Tuples:
    """Tuples of several inputs, one input after the other."""
    if len(parts) == 1:
        return parts[0]
    return Tuples(*map(np.concatenate, zip(*parts, strict=True)))


class FoldMemory:
    """What one fold remembers, while a unit runs.

    Args:
        state: As the unit found it.
        lasts: Microseconds for which a tuple counts.
        slide: Microseconds between the boundaries at which a window gives out a row; None if it is no window.
    """

    def __init__(self, state: State, log: SimulatedLog, lasts: int, slide: int | None) -> None:
        self._state, self._lasts, self._slide = state, lasts, slide
        self._kept = [log.tuples(each) for each in state.ranges]
        self.appended: list[tuple[str, Tuples]] = []
        self.dropped: list[tuple[str, int]] = []

    def take(self, inputs: Sequence[Tuples]) -> Tuples:
        """Remembers tuples, by port, and forgets those that no longer count. Returns what comes out of a window as time
        passes: a row for each boundary at which a tuple counts. Its origin is the newest of these, and it expires with
        that one: what else a window remembers may be older than any tuple is worth answering (WU §4.3.1, read so that
        a window can be in time at all)."""
        after = earliest(self._state.after)
        remembered = [together([kept, new]) for kept, new in zip(self._kept, inputs, strict=True)]
        times = [np.floor(each.arrivals * 1e6).astype(np.int64) for each in remembered]
        for port, new in enumerate(inputs):
            stream = state_stream(self._state.fold, port)
            self.appended.append((stream, new))
            self.dropped.append((stream, self._expired(times[port], after)))
        if self._slide is None or after is None:
            return NOTHING
        newest = np.array(list(self._closed(times[0], after, self._slide)), dtype=np.int64)
        return remembered[0].at(newest)

    def _expired(self, times: Microseconds, after: int | None) -> int:
        """How many of the oldest tuples no longer count."""
        if after is None or not len(times):
            return 0
        # A window asks at its next boundary, other operators at any moment from now on.
        since = after + 1 if self._slide is None else (after // self._slide + 1) * self._slide
        counts = times + self._lasts >= since
        return int(np.argmax(counts)) if counts.any() else len(times)

    def _closed(self, times: Microseconds, after: int, slide: int) -> Iterator[int]:
        if not len(times):
            return
        before = self._state.before[0]
        seen = int(times.min()) if before is None else before
        for boundary in range((seen // slide + 1) * slide, after // slide * slide + 1, slide):
            counted = np.flatnonzero((times < boundary) & (boundary <= times + self._lasts))
            if len(counted):
                yield int(counted[np.argmax(times[counted])])
