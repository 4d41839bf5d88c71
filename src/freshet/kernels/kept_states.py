"""What a process has made of the states of folds, kept from one unit to the next.

The log stays the truth. A kept fold is used only if a unit names exactly the rows that it was made of, or rows that
have grown out of these: then only what came since is read. What a unit made is tentative: if the unit is not committed,
no later unit will ever name it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from freshet.kernels.folds import CompiledFold, LiveFold
from freshet.model import Segment, Train


class RangeMark(NamedTuple):
    """Names the rows of a range of a state stream.

    Offsets are consecutive, segments never change, and no file name is used twice. So if two ranges have the same
    offsets and end with the same part of the same file, they have the same rows.

    >>> from freshet.model import Segment
    >>> mark = RangeMark.of(Train("q.state", 3, 9, (Segment("q.state", 0, 9, 0, 0, 0, "u1.arrows", 64, 500),)))
    >>> mark.after(2, 4, "u2.arrows", 0)
    RangeMark(stream='q.state', first=5, end=13, file='u2.arrows', position=0)
    >>> mark.after(6).file is None
    True
    """

    stream: str
    first: int
    end: int
    file: str | None = None
    position: int = 0

    @classmethod
    def of(cls, state: Train) -> RangeMark:
        """Names the rows of a train."""
        if not state.rows:
            return cls(state.stream, state.first, state.end)
        last = state.segments[-1]
        return cls(state.stream, state.first, state.end, last.file, last.position)

    def after(self, dropped: int, rows: int = 0, file: str | None = None, position: int = 0) -> RangeMark:
        """Names the rows after a change: some were dropped, and then some appended, from a place of a file on."""
        first, end = self.first + dropped, self.end + rows
        if rows:
            return RangeMark(self.stream, first, end, file, position)
        return self._replace(first=first) if first < end else RangeMark(self.stream, first, end)


StateStamp = tuple[RangeMark, ...]
"""Names the state of a fold: the rows of each of its streams."""


class Gap(NamedTuple):
    """What has happened to a range of a state stream since it was marked: rows were dropped, and others appended."""

    dropped: int
    appended: Train


def gap(mark: RangeMark, state: Train) -> Gap | None:
    """What lies between the rows that a mark names and those of a later range; None: that cannot be known.

    >>> from freshet.model import Segment
    >>> pieces = [Segment("q.state", first, 5, 0, 0, 0, f"{first}.arrows", 0, 9) for first in (0, 5)]
    >>> mark, later = RangeMark.of(Train("q.state", 0, 5, (pieces[0],))), Train("q.state", 2, 10, tuple(pieces))
    >>> dropped, appended = gap(mark, later)
    >>> dropped, appended.first, appended.end, gap(mark._replace(file="other.arrows"), later)
    (2, 5, 10, None)
    """
    if mark.stream != state.stream or mark.first > state.first or mark.end > state.end:
        return None
    if mark.end <= state.first:
        return Gap(mark.end - mark.first, state)
    known = sum(1 for segment in state.segments if segment.end <= mark.end)
    if not known or _end(state.segments[known - 1]) != (mark.end, mark.file, mark.position):
        return None
    return Gap(state.first - mark.first, Train(state.stream, mark.end, state.end, state.segments[known:]))


def _end(segment: Segment) -> tuple[int, str, int]:
    return segment.end, segment.file, segment.position


def stamp_of(ranges: Sequence[Train]) -> StateStamp:
    """Names the state that consists of these ranges."""
    return tuple(map(RangeMark.of, ranges))


def form_of(fold: CompiledFold) -> Hashable:
    """What decides how a fold works: folds of equal forms can take the place of each other."""
    return fold.operator, fold.states, fold.output


ReadRows = Callable[[Train, pa.Schema], pa.Table]
"""Reads rows of a state stream."""


def _caught_up(
    versions: dict[StateStamp, LiveFold], fold: CompiledFold, ranges: Sequence[Train], read: ReadRows
) -> LiveFold | None:
    """The newest version that the state grew out of, with what came since."""
    for stamp, live in reversed(versions.items()):
        gaps = [found for found in map(gap, stamp, ranges) if found is not None]
        if len(gaps) == len(ranges):
            rows = [read(each.appended, schema) for each, schema in zip(gaps, fold.states, strict=True)]
            return live.moved([each.dropped for each in gaps], rows)
    return None


@dataclass(frozen=True, slots=True)
class _Kept:
    form: Hashable
    versions: dict[StateStamp, LiveFold]
    nbytes: int


class KeptStates:
    """Live folds by place, at most two versions of each: the one that a unit found, and the one that it made.

    Args:
        most_bytes: Maximum memory of all of them. Those that were not used for the longest time go first.

    >>> from freshet.kernels.folds import compile_fold
    >>> from freshet.model import Call, Lifetime, Panes
    >>> import pyarrow as pa
    >>> panes = Panes("q.panes", Lifetime("ts", 10), 10, (), (Call("n", "count"),))
    >>> fold = compile_fold(panes, pa.schema({"ts": pa.int64()}))
    >>> kept, state = KeptStates(2**20), Train("q.panes.state", 0, 0)
    >>> live = kept.recall("q.panes", fold, [state], lambda part, schema: schema.empty_table())
    >>> kept.keep("q.panes", fold, {stamp_of([state]): live})
    >>> kept.recall("q.panes", fold, [state], lambda part, schema: schema.empty_table()) is live, kept.hits, kept.misses
    (True, 1, 1)
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.hits = 0
        """How often a state was there, or an earlier version of it."""
        self.misses = 0
        """How often it was not, and was built from the log."""
        self.nbytes = 0
        """Memory that the kept states take now."""
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def recall(self, place: Hashable, fold: CompiledFold, ranges: Sequence[Train], read: ReadRows) -> LiveFold:
        """A fold with a state: as it was kept, or brought up to date with what came since, or built from the log.

        Args:
            place: Whose state it is.
            fold: The fold.
            ranges: The live range of each of its state streams.
            read: Reads rows from the log.
        """
        kept = self._kept.get(place)
        if kept is not None and kept.form == form_of(fold):
            self._kept.move_to_end(place)
            stamp = stamp_of(ranges)
            found = kept.versions.get(stamp) or _caught_up(kept.versions, fold, ranges, read)
            if found is not None:
                self.hits += 1
                return found
        self.misses += 1
        return fold.live([read(each, schema) for each, schema in zip(ranges, fold.states, strict=True)])

    def keep(self, place: Hashable, fold: CompiledFold, versions: Mapping[StateStamp, LiveFold]) -> None:
        """Keeps versions of a fold instead of those that were kept before, the newest last."""
        self.forget(place)
        size = list(versions.values())[-1].nbytes
        self._kept[place] = _Kept(form_of(fold), dict(versions), size)
        self.nbytes += size
        while self.nbytes > self.most_bytes:
            self.forget(next(iter(self._kept)))

    def forget(self, place: Hashable) -> None:
        """Keeps a fold no longer."""
        gone = self._kept.pop(place, None)
        self.nbytes -= 0 if gone is None else gone.nbytes

    def clear(self) -> None:
        """Forgets everything."""
        self._kept.clear()
        self.nbytes = 0
