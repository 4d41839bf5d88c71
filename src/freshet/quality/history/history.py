"""The samples of a run, of bounded number: a night takes as much room as a minute."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from freshet.quality.history.sample import RunSample

MOST: Final = 480
"""Maximum number of samples."""
LEAST: Final = 80
"""The number of samples that are kept however many queries there are."""
CELLS: Final = 40_000
"""The number of samples times queries that may be kept, if that leaves more than the least."""
MARKS: Final = 200
"""Maximum number of marks; the latest are kept."""


class History:
    """Samples of a run at even intervals, from its beginning to its end.

    When there are too many, it makes one sample of two and takes the next ones half as often. So the samples cover the
    whole run, however long it is.

    Args:
        every: Seconds between samples at the beginning.

    >>> from freshet.quality.history.sample import MachineSample
    >>> history = History(every=1.0)
    >>> for second in range(1001):
    ...     if history.is_due(second):
    ...         history.take(RunSample(float(second), {}, MachineSample(0.0, 0, 0.0, 0)))
    >>> history.every, len(history.samples) <= MOST, history.samples[0].time, history.samples[-1].time
    (4.0, True, 0.0, 1000.0)
    """

    def __init__(self, every: float = 1.0) -> None:
        self.every = every
        self.samples: list[RunSample] = []
        self.marks: deque[tuple[float, str]] = deque(maxlen=MARKS)
        """What happened when, in words: a query came, was quarantined, changed its weight."""
        self._due = -math.inf

    def is_due(self, now: float) -> bool:
        """Whether it is time for a sample."""
        return now >= self._due

    def take(self, sample: RunSample, pause: float = 0.0) -> None:
        """Keeps a sample. The next one is due after the interval, or after ``pause`` seconds if that is longer."""
        if self.samples and sample.time <= self.samples[-1].time:
            self.samples[-1] = sample.after(self.samples[-1])
        else:
            self.samples.append(sample)
        if len(self.samples) > max(LEAST, min(MOST, CELLS // max(1, len(sample.queries)))):
            self._halve()
        self._due = sample.time + max(self.every, pause)

    def mark(self, now: float, text: str) -> None:
        """Notes that something happened."""
        self.marks.append((now, text))

    def clear(self) -> None:
        """Forgets everything: the run begins now."""
        self.samples.clear()
        self.marks.clear()
        self._due = -math.inf

    def _halve(self) -> None:
        """Keeps the first sample and the last, and one for each two between them."""
        first, *rest = self.samples
        pairs = zip(rest[:-1:2], rest[1::2], strict=False)
        last = rest[-1:] if len(rest) % 2 else []
        self.samples = [first, *(later.after(earlier) for earlier, later in pairs), *last]
        self.every *= 2.0
