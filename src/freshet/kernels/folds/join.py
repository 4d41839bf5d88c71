"""Joins: each input remembers its tuples for the others.

New tuples of an input meet the remembered tuples of all others, and are then remembered, so that each row comes exactly
once (the symmetric hash join of A. N. Wilschut and P. M. G. Apers, "Dataflow query execution in a parallel main-memory
environment", 1991, over sorted runs; for more than two inputs the MJoin of S. D. Viglas, J. F. Naughton and J. Burger,
"Maximizing the output rate of multi-way join queries over streaming information sources", 2003). Watermarks bound the
state: a tuple whose validity has passed at all other inputs can meet no new tuple. Partial rows of only some inputs are
never remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import Ints, arrow, flat, select
from freshet.kernels.folds.folded import Folded, Watermarks
from freshet.kernels.folds.groups import canonical, check_key
from freshet.kernels.folds.key_types import key_type
from freshet.kernels.folds.matching import pairs, partnered
from freshet.kernels.folds.pane_stream import numbers
from freshet.kernels.folds.times import check_time, earliest, spans
from freshet.kernels.folds.upkeep import keep_live
from freshet.kernels.superbox.allowance import check_rows
from freshet.model import ARRIVAL, Join
from freshet.model.operators import FROM, UNTIL

_INT: Final = pa.int64()


class Met(NamedTuple):
    """Combinations of tuples of some inputs that have met.

    Args:
        rows: For each of these inputs, the numbers of its tuples.
        table: Their keys, :data:`FROM` and :data:`UNTIL`.
    """

    rows: Mapping[int, Ints]
    table: pa.Table


class CompiledJoin:
    """A :class:`~freshet.model.Join` for tuples of the schemas of its inputs.

    There is a state stream for the remembered tuples of each input. Its columns are the keys, in the type in which they
    are compared, the columns that are given out, :data:`FROM`, :data:`UNTIL` and the arrival. New tuples have the same.
    """

    def __init__(self, operator: Join, *inputs: pa.Schema) -> None:
        self._operator: Final = operator
        self._ports: Final = operator.ports
        assert operator.kind == "inner" or len(self._ports) == 2, f"{operator.name} is a left join of more than two"
        for port, schema in zip(self._ports, inputs, strict=True):
            check_time(schema, operator.validity[port].time)
            for key in operator.keys[port]:
                if key is not None:
                    check_key(schema, key)
        self._kinds: Final = {
            f"key_{place}": reduce(key_type, [inputs[at].field(name).type for at, name in enumerate(names) if name])
            for place, names in enumerate(zip(*operator.keys, strict=True))
        }
        self.keys: Final = tuple(
            {key: name for key, name in zip(self._kinds, operator.keys[port], strict=True) if name is not None}
            for port in self._ports
        )
        """The key columns of each state, and the input columns that they come from. Keys of one name must be equal."""
        self._columns: Final = tuple(
            tuple(dict.fromkeys(name for _, side, name in operator.columns if side == port)) for port in self._ports
        )
        self.states: Final = tuple(self._schema(port, inputs[port]) for port in self._ports)
        given = [pa.field(name, inputs[port].field(column).type) for name, port, column in operator.columns]
        self.output: Final = pa.schema([*given, pa.field(FROM, _INT), pa.field(UNTIL, _INT)])
        self.whole: Final = self.output.append(pa.field(ARRIVAL, _INT))
        """Columns that it gives out, with the arrival."""

    @property
    def given(self) -> list[tuple[str, int, str]]:
        """Columns that it gives out, each with its side and the column of that side's state."""
        return [(name, port, self._place(port, column)) for name, port, column in self._operator.columns]

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        fresh = self.fresh(table, port)
        met = [self._rows([fresh if side == port else states[side] for side in self._ports], port)]
        sides = [_both(states[side], fresh) if side == port else states[side] for side in self._ports]
        if self._operator.kind == "left":
            met.append(self._alone(sides, len(states[0]), before[1], after[1]))
        live = self._live(sides, after)
        fresh_rows = [side.slice(len(state)) for side, state in zip(sides, states, strict=True)]
        kept = [keep_live(*each) for each in zip(states, fresh_rows, live, strict=True)]
        appended, dropped = zip(*kept, strict=True)
        return Folded(pa.concat_tables(met), appended, dropped)

    def merged(self, number: int, rows: pa.Table) -> pa.Table:
        return rows

    def _schema(self, port: int, schema: pa.Schema) -> pa.Schema:
        fields = [pa.field(key, self._kinds[key]) for key in self.keys[port]]
        columns = enumerate(self._columns[port])
        fields += [pa.field(f"column_{place}", schema.field(name).type) for place, name in columns]
        return pa.schema([*fields, *(pa.field(name, _INT) for name in (FROM, UNTIL, ARRIVAL))])

    def fresh(self, table: pa.Table, port: int) -> pa.Table:
        """New tuples of an input as they are remembered, without those that are never valid or have a NULL key. Only
        the left input of a left join keeps NULL keys."""
        start, end, known = spans(table, self._operator.validity[port])
        keep: Mask = start < end if known is None else (start < end) & known
        keys = []
        for key, name in self.keys[port].items():
            keys.append(canonical(flat(table, name).cast(self._kinds[key], safe=False)))
            if keys[-1].null_count and (self._operator.kind == "inner" or port == 1):
                keep = keep & keys[-1].is_valid().to_numpy(zero_copy_only=False)
        columns = [flat(table, name) for name in self._columns[port]]
        times = [arrow(start, _INT), arrow(end, _INT), flat(table, ARRIVAL)]
        return select(pa.Table.from_arrays([*keys, *columns, *times], schema=self.states[port]), keep)

    def _rows(self, sides: Sequence[pa.Table], port: int) -> pa.Table:
        """The rows that the new tuples of one input make with the remembered tuples of the others."""
        made, rows = [self.whole.empty_table()], 0
        if all(side.num_rows for side in sides):
            met = Met({port: np.arange(sides[port].num_rows)}, sides[port])
            *between, last = self._way(sides, port)
            for side in between:
                met = self._meet(met, sides[side], side)
            keyless = [side.drop_columns(list(keys)) for side, keys in zip(sides, self.keys, strict=True)]
            for own, other in pairs(met.table, sides[last], self._common(met.table, last)):
                rows += len(own)
                check_rows(rows)
                chosen = {side: each[own] for side, each in met.rows.items()} | {last: other}
                made.append(self._give([keyless[side].take(pa.array(chosen[side])) for side in self._ports]))
        return pa.concat_tables(made)

    def _way(self, sides: Sequence[pa.Table], port: int) -> list[int]:
        """The order in which tuples of an input meet the others: inputs with a common key first, then small ones."""
        way, left, known = [], set(self._ports) - {port}, set(self.keys[port])
        while left:
            side = min(left, key=lambda side: (known.isdisjoint(self.keys[side]), sides[side].num_rows, side))
            way.append(side)
            left.remove(side)
            known |= self.keys[side].keys()
        return way

    def _common(self, met: pa.Table, side: int) -> list[str]:
        return [key for key in self.keys[side] if key in met.column_names]

    def _meet(self, met: Met, others: pa.Table, side: int) -> Met:
        """The combinations so far, each with the tuples of one more input that it meets."""
        found: list[tuple[Ints, Ints]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        rows = 0
        for pair in pairs(met.table, others, self._common(met.table, side)):
            rows += len(pair[0])
            check_rows(rows)
            found.append(pair)
        own, other = (np.concatenate(each) for each in zip(*found, strict=True))
        columns = {
            FROM: np.maximum(numbers(met.table, FROM)[own], numbers(others, FROM)[other]),
            UNTIL: np.minimum(numbers(met.table, UNTIL)[own], numbers(others, UNTIL)[other]),
        }
        for table, chosen in ((others, other), (met.table, own)):
            columns |= {
                key: table.column(key).take(pa.array(chosen)) for key in self._kinds if key in table.column_names
            }
        return Met({at: each[own] for at, each in met.rows.items()} | {side: other}, pa.table(columns))

    def _give(self, sides: Sequence[pa.Table]) -> pa.Table:
        """The output rows that corresponding rows of all sides make."""
        columns = [sides[port].column(self._place(port, name)) for _, port, name in self._operator.columns]
        for name, choose in ((FROM, np.maximum), (UNTIL, np.minimum), (ARRIVAL, np.maximum)):
            columns.append(arrow(reduce(choose, [numbers(side, name) for side in sides]), _INT))
        return pa.Table.from_arrays(columns, schema=self.whole)

    def _alone(self, sides: Sequence[pa.Table], old: int, before: int | None, after: int | None) -> pa.Table:
        """Left tuples without a match whose last possible partner has now passed."""
        if after is None:
            return self.whole.empty_table()
        until = numbers(sides[0], UNTIL)
        decided = until <= after
        if before is not None:
            # The earlier watermark decided the remembered tuples up to it, but none of the new ones.
            decided[:old] &= until[:old] > before
        lefts = select(sides[0], decided)
        lefts = select(lefts, ~partnered(lefts, sides[1], list(self.keys[0])))
        columns = [
            lefts.column(self._place(0, name)) if port == 0 else pa.nulls(len(lefts), self.whole.field(given).type)
            for given, port, name in self._operator.columns
        ]
        columns += [lefts.column(name) for name in (FROM, UNTIL, ARRIVAL)]
        return pa.Table.from_arrays(columns, schema=self.whole)

    def _place(self, port: int, column: str) -> str:
        return f"column_{self._columns[port].index(column)}"

    def _live(self, sides: Sequence[pa.Table], after: Watermarks) -> list[Mask | None]:
        """The tuples of each side that a later tuple of another side may meet; None: all."""
        ends = [numbers(side, UNTIL) for side in sides]
        limits = [earliest([*after[:side], *after[side + 1 :]]) for side in self._ports]
        live: list[Mask | None] = [
            None if limit is None else end > limit for limit, end in zip(limits, ends, strict=True)
        ]
        if self._operator.kind == "left" and live[1] is not None:
            # A right tuple is also needed to decide about left tuples that may have met it.
            starts = numbers(sides[0], FROM) if live[0] is None else numbers(sides[0], FROM)[live[0]]
            if len(starts):
                live[1] = live[1] | (ends[1] > starts.min())
        return live


def _both(state: pa.Table, fresh: pa.Table) -> pa.Table:
    return pa.concat_tables([state, fresh]) if fresh.num_rows else state
