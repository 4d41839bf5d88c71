"""Operators of the user's own, over the tuples of a train."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.model import ARRIVAL, UserError
from freshet.model.functions import known_operator
from freshet.model.operators import Own
from freshet.model.schema import schema_text

_EVERY: Final = 64
"""A sample is checked in the first of so many runs."""
_SAMPLE: Final = 256
"""Tuples of a sample."""

Ints = npt.NDArray[np.int64]


class CompiledOwn:
    """Runs the function of an operator; implements what :class:`~freshet.kernels.superbox.pipeline.Rest` needs.

    Now and then it also runs a sample of the tuples cut in two, and compares: what is made of a tuple must not depend
    on the others that come with it.

    Args:
        operator: It.
        schema: Columns of its input.

    Raises:
        UserError: A column has another type than the function takes.
    """

    def __init__(self, operator: Own, schema: pa.Schema) -> None:
        self._operator, self._function = operator, known_operator(operator.key)
        for field in self._function.takes:
            if schema.field(field.name).type != field.type:
                raise UserError(
                    f"operator {self._function.name}: column {field.name} is {schema.field(field.name).type}, and it "
                    f"takes {field.type}: CAST it in a query before"
                )
        self.output: Final = pa.schema(
            [*self._function.returns, *(schema.field(name) for name in self._operator.carried)]
        )
        """Columns that it gives out, the arrival apart."""
        self._whole: Final = self.output.append(pa.field(ARRIVAL, pa.int64()))
        self._runs = 0

    def run(self, table: pa.Table) -> pa.Table:
        """What it makes of tuples.

        Raises:
            UserError: The function gave something else than its declaration says.
        """
        if not table.num_rows:
            return self._whole.empty_table()
        taken = table.select(self._function.takes.names).combine_chunks()
        [batch] = taken.to_batches()
        if self._runs % _EVERY == 0 and table.num_rows > 1:
            self._check(batch.slice(0, _SAMPLE))
        self._runs += 1
        rows, numbers = self._call(batch)
        carried = [table.column(name).take(pa.array(numbers)) for name in (*self._operator.carried, ARRIVAL)]
        return pa.Table.from_arrays([*rows.columns, *carried], schema=self._whole)

    def _call(self, batch: pa.RecordBatch) -> tuple[pa.Table, Ints]:
        name = self._function.name
        made = self._function.load()(batch, *self._operator.arguments)
        if not isinstance(made, tuple) or len(made) != 2 or not isinstance(made[0], pa.RecordBatch | pa.Table):
            raise UserError(
                f"operator {name} must return an Arrow batch and for each row of it the number of its tuple"
            )
        rows, numbers = self._rows(made[0]), self._numbers(made[1])
        if len(numbers) != rows.num_rows:
            raise UserError(
                f"operator {name} gave {rows.num_rows:,} rows and {len(numbers):,} numbers of tuples: return as many"
            )
        if len(numbers) and (numbers[0] < 0 or numbers[-1] >= batch.num_rows or np.any(np.diff(numbers) < 0)):
            raise UserError(
                f"operator {name} must give rows in the order of their tuples, which have the numbers from 0 to "
                f"{batch.num_rows - 1:,}"
            )
        return rows, numbers

    def _rows(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        declared = self._function.returns
        given = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        if [(field.name, field.type) for field in given.schema] != [(field.name, field.type) for field in declared]:
            found = ", ".join(f"{field.name} {field.type}" for field in given.schema)
            raise UserError(
                f"operator {self._function.name} gave the columns ({found}), but is declared to return "
                f"({schema_text(declared).replace('`', '')})"
            )
        return given

    def _numbers(self, numbers: Any) -> Ints:
        try:
            plain = numbers.to_numpy(zero_copy_only=False) if isinstance(numbers, pa.Array) else np.asarray(numbers)
            return plain.astype(np.int64, casting="same_kind") if len(plain) else np.empty(0, np.int64)
        except (TypeError, ValueError):
            told = f"operator {self._function.name} must give the numbers of the tuples as whole numbers"
            raise UserError(f"{told}, not {numbers!r}") from None

    def _check(self, batch: pa.RecordBatch) -> None:
        """Refuses a function whose rows depend on how its tuples are cut."""
        half = batch.num_rows // 2
        whole, numbers = self._call(batch)
        first, second = self._call(batch.slice(0, half)), self._call(batch.slice(half))
        cut = pa.concat_tables([first[0], second[0]])
        same = np.array_equal(numbers, np.concatenate([first[1], second[1] + half]))
        if not same or not _equal(whole, cut):
            raise UserError(
                f"operator {self._function.name} gives other rows when its tuples come in two batches: what it makes "
                "of a tuple must depend on nothing else"
            )


def _equal(one: pa.Table, two: pa.Table) -> bool:
    """Whether tables are equal, NaN to NaN."""
    if one.equals(two):
        return True
    return repr(one.to_pylist()) == repr(two.to_pylist())
