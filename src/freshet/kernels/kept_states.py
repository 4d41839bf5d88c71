"""What a process has made of the states of folds, kept from one unit to the next.

The log stays the truth. A kept fold is used only if a unit names exactly the rows that it was made of. What a unit made
is tentative: if the unit is not committed, no later unit will ever name it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from freshet.kernels.folds import CompiledFold, LiveFold
from freshet.model import Train


class Mark(NamedTuple):
    """Names the rows of a range of a state stream.

    Offsets are consecutive, segments never change, and no file name is used twice. So if two ranges have the same
    offsets and end with the same part of the same file, they have the same rows.

    >>> from freshet.model import Segment
    >>> mark = Mark.of(Train("q.state", 3, 9, (Segment("q.state", 0, 9, 0, 0, 0, "u1.arrows", 64, 500),)))
    >>> mark.after(2, 4, "u2.arrows", 0), mark.after(6)
    (Mark(stream='q.state', first=5, end=13, file='u2.arrows', position=0), Mark(stream='q.state', first=9, end=9, ...
    """

    stream: str
    first: int
    end: int
    file: str | None = None
    position: int = 0

    @classmethod
    def of(cls, state: Train) -> Mark:
        """Names the rows of a train."""
        if not state.rows:
            return cls(state.stream, state.first, state.end)
        last = state.segments[-1]
        return cls(state.stream, state.first, state.end, last.file, last.position)

    def after(self, dropped: int, rows: int = 0, file: str | None = None, position: int = 0) -> Mark:
        """Names the rows after a change: some were dropped, and then some appended, from a place of a file on."""
        first, end = self.first + dropped, self.end + rows
        if rows:
            return Mark(self.stream, first, end, file, position)
        return self._replace(first=first) if first < end else Mark(self.stream, first, end)


Stamp = tuple[Mark, ...]
"""Names the state of a fold: the rows of each of its streams."""


def stamp_of(ranges: Sequence[Train]) -> Stamp:
    """Names the state that consists of these ranges."""
    return tuple(map(Mark.of, ranges))


def form_of(fold: CompiledFold) -> Hashable:
    """What decides how a fold works: folds of equal forms can take the place of each other."""
    return fold.operator, fold.states, fold.output


@dataclass(frozen=True, slots=True)
class _Kept:
    form: Hashable
    versions: Mapping[Stamp, LiveFold]
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
    >>> kept, stamp = KeptStates(2**20), stamp_of([Train("q.panes.state", 0, 0)])
    >>> kept.find("q.panes", fold, stamp) is None
    True
    >>> kept.keep("q.panes", fold, {stamp: fold.live([fold.states[0].empty_table()])})
    >>> kept.find("q.panes", fold, stamp).rows, kept.hits, kept.misses
    (0, 1, 1)
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.hits = 0
        """How often a state was found."""
        self.misses = 0
        """How often it was not, and was built from the log."""
        self.nbytes = 0
        """Memory that the kept states take now."""
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def find(self, place: Hashable, fold: CompiledFold, stamp: Stamp) -> LiveFold | None:
        """The fold with the state that a stamp names, if it is kept."""
        kept = self._kept.get(place)
        if kept is None or stamp not in kept.versions or kept.form != form_of(fold):
            self.misses += 1
            return None
        self.hits += 1
        self._kept.move_to_end(place)
        return kept.versions[stamp]

    def keep(self, place: Hashable, fold: CompiledFold, versions: Mapping[Stamp, LiveFold]) -> None:
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
