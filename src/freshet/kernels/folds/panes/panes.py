"""Aggregates at boundaries, from panes that are merged and never recomputed.

Panes are as in J. Li et al., "No pane, no gain: efficient evaluation of sliding-window aggregates over data streams",
SIGMOD Record 34(1), 2005, except that they are not cut at fixed places: a pane is all tuples with the same boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask, both
from freshet.kernels.folds.aggregates.calls import Calls, Wanted
from freshet.kernels.folds.arrays import Ints, arrow, flat, join, select, take
from freshet.kernels.folds.folded import Folded, Watermarks
from freshet.kernels.folds.groups import canonical, check_key, encode_groups, examples
from freshet.kernels.folds.panes.boundaries import Places, SortedPanes
from freshet.kernels.folds.panes.details import pane_detail
from freshet.kernels.folds.panes.rows import PaneRows
from freshet.kernels.folds.panes.stream import FIRST, LAST, PaneStream, numbers
from freshet.kernels.folds.states.slab import Slab
from freshet.kernels.folds.states.state_rows import StateRows
from freshet.kernels.folds.states.upkeep import keep_open
from freshet.kernels.folds.times import check_time, earliest, ends, micros, time_type
from freshet.model import ARRIVAL, Panes
from freshet.model.operators import WINDOW_END, WINDOW_START


class CompiledPanes:
    """A :class:`~freshet.model.Panes` for tuples of a schema; see :func:`~freshet.kernels.folds.compile_fold`."""

    def __init__(self, operator: Panes, schema: pa.Schema) -> None:
        check_time(schema, operator.validity.time)
        for key in operator.keys:
            check_key(schema, key)
        self.operator: Final = operator
        self._calls: Final = Calls(operator.calls, schema)
        kinds = [schema.field(key).type for key in operator.keys]
        self._panes: Final = PaneStream(kinds, self._calls.partials)
        self.partials: Final = self._panes.partials
        """What is kept of the tuples of a pane, the greatest arrival last."""
        self.details: Final = tuple(pane_detail(detail, kinds, schema) for detail in self._calls.details)
        """What is kept in state streams of its own: distinct values, and the buckets of quantiles."""
        self._streams: Final = (self._panes, *(detail.stream for detail in self.details))
        self._time: Final = time_type(schema, operator.validity.time)
        keys = [pa.field(key, kind) for key, kind in zip(operator.keys, kinds, strict=True)]
        ends = [pa.field(WINDOW_START, self._time), pa.field(WINDOW_END, self._time)]
        self.output: Final = pa.schema([*keys, *self._calls.fields, *ends])
        self.states: Final = tuple(stream.schema for stream in self._streams)
        self._whole: Final = self.output.append(pa.field(ARRIVAL, pa.int64()))

    @property
    def state_keys(self) -> tuple[str, ...]:
        return self._panes.keys

    def live(self, states: Sequence[pa.Table]) -> LivePanes:
        return LivePanes(self, tuple(StateRows.of(state, LAST) for state in states))

    def run_rows(
        self, rows: Sequence[PaneRows], states: Sequence[StateRows], before: Watermarks, after: Watermarks
    ) -> tuple[Folded, LivePanes]:
        """Folds rows for each state stream in; a row may stand for many tuples."""
        done, closed = self._closed(before), self._closed(after)
        fresh = [Slab(self._fresh(*each, done), LAST) for each in zip(self._streams, rows, strict=True)]
        output, errors = self._whole.empty_table(), 0
        closes = _is_later(closed, done)
        early = self.operator.emit == "changes" and len(fresh[0]) > 0
        if closes or early:
            known = [state.table() if closes else self._touched(state, fresh[0]) for state in states]
            output, errors = self._emit(known, [each.table for each in fresh], done, closed if closes else done, early)
        kept = [
            keep_open(state, new, closed, stream.compact)
            for stream, state, new in zip(self._streams, states, fresh, strict=True)
        ]
        appended, dropped, later = zip(*kept, strict=True)
        return Folded(output, appended, dropped, errors), LivePanes(self, later)

    def merged(self, number: int, rows: pa.Table) -> pa.Table:
        """The rows of a state stream, merged as far as possible."""
        merged = self._streams[number].compact(rows, True)
        assert merged is not None
        return merged

    def _touched(self, state: StateRows, fresh: Slab) -> pa.Table:
        """The panes of the groups of new ones, and seldom a few others."""
        return state.take(state.alike(fresh, self._panes.keys), state.empty.table.column_names)

    def _closed(self, watermarks: Watermarks) -> int | None:
        """The last boundary that has passed."""
        watermark = earliest(watermarks)
        return None if watermark is None else (watermark - self.operator.offset) // self.operator.slide

    def rows(self, table: pa.Table) -> list[PaneRows]:
        """The tuples as rows for each state stream."""
        start, known = micros(table, self.operator.validity.time)
        until = None
        if self.operator.validity.size is None:
            until, ends = micros(table, self.operator.validity.until)
            known = both(known, ends)
        if known is not None and not known.all():
            table, start = select(table, known), start[known]
            until = None if until is None else until[known]
        keys = [canonical(flat(table, key)) for key in self.operator.keys]
        lifted = [partial.lift(flat(table, partial.column or ARRIVAL)) for partial in self.partials]
        tuples = PaneRows(start, until, keys, lifted)
        return [tuples, *(detail.rows(table, start, until, keys) for detail in self.details)]

    def _fresh(self, stream: PaneStream, rows: PaneRows, done: int | None) -> pa.Table:
        """The panes of new rows."""
        slide, offset = self.operator.slide, self.operator.offset
        first, last = (rows.start - offset) // slide + 1, (self._ends_of(rows) - offset) // slide
        counts: Mask = first <= last
        if done is not None:
            counts &= last > done
        if not counts.all():
            rows, first, last = rows.select(counts), first[counts], last[counts]
        return stream.make(first, last, rows.keys, rows.partials)

    def _ends_of(self, rows: PaneRows) -> Ints:
        size = self.operator.validity.size
        if size is not None:
            return ends(rows.start, size)
        assert rows.until is not None
        return rows.until

    def _emit(
        self, states: Sequence[pa.Table], fresh: Sequence[pa.Table], done: int | None, closed: int | None, early: bool
    ) -> tuple[pa.Table, int]:
        """The answers at the boundaries that closed and, if early, at later boundaries of new tuples."""
        until = None if early else closed
        panes = [_within(pair, done, until) for pair in zip(states, fresh, strict=True)]
        if not panes[0].num_rows:
            return self._whole.empty_table(), 0
        codes, size, keys = self._groups(panes)
        order = SortedPanes(codes[0], size, numbers(panes[0], FIRST), numbers(panes[0], LAST))
        places = order.places(done, closed) if closed != done else Places(codes[0][:0], codes[0][:0])
        if early:
            new = np.arange(len(codes[0])) >= len(codes[0]) - int(_counting(fresh[0], done, until).sum())
            places = Places(*map(np.concatenate, zip(places, order.places(closed, None, new), strict=True)))
        rows = [loaded.take(order.order) for loaded in self._panes.load(panes[0])]
        found = order.windows(places).reduce(self._panes.partials, rows)
        results, errors = self._calls.finish(found, self._detailed(panes[1:], codes[1:], size, places))
        one = examples(codes[0], size)[places.codes]
        columns = [*(take(key, one) for key in keys), *results, *self._ends(places.boundaries)]
        columns.append(arrow(found[-1].arrays[0], pa.int64()))
        output = pa.Table.from_arrays(columns, schema=self._whole)
        return output.take(pa.array(np.argsort(places.boundaries, kind="stable"))), errors

    def _detailed(
        self, panes: Sequence[pa.Table], codes: Sequence[Ints], size: int, places: Places
    ) -> dict[Wanted, Ints]:
        found: dict[Wanted, Ints] = {}
        for detail, some, code in zip(self.details, panes, codes, strict=True):
            shares = [share for wanted, share in self._calls.wanted if wanted == detail.detail]
            answers = detail.answer(some, code, size, places, shares)
            found |= {(detail.detail, share): answer for share, answer in zip(shares, answers, strict=True)}
        return found

    def _groups(self, panes: Sequence[pa.Table]) -> tuple[list[Ints], int, list[pa.Array]]:
        """Group numbers of all streams' panes, an upper bound of them, and the keys of the first stream's panes."""
        keys = [[flat(some, name) for name in self._panes.keys] for some in panes]
        counts = [some.num_rows for some in panes]
        codes, size = encode_groups([join(columns) for columns in zip(*keys, strict=True)], sum(counts))
        return np.split(codes, np.cumsum(counts)[:-1]), size, keys[0]

    def _ends(self, boundaries: Ints) -> list[pa.Array]:
        times, size = boundaries * self.operator.slide + self.operator.offset, self.operator.validity.size
        start = pa.nulls(len(times), self._time) if size is None else arrow(times - size, self._time)
        return [start, arrow(times, self._time)]


@dataclass(frozen=True)
class LivePanes:
    """Aggregates at boundaries with the panes that they remember.

    Args:
        fold: The aggregates.
        states: The panes of each state stream.
    """

    fold: CompiledPanes
    states: tuple[StateRows, ...]

    @property
    def rows(self) -> int:
        return sum(map(len, self.states))

    @property
    def nbytes(self) -> int:
        return sum(state.nbytes for state in self.states)

    def run(self, table: pa.Table, before: Watermarks, after: Watermarks, port: int = 0) -> tuple[Folded, LivePanes]:
        return self.run_rows(self.fold.rows(table), before, after)

    def run_rows(self, rows: Sequence[PaneRows], before: Watermarks, after: Watermarks) -> tuple[Folded, LivePanes]:
        """The same with rows that were made of tuples before."""
        return self.fold.run_rows(rows, self.states, before, after)

    def moved(self, dropped: Sequence[int], appended: Sequence[pa.Table]) -> LivePanes:
        return LivePanes(self.fold, tuple(map(StateRows.moved, self.states, dropped, appended)))

    def gathered(self, number: int) -> tuple[pa.Table, LivePanes]:
        state = self.states[number]
        merged = self.fold.merged(number, state.table()) if len(state) else state.empty.table
        states = (*self.states[:number], state.replaced(merged), *self.states[number + 1 :])
        return merged, LivePanes(self.fold, states)


def _is_later(one: int | None, other: int | None) -> bool:
    return one is not None and (other is None or one > other)


def _counting(panes: pa.Table, done: int | None, until: int | None) -> Mask:
    keep: Mask = np.ones(panes.num_rows, np.bool_)
    if done is not None:
        keep &= numbers(panes, LAST) > done
    if until is not None:
        keep &= numbers(panes, FIRST) <= until
    return keep


def _within(tables: Sequence[pa.Table], done: int | None, until: int | None) -> pa.Table:
    """The panes that count at a boundary in ``(done, until]``."""
    return pa.concat_tables([select(table, _counting(table, done, until)) for table in tables])
