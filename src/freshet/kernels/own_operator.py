"""The user's own operators, over the tuples of a train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freshet.kernels.table_join import Version
from freshet.model import ARRIVAL, UserError
from freshet.model.functions import OwnOperator, known_operator
from freshet.model.messages import counted, sentence
from freshet.model.operators import Own
from freshet.model.schema import schema_text

SAMPLE_EVERY: Final = 64
"""Number of runs of which the first checks a sample."""
SAMPLE: Final = 256
"""Maximum number of tuples in a sample."""
_TIME: Final = "__time"
"""The hidden column with the event time of a tuple."""

Ints = npt.NDArray[np.int64]


def check_types(function: OwnOperator, schema: pa.Schema) -> None:
    """Refuses columns whose type an operator does not take."""
    for field in function.takes:
        if schema.field(field.name).type != field.type:
            raise UserError(
                f"operator {function.name}: column {field.name} is {schema.field(field.name).type}, and it "
                f"takes {field.type}: CAST it in a query that the operator reads"
            )


def call_own(name: str, call: Callable[..., Any], *given: Any) -> Any:
    """What the code of an operator returns.

    Raises:
        UserError: The code raised. The error says which operator it was, and where in its file.

    >>> call_own("f", divmod, 1, 0)
    Traceback (most recent call last):
    freshet.model.errors.UserError: operator f raised ZeroDivisionError: integer division or modulo by zero
    """
    try:
        return call(*given)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # an exit must not end the process of other queries
        own = extract_tb(error.__traceback__)[1:]
        # The last line of the user's file, not one of a library that it calls.
        where = next((f" ({Path(each.filename).name}, line {each.lineno})" for each in reversed(own)
                      if each.filename == own[0].filename), "")  # fmt: skip
        raise UserError(f"operator {name} raised {sentence(error)}{where}") from error


class CompiledOwn:
    """Runs the function of an operator; implements what :class:`~freshet.kernels.superbox.pipeline.Rest` needs.

    Now and then it also runs a sample of the tuples in two halves, and compares: the rows of a tuple must not depend on
    the other tuples in its train.

    Args:
        operator: The operator.
        schema: Columns of its input.

    Raises:
        UserError: A column has a type that the function does not take.
    """

    def __init__(self, operator: Own, schema: pa.Schema) -> None:
        self._operator, self._function = operator, known_operator(operator.key)
        check_types(self._function, schema)
        self.output: Final = pa.schema(
            [*self._function.returns, *(schema.field(name) for name in self._operator.carried)]
        )
        """Columns that it gives out, without the arrival."""
        self._whole: Final = self.output.append(pa.field(ARRIVAL, pa.int64()))
        self._runs = 0

    def run(self, table: pa.Table, versions: Sequence[Version] = ()) -> tuple[pa.Table, int]:
        """The rows that it makes of tuples, and 0: a failure of the function is no evaluation error.

        Raises:
            UserError: The function does not return what its declaration says.
        """
        if not table.num_rows:
            return self._whole.empty_table(), 0
        taken = table.select(self._function.takes.names).combine_chunks()
        [batch] = taken.to_batches()
        if self._runs % SAMPLE_EVERY == 0 and table.num_rows > 1:
            self._check(batch.slice(0, SAMPLE))
        self._runs += 1
        rows, numbers = self._call(batch)
        carried = [table.column(name).take(pa.array(numbers)) for name in (*self._operator.carried, ARRIVAL)]
        made = pa.Table.from_arrays([*rows.columns, *carried], schema=self._whole)
        self._check_times(made)
        return made, 0

    def _call(self, batch: pa.RecordBatch) -> tuple[pa.Table, Ints]:
        name = self._function.name
        made = call_own(name, self._function.load(), batch, *self._operator.arguments)
        if not isinstance(made, tuple) or len(made) != 2 or not isinstance(made[0], pa.RecordBatch | pa.Table):
            raise UserError(
                f"operator {name} must return an Arrow batch and for each row of it the number of its tuple"
            )
        rows, numbers = self._rows(made[0]), self._numbers(made[1])
        if len(numbers) != rows.num_rows:
            raise UserError(
                f"operator {name} returned {counted(rows.num_rows, 'row')} and the numbers of "
                f"{counted(len(numbers), 'tuple')}: each row needs one number"
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
        told = f"operator {self._function.name} must return for each row the number of its tuple, a whole number"
        try:
            plain = numbers if isinstance(numbers, pa.Array | pa.ChunkedArray) else pa.array(numbers)
        except (pa.ArrowException, TypeError, ValueError):
            raise UserError(f"{told}: {type(numbers).__name__} is no list of numbers") from None
        if plain.null_count:
            raise UserError(f"{told}: it returned NULL for {counted(plain.null_count, 'row')}")
        if len(plain) and not pa.types.is_integer(plain.type):
            raise UserError(f"{told}: it returned values of the type {plain.type}")
        return np.asarray(plain).astype(np.int64) if len(plain) else np.empty(0, np.int64)

    def _check_times(self, made: pa.Table) -> None:
        """Refuses a row in the past of its tuple: a reader may already have closed its window."""
        name = self._function.time_column
        if name is None or not made.num_rows:
            return
        own = "event time" if _TIME in self._operator.carried else "arrival"
        time = made.column(_TIME if own == "event time" else ARRIVAL).cast(pa.int64())
        early = pc.max(pc.subtract(time, made.column(name).cast(pa.int64()))).as_py()
        if early is not None and early > 0:
            raise UserError(
                f"operator {self._function.name} gave a row whose {name} is {early:,} us before the {own} of its "
                "tuple, and windows of that time may be closed already: let it be that time or a later one"
            )

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
    """Whether tables are equal, where NaN equals NaN."""
    return one.equals(two) or repr(one.to_pylist()) == repr(two.to_pylist())
