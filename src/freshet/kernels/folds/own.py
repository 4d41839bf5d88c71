"""The user's own operators with a state, over the tuples of a train."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from freshet.kernels.folds.folded import Folded, Watermarks
from freshet.kernels.folds.held import HeldTables
from freshet.kernels.own_operator import SAMPLE, SAMPLE_EVERY, call_own, check_types
from freshet.model import ARRIVAL, UserError
from freshet.model.functions import known_operator
from freshet.model.messages import counted
from freshet.model.operators import OwnFold
from freshet.model.schema import schema_text, with_arrival

_ARRIVAL: Final = "_arrival"
"""The name of the arrival in the user's code."""

_Returned = tuple[pa.Table, Sequence[pa.Table], Sequence[int]]
_Taken = tuple[pa.Table, tuple[pa.Table, ...], tuple[int, ...]]


class Memorable(Protocol):
    """The protocol of a user's operator with a state.

    Every table also has the column ``_arrival``: the time in microseconds at which the tuple of a row arrived. If a row
    was made of several tuples, it is that of the latest. However the tuples are cut into runs, the operator must give
    out the same rows.
    """

    states: Sequence[str]
    """Columns of each table of its state, as Spark DDL. While the first table has rows, the operator also runs without
    tuples, because time alone may bring out rows."""

    def run(
        self, tuples: pa.Table, states: Sequence[pa.Table], before: int | None, after: int | None, *constants: Any
    ) -> _Returned:
        """Takes tuples in.

        Args:
            tuples: The tuples; none if only time has passed.
            states: The tables of its state.
            before: No tuple of this run or a later one has an earlier event time, in microseconds; None: no bound.
            after: The same for the runs after this one.
            constants: The constant arguments in the query.

        Returns:
            The rows that it gives out, the rows to append to each state, and the number of rows to forget from the
            start of each state.
        """


class CompiledOwnFold:
    """A :class:`~freshet.model.operators.OwnFold` for tuples of a schema.

    Now and then it also runs a sample of the tuples in two halves, and compares: its rows must not depend on how tuples
    are cut.

    Raises:
        UserError: A column has a type that the operator does not take.
    """

    def __init__(self, operator: OwnFold, schema: pa.Schema) -> None:
        function = known_operator(operator.key)
        check_types(function, schema)
        self.operator: Final = operator
        self._function = function
        self.output: Final = function.returns
        self.states: Final = tuple(map(with_arrival, function.states))
        made = function.load()
        self._own: Final[Memorable] = call_own(function.name, made) if isinstance(made, type) else made
        self._runs = 0

    @property
    def state_keys(self) -> tuple[str, ...]:
        return ()

    def live(self, states: Sequence[pa.Table]) -> HeldTables:
        return HeldTables(self, tuple(states))

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        tuples = _shown(table.select([*self._function.takes.names, ARRIVAL]))
        known = [_shown(state) for state in states]
        times = (before[0], after[0]) if self.operator.by_time else (None, None)
        if self._runs % SAMPLE_EVERY == 0 and table.num_rows > 1:
            self._check(tuples.slice(0, SAMPLE), known, *times)
        self._runs += 1
        rows, appended, dropped = self._call(tuples, known, *times)
        self._check_times(rows, times[0])
        return Folded(_stored(rows), tuple(map(_stored, appended)), dropped)

    def _call(self, tuples: pa.Table, states: Sequence[pa.Table], before: int | None, after: int | None) -> _Taken:
        """The checked result of the user's code for some tuples."""
        given = call_own(self._function.name, self._own.run, tuples, states, before, after, *self.operator.arguments)
        lists = given[1:] if isinstance(given, tuple) and len(given) == 3 else [None]
        if not all(isinstance(each, list | tuple) and len(each) == len(states) for each in lists):
            raise self._wrong(
                f"must return three things: a table of rows; a list that has, for each of its states ({len(states)}), "
                "the rows to append; and a list of how many rows each state forgets from the start"
            )
        rows = self._fitting(given[0], self._function.returns, "rows")
        appended = [self._fitting(*each, "states") for each in zip(given[1], self._function.states, strict=True)]
        dropped = tuple(map(self._number, given[2]))
        for number, state in zip(dropped, states, strict=True):
            if not 0 <= number <= state.num_rows:
                raise self._wrong(f"forgets {counted(number, 'row')} of a state that has {state.num_rows:,}")
        return rows, tuple(appended), dropped

    def _number(self, given: Any) -> int:
        try:
            return index(given.as_py() if isinstance(given, pa.Scalar) else given)
        except TypeError:
            raise self._wrong(f"must say as a whole number how many rows a state forgets, not {given!r}") from None

    def _fitting(self, given: Any, declared: pa.Schema, what: str) -> pa.Table:
        """A table with its columns in the declared order."""
        if isinstance(given, pa.RecordBatch):
            given = pa.Table.from_batches([given])
        whole = declared.append(pa.field(_ARRIVAL, pa.int64()))
        wanted = {field.name: field.type for field in whole}
        columns = schema_text(whole).replace("`", "")
        if not isinstance(given, pa.Table):
            found = "None" if given is None else f"a value of the type {type(given).__name__}"
            raise self._wrong(f"returned {found} as {what}, not a table of ({columns})")
        if {each.name: each.type for each in given.schema} != wanted:
            found = ", ".join(f"{each.name} {each.type}" for each in given.schema)
            raise self._wrong(f"gave {what} of ({found}), but they must be ({columns})")
        if given.column(_ARRIVAL).null_count:
            raise self._wrong(f"gave {what} without {_ARRIVAL}: a row has the latest of the rows that it was made of")
        return given.select(whole.names).cast(whole)

    def _check_times(self, rows: pa.Table, before: int | None) -> None:
        """Refuses a row in the past: a reader may already have closed its window."""
        name = self._function.time_column
        if name is None or before is None or not rows.num_rows:
            return
        first = pc.min(rows.column(name).cast(pa.int64())).as_py()
        if first is not None and first < before:
            raise self._wrong(
                f"gave a row whose {name} is {before - first:,} us before the event time at which it ran last: let it "
                "be the moment from which on the row is known, such as the end of a session with its gap"
            )

    def _check(self, tuples: pa.Table, states: Sequence[pa.Table], before: int | None, after: int | None) -> None:
        """Refuses an operator whose rows depend on how its tuples are cut."""
        half = tuples.num_rows // 2
        whole, _, _ = self._call(tuples, states, before, after)
        first, appended, dropped = self._call(tuples.slice(0, half), states, before, before)
        changed = zip(states, dropped, appended, strict=True)
        then = [pa.concat_tables([state.slice(gone), new]) for state, gone, new in changed]
        second, _, _ = self._call(tuples.slice(half), then, before, after)
        if _sorted(whole) != _sorted(pa.concat_tables([first, second])):
            raise self._wrong(
                "gives other rows when its tuples come in two runs: it must keep all that it needs in its states, and "
                "give a row out when no later tuple can change it"
            )

    def _wrong(self, problem: str) -> UserError:
        return UserError(f"operator {self._function.name} {problem}")


def _shown(table: pa.Table) -> pa.Table:
    return table.rename_columns([_ARRIVAL if name == ARRIVAL else name for name in table.column_names])


def _stored(table: pa.Table) -> pa.Table:
    return table.rename_columns([ARRIVAL if name == _ARRIVAL else name for name in table.column_names])


def _sorted(table: pa.Table) -> list[str]:
    """The rows as sorted texts, in which NaN equals NaN."""
    return sorted(map(repr, table.to_pylist()))
