"""Joins: each input remembers its tuples for the other one.

New tuples of an input meet the remembered ones of the other and are remembered in turn, so that each pair comes exactly
once (the symmetric hash join of A. N. Wilschut and P. M. G. Apers, "Dataflow query execution in a parallel main-memory
environment", 1991, over sorted runs). What is remembered is bounded by watermarks: a tuple whose validity has
passed on the other side meets nobody any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import arrow, flat, select
from freshet.kernels.folds.folded import Folded, Watermarks
from freshet.kernels.folds.groups import canonical, check_key
from freshet.kernels.folds.key_types import key_type
from freshet.kernels.folds.matching import pairs, partnered
from freshet.kernels.folds.pane_stream import numbers
from freshet.kernels.folds.times import check_time, spans
from freshet.kernels.folds.upkeep import keep_up
from freshet.kernels.superbox.allowance import check_rows
from freshet.model import ARRIVAL, Join
from freshet.model.operators import FROM, UNTIL

_INT: Final = pa.int64()
Port = Literal[0, 1]


class CompiledJoin:
    """A :class:`~freshet.model.Join` for tuples of the schemas of both inputs.

    The state streams are the remembered left and right tuples. They, and new tuples, have the keys in the type in which
    they are compared, the columns that are given out, :data:`FROM`, :data:`UNTIL` and the arrival.
    """

    def __init__(self, operator: Join, left: pa.Schema, right: pa.Schema) -> None:
        inputs = (left, right)
        for port in (0, 1):
            check_time(inputs[port], operator.validity[port].time)
            for key in operator.keys[port]:
                check_key(inputs[port], key)
        self._operator: Final = operator
        kinds = [
            key_type(inputs[0].field(left).type, inputs[1].field(right).type)
            for left, right in zip(*operator.keys, strict=True)
        ]
        self.key_names: Final = tuple(f"key_{place}" for place in range(len(kinds)))
        """Columns of the states that must be equal."""
        self._columns: Final = tuple(
            tuple(dict.fromkeys(name for _, side, name in operator.columns if side == port)) for port in (0, 1)
        )
        self.states: Final = tuple(self._schema(kinds, self._columns[port], inputs[port]) for port in (0, 1))
        given = [pa.field(name, inputs[port].field(column).type) for name, port, column in operator.columns]
        self.output: Final = pa.schema([*given, pa.field(FROM, _INT), pa.field(UNTIL, _INT)])
        self.whole: Final = self.output.append(pa.field(ARRIVAL, _INT))
        """What it gives out, with the arrival."""

    @property
    def given(self) -> list[tuple[str, Port, str]]:
        """Columns that it gives out, each with the side and the column of that side's state that it comes from."""
        return [(name, port, self._place(port, column)) for name, port, column in self._operator.columns]

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        fresh = self.fresh(table, port)
        met = [self._pairs(fresh, states[1 - port], port)] if fresh.num_rows else []
        sides = [_both(states[side], fresh) if side == port else states[side] for side in (0, 1)]
        if self._operator.kind == "left":
            met.append(self._alone(sides, len(states[0]), before[1], after[1]))
        live = self._live(sides, after)
        kept = []
        for side in (0, 1):
            old, alive = len(states[side]), live[side]
            new = sides[side].slice(old)
            if alive is None:
                kept.append(keep_up(states[side], None, new))
            else:
                kept.append(keep_up(states[side], alive[:old], select(new, alive[old:])))
        appended, dropped = zip(*kept, strict=True)
        return Folded(pa.concat_tables([self.whole.empty_table(), *met]), appended, dropped)

    def merged(self, number: int, rows: pa.Table) -> pa.Table:
        return rows

    def due(self, states_nonempty: bool, before: Watermarks, after: Watermarks) -> bool:
        later = after[1] is not None and (before[1] is None or after[1] > before[1])
        return self._operator.kind == "left" and states_nonempty and later

    def _schema(self, kinds: Sequence[pa.DataType], columns: Sequence[str], schema: pa.Schema) -> pa.Schema:
        fields = [pa.field(name, kind) for name, kind in zip(self.key_names, kinds, strict=True)]
        fields += [pa.field(f"column_{place}", schema.field(name).type) for place, name in enumerate(columns)]
        return pa.schema([*fields, *(pa.field(name, _INT) for name in (FROM, UNTIL, ARRIVAL))])

    def fresh(self, table: pa.Table, port: int) -> pa.Table:
        """New tuples of an input as they are remembered: those that are valid at some time and, but for the left input
        of a left join, have keys."""
        start, end, known = spans(table, self._operator.validity[port])
        keep: Mask = start < end if known is None else (start < end) & known
        keys = []
        for name, key in zip(self._operator.keys[port], self.key_names, strict=True):
            keys.append(canonical(flat(table, name).cast(self.states[port].field(key).type, safe=False)))
            if keys[-1].null_count and (self._operator.kind == "inner" or port == 1):
                keep = keep & keys[-1].is_valid().to_numpy(zero_copy_only=False)
        columns = [flat(table, name) for name in self._columns[port]]
        times = [arrow(start, _INT), arrow(end, _INT), flat(table, ARRIVAL)]
        return select(pa.Table.from_arrays([*keys, *columns, *times], schema=self.states[port]), keep)

    def _pairs(self, fresh: pa.Table, others: pa.Table, port: int) -> pa.Table:
        """The new tuples with the remembered ones of the other input."""
        made, rows = [self.whole.empty_table()], 0
        keyless = (fresh.drop_columns(self.key_names), others.drop_columns(self.key_names))
        for own, other in pairs(fresh, others, self.key_names):
            rows += len(own)
            check_rows(rows)
            sides = (keyless[0].take(pa.array(own)), keyless[1].take(pa.array(other)))
            made.append(self._give(sides if port == 0 else sides[::-1]))
        return pa.concat_tables(made)

    def _give(self, sides: Sequence[pa.Table]) -> pa.Table:
        """Rows of the left and of the right side, in pairs."""
        columns = [sides[port].column(self._place(port, name)) for _, port, name in self._operator.columns]
        for name, choose in ((FROM, np.maximum), (UNTIL, np.minimum), (ARRIVAL, np.maximum)):
            columns.append(arrow(choose(numbers(sides[0], name), numbers(sides[1], name)), _INT))
        return pa.Table.from_arrays(columns, schema=self.whole)

    def _alone(self, sides: Sequence[pa.Table], old: int, before: int | None, after: int | None) -> pa.Table:
        """Left tuples without a match whose last possible partner has now passed."""
        if after is None:
            return self.whole.empty_table()
        until = numbers(sides[0], UNTIL)
        decided = until <= after
        if before is not None:
            # Those remembered from before have been decided then; new ones have not.
            decided[:old] &= until[:old] > before
        lefts = select(sides[0], decided)
        lefts = select(lefts, ~partnered(lefts, sides[1], self.key_names))
        columns = [
            lefts.column(self._place(0, name)) if port == 0 else pa.nulls(len(lefts), self.whole.field(given).type)
            for given, port, name in self._operator.columns
        ]
        columns += [lefts.column(name) for name in (FROM, UNTIL, ARRIVAL)]
        return pa.Table.from_arrays(columns, schema=self.whole)

    def _place(self, port: int, column: str) -> str:
        return f"column_{self._columns[port].index(column)}"

    def _live(self, sides: Sequence[pa.Table], after: Watermarks) -> list[Mask | None]:
        """Which tuples of each side a later tuple of the other one may meet; None: all."""
        ends = [numbers(side, UNTIL) for side in sides]
        live: list[Mask | None] = [
            None if (limit := after[1 - side]) is None else ends[side] > limit for side in (0, 1)
        ]
        if self._operator.kind == "left" and live[1] is not None:
            # A right tuple is also needed to decide about the left ones that may have met it.
            starts = numbers(sides[0], FROM) if live[0] is None else numbers(sides[0], FROM)[live[0]]
            if len(starts):
                live[1] = live[1] | (ends[1] > starts.min())
        return live


def _both(state: pa.Table, fresh: pa.Table) -> pa.Table:
    return pa.concat_tables([state, fresh]) if fresh.num_rows else state
