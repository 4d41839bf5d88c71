"""Joins: each input remembers its tuples for the others.

New tuples of an input meet the remembered tuples of all others, and are then remembered, so that each row comes exactly
once (the symmetric hash join of A. N. Wilschut and P. M. G. Apers, "Dataflow query execution in a parallel main-memory
environment", 1991, over sorted runs; for more than two inputs the MJoin of S. D. Viglas, J. F. Naughton and J. Burger,
"Maximizing the output rate of multi-way join queries over streaming information sources", 2003). Watermarks bound the
state: a tuple whose validity has passed at all other inputs can meet no new tuple. Partial rows of only some inputs are
never remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import arrow, flat, select
from freshet.kernels.folds.groups import canonical, check_key
from freshet.kernels.folds.key_types import key_type
from freshet.kernels.folds.live_join import LiveJoin
from freshet.kernels.folds.states.state_rows import StateRows
from freshet.kernels.folds.times import check_time, spans
from freshet.model import ARRIVAL, Join
from freshet.model.operators import FROM, UNTIL

_INT: Final = pa.int64()


class CompiledJoin:
    """A :class:`~freshet.model.Join` for tuples of the schemas of its inputs.

    There is a state stream for the remembered tuples of each input. Its columns are the keys, in the type in which they
    are compared, the columns that are given out, :data:`FROM`, :data:`UNTIL` and the arrival. New tuples have the same.
    """

    def __init__(self, operator: Join, *inputs: pa.Schema) -> None:
        self.operator: Final = operator
        self._ports: Final = operator.ports
        assert operator.kind == "inner" or len(self._ports) == 2, f"{operator.name} is a left join of more than two"
        for port, schema in zip(self._ports, inputs, strict=True):
            check_time(schema, operator.validity[port].time)
            for key in operator.keys[port]:
                if key is not None:
                    check_key(schema, key)
        self.kinds: Final = {
            f"key_{place}": reduce(key_type, [inputs[at].field(name).type for at, name in enumerate(names) if name])
            for place, names in enumerate(zip(*operator.keys, strict=True))
        }
        """The keys, each with the type in which it is compared."""
        self.keys: Final = tuple(
            {key: name for key, name in zip(self.kinds, operator.keys[port], strict=True) if name is not None}
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
    def is_left(self) -> bool:
        """Whether tuples of the first input also come without a partner."""
        return self.operator.kind == "left"

    @property
    def state_keys(self) -> tuple[str, ...]:
        return tuple(key for key in self.kinds if all(key in keys for keys in self.keys))

    @property
    def given(self) -> list[tuple[str, int, str]]:
        """Columns that it gives out, each with its side and the column of that side's state."""
        return [(name, port, self._place(port, column)) for name, port, column in self.operator.columns]

    def live(self, states: Sequence[pa.Table]) -> LiveJoin:
        return LiveJoin(self, tuple(StateRows.of(state, UNTIL, FROM) for state in states))

    def _schema(self, port: int, schema: pa.Schema) -> pa.Schema:
        fields = [pa.field(key, self.kinds[key]) for key in self.keys[port]]
        columns = enumerate(self._columns[port])
        fields += [pa.field(f"column_{place}", schema.field(name).type) for place, name in columns]
        return pa.schema([*fields, *(pa.field(name, _INT) for name in (FROM, UNTIL, ARRIVAL))])

    def fresh(self, table: pa.Table, port: int) -> pa.Table:
        """New tuples of an input as they are remembered, without those that are never valid or have a NULL key. Only
        the left input of a left join keeps NULL keys."""
        start, end, known = spans(table, self.operator.validity[port])
        keep: Mask = start < end if known is None else (start < end) & known
        keys = []
        for key, name in self.keys[port].items():
            keys.append(canonical(flat(table, name).cast(self.kinds[key], safe=False)))
            if keys[-1].null_count and (not self.is_left or port == 1):
                keep = keep & keys[-1].is_valid().to_numpy(zero_copy_only=False)
        columns = [flat(table, name) for name in self._columns[port]]
        times = [arrow(start, _INT), arrow(end, _INT), flat(table, ARRIVAL)]
        return select(pa.Table.from_arrays([*keys, *columns, *times], schema=self.states[port]), keep)

    def _place(self, port: int, column: str) -> str:
        return f"column_{self._columns[port].index(column)}"
