"""Aggregates for each tuple over the tuples before it.

All kinds of windows work the same way. Tuples of a group have a *place*: the event time, or the number of the tuple in
its partition. A tuple sees the tuples with a place in ``(place - size, place]`` that came no later than it did. Sorted
by group, place and offset, these tuples form a range that ends with the tuple itself. The range may contain tuples that
came later, which it does not see; if nothing is late, there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import Ints, arrow, flat, select, take
from freshet.kernels.folds.calls import Calls, Wanted
from freshet.kernels.folds.folded import Folded, Watermarks
from freshet.kernels.folds.groups import check_key, encode_groups
from freshet.kernels.folds.moving_details import distinct, quantiles
from freshet.kernels.folds.sorting import Runs, running_maximum, sort_rows, stable_order
from freshet.kernels.folds.times import check_time, earliest, micros
from freshet.kernels.folds.upkeep import keep_live
from freshet.kernels.folds.windows import Windows
from freshet.model import ARRIVAL, Moving

_TIME: Final = "__time"


class CompiledMoving:
    """A :class:`~freshet.model.Moving` with a size or a number of rows, for tuples of a schema."""

    def __init__(self, operator: Moving, schema: pa.Schema) -> None:
        check_time(schema, operator.time)
        self._operator: Final = operator
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

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        [state] = states
        table, fresh = self._fresh(table)
        rows = pa.concat_tables([state, fresh])
        output, errors = self._whole.empty_table(), 0
        if fresh.num_rows:
            output, errors = self._answers(table, rows, state.num_rows)
        appended, dropped = keep_live(state, fresh, self._live(rows, after))
        return Folded(output, (appended,), (dropped,), errors)

    def merged(self, number: int, rows: pa.Table) -> pa.Table:
        return rows

    def _fresh(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The tuples that have a time, and the same as rows of the state."""
        times, known = micros(table, self._operator.time)
        if self._operator.rows is not None:
            known = None
        elif known is not None:
            table, times = select(table, known), times[known]
        columns = [flat(table, name) for name in self._columns]
        columns += [arrow(times, pa.int64()), flat(table, ARRIVAL)]
        return table, pa.Table.from_arrays(columns, schema=self.states[0])

    def _answers(self, table: pa.Table, rows: pa.Table, old: int) -> tuple[pa.Table, int]:
        """The answer for each new tuple, from the remembered and the new ones that it sees."""
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
        carried = [flat(table, name) for name in self._operator.carried]
        return pa.Table.from_arrays([*carried, *results, flat(table, ARRIVAL)], schema=self._whole), errors

    def _windows(self, rows: pa.Table, columns: dict[str, pa.Array], old: int) -> tuple[Ints, Ints, Ints, Windows]:
        """The order of the rows; in that order their groups, the numbers of the new rows, and the windows of these."""
        names = (*self._operator.keys, *(self._operator.partition if self._operator.rows is not None else ()))
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
        if self._operator.rows is None:
            return micros(rows, _TIME)[0], self._operator.size or 0
        return self._numbers(columns, rows.num_rows, False), self._operator.rows

    def _numbers(self, columns: dict[str, pa.Array], count: int, from_end: bool) -> Ints:
        """The number of each tuple within its partition."""
        partition = [columns[name] for name in self._operator.partition]
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

    def _live(self, rows: pa.Table, after: Watermarks) -> Mask | None:
        """The tuples that a later one may still see; None: all."""
        if self._operator.rows is not None:
            columns = {name: flat(rows, f"column_{place}") for place, name in enumerate(self._columns)}
            live: Mask = self._numbers(columns, rows.num_rows, True) < self._operator.rows - 1
            return live
        watermark = earliest(after)
        if watermark is None:
            return None
        alive: Mask = micros(rows, _TIME)[0] > watermark - (self._operator.size or 0)
        return alive
