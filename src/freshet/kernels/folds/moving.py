"""Aggregates for each tuple over the tuples before it.

All kinds of windows work the same way. Tuples of a group have a *place*: the event time, or the number of the tuple in
its partition. A tuple sees the tuples with a place in ``(place - size, place]`` that came no later than it did. Sorted
by group, place and offset, these tuples form a range that ends with the tuple itself. The range may contain tuples that
came later, which it does not see; if nothing is late, there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.aggregates.calls import Calls, Wanted
from freshet.kernels.folds.arrays import Ints, arrow, flat, select, take
from freshet.kernels.folds.folded import Folded, LiveFold, Watermarks
from freshet.kernels.folds.groups import check_key, encode_groups
from freshet.kernels.folds.held import HeldTables
from freshet.kernels.folds.moving_details import distinct, quantiles
from freshet.kernels.folds.sorting import Runs, running_maximum, sort_rows, stable_order
from freshet.kernels.folds.states.slab import Keys, Slab
from freshet.kernels.folds.states.state_rows import StateRows
from freshet.kernels.folds.states.upkeep import keep_live, keep_open
from freshet.kernels.folds.times import check_time, earliest, micros
from freshet.kernels.folds.windows import Windows
from freshet.model import ARRIVAL, Moving

_TIME: Final = "__time"


class CompiledMoving:
    """A :class:`~freshet.model.Moving` with a size or a number of rows, for tuples of a schema."""

    def __init__(self, operator: Moving, schema: pa.Schema) -> None:
        check_time(schema, operator.time)
        self.operator: Final = operator
        self._calls: Final = Calls(operator.calls, schema)
        for key in (*operator.keys, *operator.partition):
            check_key(schema, key)
        arguments = [call.column for call in operator.calls if call.column is not None]
        self._columns: Final = tuple(dict.fromkeys([*operator.keys, *operator.partition, *arguments]))
        carried = [pa.field(name, schema.field(name).type) for name in operator.carried]
        self.output: Final = pa.schema([*carried, *self._calls.fields])
        kept = [pa.field(f"column_{place}", schema.field(name).type) for place, name in enumerate(self._columns)]
        self.states: Final = (pa.schema([*kept, pa.field(_TIME, pa.int64()), pa.field(ARRIVAL, pa.int64())]),)
        self._whole: Final = self.output.append(pa.field(ARRIVAL, pa.int64()))

    @property
    def state_keys(self) -> tuple[str, ...]:
        return tuple(f"column_{self._columns.index(key)}" for keys in self.operator.split_keys for key in keys)

    def live(self, states: Sequence[pa.Table]) -> LiveFold:
        if self.operator.rows is not None:
            return HeldTables(self, tuple(states))
        return LiveMoving(self, StateRows.of(states[0], _TIME))

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        """Folds tuples into windows of ROWS: how many tuples came after a tuple decides whether it is needed."""
        [state] = states
        table, fresh = self.fresh(table)
        output, errors = self.answers(table, state, fresh)
        appended, dropped = keep_live(state, fresh, self._live(pa.concat_tables([state, fresh])))
        return Folded(output, (appended,), (dropped,), errors)

    @property
    def groups(self) -> Keys:
        """Columns of the state by which tuples are grouped."""
        return tuple(f"column_{self._columns.index(key)}" for key in self.operator.keys)

    def answered(self, table: pa.Table) -> pa.Table:
        """The tuples that have a time; windows of ROWS need none."""
        _, known = micros(table, self.operator.time)
        return table if known is None or self.operator.rows is not None else select(table, known)

    def fresh(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The tuples that have a time, and the same as rows of the state."""
        table = self.answered(table)
        times, _ = micros(table, self.operator.time)
        columns = [flat(table, name) for name in self._columns]
        columns += [arrow(times, pa.int64()), flat(table, ARRIVAL)]
        return table, pa.Table.from_arrays(columns, schema=self.states[0])

    def answers(self, table: pa.Table, state: pa.Table, fresh: pa.Table) -> tuple[pa.Table, int]:
        """The answer for each new tuple, from the tuples that it sees; also the number of errors."""
        if not fresh.num_rows:
            return self._whole.empty_table(), 0
        rows, old = pa.concat_tables([state, fresh]), state.num_rows
        columns = {name: flat(rows, f"column_{place}") for place, name in enumerate(self._columns)}
        order, codes, new, windows = self._windows(rows, columns, old)
        index = pa.array(order)
        columns = {name: column.take(index) for name, column in columns.items()}
        arrivals = flat(rows, ARRIVAL)
        lifted = [p.lift(columns[p.column] if p.column else arrivals) for p in self._calls.partials]
        found = windows.reduce(self._calls.partials, lifted)
        results, errors = self._calls.finish(found, self._detailed(columns, codes, windows))
        back = np.empty(len(new), np.int64)
        back[new - old] = np.arange(len(new))
        results = [take(result, back) for result in results]
        carried = [flat(table, name) for name in self.operator.carried]
        return pa.Table.from_arrays([*carried, *results, flat(table, ARRIVAL)], schema=self._whole), errors

    def _windows(self, rows: pa.Table, columns: dict[str, pa.Array], old: int) -> tuple[Ints, Ints, Ints, Windows]:
        """The order of the rows; in that order their groups, the numbers of the new rows, and the windows of these."""
        names = (*self.operator.keys, *(self.operator.partition if self.operator.rows is not None else ()))
        codes, size = encode_groups([columns[name] for name in names], rows.num_rows)
        places, width = self._places(rows, columns)
        order = sort_rows(codes, size, places)
        own = np.flatnonzero(order >= old)
        new = order[own]
        begin = np.maximum(places[new], np.iinfo(np.int64).min + width) - width + 1
        codes = codes[order]
        lo = Runs(codes, size, places[order]).first(codes[own], begin)
        latest = running_maximum(codes, size, order)
        if np.array_equal(latest, order):
            return order, codes, new, Windows(lo, own + 1, own + 1)
        mid = np.clip(Runs(codes, size, latest).first(codes[own], new + 1), lo, own + 1)
        return order, codes, new, Windows(lo, mid, own + 1, lambda index, ids: order[index] <= new[ids])

    def _places(self, rows: pa.Table, columns: dict[str, pa.Array]) -> tuple[Ints, int]:
        if self.operator.rows is None:
            return micros(rows, _TIME)[0], self.operator.size or 0
        return self._numbers(columns, rows.num_rows, False), self.operator.rows

    def _numbers(self, columns: dict[str, pa.Array], count: int, from_end: bool) -> Ints:
        """The number of each tuple within its partition."""
        partition = [columns[name] for name in self.operator.partition]
        codes, size = encode_groups(partition, count)
        order = stable_order(codes, size)
        sizes = np.bincount(codes, minlength=size)
        ends = np.cumsum(sizes)
        numbers = np.empty(count, np.int64)
        numbers[order] = np.arange(count) - (ends - sizes)[codes[order]]
        return sizes[codes] - 1 - numbers if from_end else numbers

    def _detailed(self, columns: dict[str, pa.Array], codes: Ints, windows: Windows) -> dict[Wanted, Ints]:
        found: dict[Wanted, Ints] = {}
        for detail in self._calls.details:
            shares = [share for wanted, share in self._calls.wanted if wanted == detail]
            values = columns[detail.column]
            if detail.what == "values":
                answers = [distinct(values, codes, windows)]
            else:
                answers = quantiles(values, windows, shares)
            found |= {(detail, share): answer for share, answer in zip(shares, answers, strict=True)}
        return found

    def _live(self, rows: pa.Table) -> Mask:
        """The tuples that a later one may still see."""
        columns = {name: flat(rows, f"column_{place}") for place, name in enumerate(self._columns)}
        live: Mask = self._numbers(columns, rows.num_rows, True) < (self.operator.rows or 0) - 1
        return live


@dataclass(frozen=True)
class LiveMoving:
    """Moving aggregates over a time, with the tuples that they remember, indexed by group.

    Args:
        fold: The aggregates.
        state: The remembered tuples.
    """

    fold: CompiledMoving
    state: StateRows

    @property
    def rows(self) -> int:
        return len(self.state)

    @property
    def nbytes(self) -> int:
        return self.state.nbytes

    def run(self, table: pa.Table, before: Watermarks, after: Watermarks, port: int = 0) -> tuple[Folded, LiveMoving]:
        table, rows = self.fold.fresh(table)
        fresh = Slab(rows, _TIME)
        # A tuple sees only those of its own group.
        seen = self.state.take(self.state.alike(fresh, self.fold.groups), rows.column_names)
        output, errors = self.fold.answers(table, seen, fresh.table)
        watermark = earliest(after)
        limit = None if watermark is None else watermark - (self.fold.operator.size or 0)
        kept = keep_open(self.state, fresh, limit)
        return Folded(output, (kept.appended,), (kept.dropped,), errors), LiveMoving(self.fold, kept.rows)

    def moved(self, dropped: Sequence[int], appended: Sequence[pa.Table]) -> LiveMoving:
        return LiveMoving(self.fold, self.state.moved(dropped[0], appended[0]))

    def gathered(self, number: int) -> tuple[pa.Table, LiveMoving]:
        return self.state.table(), self
