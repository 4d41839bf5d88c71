"""Releases and instances of periodic queries (RT §2.2).

A periodic query is *released* at the multiples of its period. A release fixes what its *instance* sees: the end offset
of each input. It is an entry of the log, and so is what came of the instance. So an answer stays a function of log and
ledger, however late the instance runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from freshet.model.operators.fold import span_text

InstanceState = Literal["waiting", "answered", "abandoned"]
"""What became of an instance.

- ``waiting``: released, and not answered yet.
- ``answered``: its answer is in the log; it may be an empty one.
- ``abandoned``: it was late, and was given up.
"""
NO_TIME: Final = -1


@dataclass(frozen=True, slots=True)
class InputWindow:
    """Which tuples of an input an instance sees: those of the last ``size`` microseconds before its release, or the
    last ``rows``. With neither it sees what came since the release before, and a fold remembers the rest.

    >>> InputWindow(size=60_000_000).text(), InputWindow(rows=10).text(), InputWindow().text()
    ('the last 1 min', 'the last 10 tuples', 'what came since the last release')
    """

    size: int | None = None
    rows: int | None = None

    @property
    def passes(self) -> bool:
        """Whether instances see each tuple once, and folds remember what later ones need of it."""
        return self.size is None and self.rows is None

    def text(self) -> str:
        """For people."""
        if self.size is not None:
            return f"the last {span_text(self.size)}"
        return "what came since the last release" if self.rows is None else f"the last {self.rows} tuples"


@dataclass(frozen=True, slots=True)
class Instance:
    """A release, and what came of it.

    Args:
        query: Name of the query.
        release: Time of the release, in microseconds.
        deadline: When the answer is due, in microseconds.
        ends: For each edge from a stream or an output, by the name of its cursor: the offset behind the last tuple that
            had come at the release.
        state: What became of it.
        kept: Share of the tuples that was kept, by the same names; edges that are not there kept everything.
        quality: What the answer is worth by the query's quality table, from 0 to 1.
        first: Offset of the first row of the answer in the query's output.
        rows: Number of rows of the answer.
        started: When its unit began, in microseconds.
        finished: When it was committed, in microseconds.
        reason: Why it was abandoned.
        since: Where its longest window of time begins, in microseconds; negative: it has none.

    >>> one = Instance("q", 2_000_000, 3_000_000, {"q.filter_1": 40})
    >>> one.is_late(3_000_001), one.key
    (True, ('q', 2000000))
    """

    query: str
    release: int
    deadline: int
    ends: Mapping[str, int]
    state: InstanceState = "waiting"
    kept: Mapping[str, float] = field(default_factory=dict)
    quality: float = 1.0
    first: int = 0
    rows: int = 0
    started: int = NO_TIME
    finished: int = NO_TIME
    reason: str = ""
    since: int = NO_TIME

    @property
    def key(self) -> tuple[str, int]:
        """Names it: the query and the release."""
        return self.query, self.release

    def is_late(self, now: int) -> bool:
        """Whether its deadline has passed."""
        return now > self.deadline


@dataclass(frozen=True, slots=True)
class InstanceInput:
    """What an instance sees of one edge, by the name of its cursor and the number of the node that it leads to: the
    range [first, end) of a stream. Where a fold keeps panes, its window also has ``earlier`` tuples that instances
    before it have read, and of which they kept a share.

    >>> InstanceInput("q.edge", "s", 0, 0, 10, earlier=30, earlier_kept=1.0).window_kept(0.5)
    0.875
    """

    reader: str
    stream: str
    node: int
    first: int
    end: int
    earlier: int = 0
    earlier_kept: float = 1.0

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return self.end - self.first

    def window_kept(self, kept: float) -> float:
        """The share of its window's tuples that is kept if this share of the new ones is: the mean by their rows."""
        rows = self.rows + self.earlier
        return (self.rows * kept + self.earlier * self.earlier_kept) / rows if rows else kept


def releases_between(after: int, until: int, period: int) -> range:
    """The releases in ``(after, until]``: multiples of the period since the epoch, in microseconds.

    >>> list(releases_between(4, 12, 4)), list(releases_between(3, 3, 4))
    ([8, 12], [])
    """
    return range((after // period + 1) * period, until + 1, period)
