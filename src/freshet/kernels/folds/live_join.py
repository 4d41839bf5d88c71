"""A join with the tuples that it remembers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.arrays import Ints, arrow, select
from freshet.kernels.folds.folded import Folded, Watermarks
from freshet.kernels.folds.matching import pairs, partnered
from freshet.kernels.folds.panes.stream import numbers
from freshet.kernels.folds.states.slab import Keys, Slab
from freshet.kernels.folds.states.state_rows import StateRows
from freshet.kernels.folds.states.upkeep import keep_open
from freshet.kernels.folds.times import earliest
from freshet.kernels.folds.windows import CHUNK
from freshet.kernels.superbox.allowance import check_rows
from freshet.model import ARRIVAL
from freshet.model.operators import FROM, UNTIL

if TYPE_CHECKING:
    from freshet.kernels.folds.join import CompiledJoin

_TIMES: Final = (FROM, UNTIL, ARRIVAL)


class Met(NamedTuple):
    """Combinations of tuples of some inputs that have met.

    Args:
        rows: For each of these inputs, the places of its tuples.
        slab: Their keys, :data:`FROM` and :data:`UNTIL`.
    """

    rows: Mapping[int, Ints]
    slab: Slab


@dataclass(frozen=True)
class LiveJoin:
    """A join and the remembered tuples of each input, indexed by keys and time.

    Args:
        fold: The join.
        sides: The remembered tuples of each input.
    """

    fold: CompiledJoin
    sides: tuple[StateRows, ...]

    @property
    def rows(self) -> int:
        return sum(map(len, self.sides))

    @property
    def nbytes(self) -> int:
        return sum(side.nbytes for side in self.sides)

    def run(self, table: pa.Table, before: Watermarks, after: Watermarks, port: int = 0) -> tuple[Folded, LiveJoin]:
        fresh = Slab(self.fold.fresh(table, port), UNTIL, FROM)
        if self.fold.operator.sorted:
            return self._run_sorted(fresh, before, after, port)
        met = [self._rows(fresh, port)]
        sides = [side.with_slab(fresh) if at == port else side for at, side in enumerate(self.sides)]
        if self.fold.is_left and after[1] is not None:
            met.append(self._alone(fresh if port == 0 else self.sides[0].empty, sides[1], before[1], after[1]))
        limits = self._limits(sides[0], after)
        kept = [keep_open(side, fresh if at == port else side.empty, limits[at]) for at, side in enumerate(self.sides)]
        appended, dropped, rows = zip(*kept, strict=True)
        return Folded(pa.concat_tables(met), appended, dropped), LiveJoin(self.fold, rows)

    def _run_sorted(self, fresh: Slab, before: Watermarks, after: Watermarks, port: int) -> tuple[Folded, LiveJoin]:
        """Remembers the new tuples, and gives out all rows whose time has passed at all inputs, in its order."""
        sides = tuple(side.with_slab(fresh) if at == port else side for at, side in enumerate(self.sides))
        low, was = earliest(after), earliest(before)
        output = self.fold.whole.empty_table()
        if low is not None and low != was:
            output = LiveJoin(self.fold, sides)._decided(was, low)
        kept = [keep_open(side, fresh if at == port else side.empty, low) for at, side in enumerate(self.sides)]
        appended, dropped, rows = zip(*kept, strict=True)
        return Folded(output, appended, dropped), LiveJoin(self.fold, rows)

    def _decided(self, was: int | None, low: int) -> pa.Table:
        """The rows of tuples that end in ``(was, low]``: first by time, then by the places of their tuples."""
        first = self.sides[0]
        chosen = first.between(was, low)
        probe = Slab(first.take(chosen, first.empty.table.column_names), UNTIL, FROM)
        sides, found = self._combinations(probe, 0)
        met = list(found)
        rows = {at: np.concatenate([np.empty(0, np.int64), *(each[at] for each in met)]) for at in range(len(sides))}
        order = np.lexsort([rows[at] for at in reversed(range(len(sides)))])
        made = [self._give([side.take(rows[at][order], self._given(at)) for at, side in enumerate(sides)])]
        if self.fold.is_left:
            made.append(self._alone(first.empty, self.sides[1], was, low))
        table = pa.concat_tables(made)
        return table.take(pa.array(np.argsort(numbers(table, FROM), kind="stable")))

    def moved(self, dropped: Sequence[int], appended: Sequence[pa.Table]) -> LiveJoin:
        return LiveJoin(self.fold, tuple(map(StateRows.moved, self.sides, dropped, appended)))

    def gathered(self, number: int) -> tuple[pa.Table, LiveJoin]:
        return self.sides[number].table(), self

    def _rows(self, fresh: Slab, port: int) -> pa.Table:
        """The rows that the new tuples of one input make with the remembered tuples of the others."""
        made = [self.fold.whole.empty_table()]
        sides, found = self._combinations(fresh, port)
        for chosen in found:
            made.append(self._give([side.take(chosen[at], self._given(at)) for at, side in enumerate(sides)]))
        return pa.concat_tables(made)

    def _combinations(self, fresh: Slab, port: int) -> tuple[list[StateRows], Iterator[dict[int, Ints]]]:
        """The tuples of all inputs, those of one input only the given ones; and which of them meet, some at a time."""
        sides = [StateRows(side.empty, (fresh,)) if at == port else side for at, side in enumerate(self.sides)]

        def found() -> Iterator[dict[int, Ints]]:
            if not len(fresh) or not all(map(len, sides)):
                return
            met = Met({port: np.arange(len(fresh))}, fresh)
            *between, last = self._way(port)
            for side in between:
                met = self._meet(met, sides[side], side)
            for own, other in _checked(pairs(met.slab, sides[last], self._common(met, last))):
                yield {side: each[own] for side, each in met.rows.items()} | {last: other}

        return sides, found()

    def _way(self, port: int) -> list[int]:
        """The order in which tuples of an input meet the others: inputs with a common key first, then small ones."""
        keys = self.fold.keys
        way, left, known = [], set(range(len(keys))) - {port}, set(keys[port])
        while left:
            side = min(left, key=lambda side: (known.isdisjoint(keys[side]), len(self.sides[side]), side))
            way.append(side)
            left.remove(side)
            known |= keys[side].keys()
        return way

    def _common(self, met: Met, side: int) -> Keys:
        return tuple(key for key in self.fold.keys[side] if key in met.slab.table.column_names)

    def _meet(self, met: Met, others: StateRows, side: int) -> Met:
        """The combinations so far, each with the tuples of one more input that it meets."""
        own, other = _together(_checked(pairs(met.slab, others, self._common(met, side))))
        mine, keys = met.slab.table.take(pa.array(own)), tuple(self.fold.keys[side])
        theirs = others.take(other, (*keys, FROM, UNTIL))
        columns = {
            FROM: np.maximum(numbers(mine, FROM), numbers(theirs, FROM)),
            UNTIL: np.minimum(numbers(mine, UNTIL), numbers(theirs, UNTIL)),
        }
        columns |= {key: theirs.column(key) for key in keys}
        columns |= {key: mine.column(key) for key in mine.column_names if key in self.fold.kinds}
        rows = {at: each[own] for at, each in met.rows.items()} | {side: other}
        return Met(rows, Slab(pa.table(columns), UNTIL, FROM))

    def _given(self, side: int) -> tuple[str, ...]:
        return (*dict.fromkeys(column for _, port, column in self.fold.given if port == side), *_TIMES)

    def _give(self, sides: Sequence[pa.Table]) -> pa.Table:
        """The output rows that corresponding rows of all sides make."""
        columns = [sides[port].column(column) for _, port, column in self.fold.given]
        for name, choose in zip(_TIMES, (np.maximum, np.minimum, np.maximum), strict=True):
            columns.append(arrow(reduce(choose, [numbers(side, name) for side in sides]), pa.int64()))
        return pa.Table.from_arrays(columns, schema=self.fold.whole)

    def _alone(self, fresh: Slab, rights: StateRows, before: int | None, after: int) -> pa.Table:
        """Left tuples without a match whose last possible partner has now passed."""
        old, names = self.sides[0], (*self.fold.keys[0], *self._given(0))
        # The earlier watermark decided the remembered tuples up to it, but none of the new ones.
        decided = [old.take(old.between(before, after), names), select(fresh.table.select(names), fresh.ends <= after)]
        lefts = Slab(pa.concat_tables(decided), UNTIL, FROM)
        alone = select(lefts.table, ~partnered(lefts, rights, tuple(self.fold.keys[0])))
        columns = [
            alone.column(column) if port == 0 else pa.nulls(len(alone), self.fold.whole.field(name).type)
            for name, port, column in self.fold.given
        ]
        return pa.Table.from_arrays([*columns, *(alone.column(name) for name in _TIMES)], schema=self.fold.whole)

    def _limits(self, lefts: StateRows, after: Watermarks) -> list[int | None]:
        """For each side the time after which a tuple must be valid so that a later tuple may meet it; None: any."""
        limits = [earliest([*after[:side], *after[side + 1 :]]) for side in range(len(self.sides))]
        if self.fold.is_left and limits[1] is not None:
            # A right tuple is also needed to decide about left tuples that may have met it.
            starts = (slab.earliest_open(limits[0]) for slab in lefts.slabs)
            limits[1] = min([limits[1], *(start for start in starts if start is not None)])
        return limits


def _checked(found: Iterable[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Ints]]:
    """Pairs in larger batches. More of them than a query may give out are refused before they fill the memory."""
    batch: list[tuple[Ints, Ints]] = []
    rows = size = 0
    for pair in found:
        batch.append(pair)
        size += len(pair[0])
        rows += len(pair[0])
        check_rows(rows)
        if size >= CHUNK:
            yield _together(batch)
            batch, size = [], 0
    if batch:
        yield _together(batch)


def _together(batches: Iterable[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    own, other = zip((np.empty(0, np.int64),) * 2, *batches, strict=True)
    return np.concatenate(own), np.concatenate(other)
