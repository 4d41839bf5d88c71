"""Joins with tables: each tuple meets the rows of the version that was current when it arrived."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.folds.arrays import Ints, arrow, expand, flat, take
from freshet.kernels.folds.groups import check_key
from freshet.kernels.folds.key_types import key_type
from freshet.kernels.folds.panes.stream import numbers
from freshet.kernels.superbox.allowance import check_rows
from freshet.kernels.superbox.program import Program
from freshet.kernels.table_index import Indexes, TableIndex
from freshet.model import ARRIVAL, Filter, Lookup, Project, QueryGraph, UserError
from freshet.model.operators import Typer

_INT: Final = pa.int64()
_PAIR: Final = "__pair"
_MOST_PREPARED: Final = 2
"""Number of versions whose rows and index are kept for the next run: the newest, and one for tuples that waited."""

_INDEXES: Final = Indexes(most=8)


class Version(Protocol):
    """The content of a table during some time."""

    @property
    def key(self) -> Hashable:
        """Identifies it among all versions of all tables."""

    @property
    def arrival(self) -> int:
        """When it arrived, in microseconds."""

    def read(self) -> pa.Table:
        """Its rows, with at least the columns that queries use."""


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """Rows of a version with their index, and the number of evaluation errors in expressions over them."""

    table: pa.Table
    index: TableIndex
    errors: int


class CompiledLookup:
    """A :class:`~freshet.model.Lookup` for tuples of a schema.

    Args:
        operator: The lookup.
        schema: Columns of its input.

    Raises:
        UserError: A key has a type that cannot be compared, or an expression over the table is not compiled.
    """

    def __init__(self, operator: Lookup, schema: pa.Schema) -> None:
        self._operator: Final = operator
        self._program: Final = table_program(operator)
        rows = self._program.schemas[0]
        for side, keys in zip((schema, rows), operator.keys, strict=True):
            for key in keys:
                check_key(side, key)
        self._kinds: Final = [
            key_type(schema.field(one).type, rows.field(two).type) for one, two in zip(*operator.keys, strict=True)
        ]
        sides = (schema, rows)
        self.output: Final = pa.schema(
            [(name, sides[port].field(column).type) for name, port, column in operator.columns]
        )
        """Columns that it gives out, without the arrival."""
        self._whole: Final = self.output.append(pa.field(ARRIVAL, _INT))
        self._conditions: Final = _pair_program(operator, self.output) if operator.conditions else None
        self._sought: Final = (*_sought(operator), tuple(self._kinds))
        self._prepared: OrderedDict[Hashable, IndexedRows] = OrderedDict()

    def run(self, table: pa.Table, versions: Sequence[Version]) -> tuple[pa.Table, int]:
        """Joins tuples; returns the joined ones, and the number of evaluation errors.

        Args:
            table: The input columns and the arrival; it may have no rows.
            versions: The versions of the table that are kept, in order. A tuple older than all of them meets the first.
        """
        if not table.num_rows:
            return self._whole.empty_table(), 0
        if not versions:
            raise RuntimeError(f"table {self._operator.table} has no version in the log")
        since = np.array([version.arrival for version in versions], np.int64)
        places = np.maximum(np.searchsorted(since, numbers(table, ARRIVAL), side="right") - 1, 0)
        rows = {place: self._prepare(versions[place]) for place in np.unique(places).tolist()}
        own, other = self._match(table, places, rows)
        met = pa.concat_tables([each.table for each in rows.values()])
        errors = sum(each.errors for each in rows.values())
        if self._conditions is not None:
            pairs = self._give(table, met, own, other)
            kept, wrong = _surviving(self._conditions, pairs)
            own, other = _with_lonely(own[kept], other[kept], table.num_rows)
            errors += wrong
        return self._give(table, met, own, other), errors

    def _match(self, table: pa.Table, places: Ints, rows: Mapping[int, IndexedRows]) -> tuple[Ints, Ints]:
        """Numbers of the tuples, in order, and of the rows that they meet (counted over all versions; -1: none)."""
        keys = [flat(table, key).cast(kind, safe=False) for key, kind in self._typed_keys(0)]
        owns, others, before = [], [], 0
        for place, content in rows.items():
            own, other = self._meet(keys, np.flatnonzero(places == place), content.index)
            owns.append(own)
            others.append(np.where(other >= 0, other + before, other))
            before += content.table.num_rows
        if len(owns) == 1:
            return owns[0], others[0]
        own, other = np.concatenate(owns), np.concatenate(others)
        order = np.argsort(own, kind="stable")
        return own[order], other[order]

    def _meet(self, keys: Sequence[pa.Array], some: Ints, index: TableIndex) -> tuple[Ints, Ints]:
        """Pairs of some tuples and the rows of a version that they meet."""
        chosen = keys if not keys or len(some) == len(keys[0]) else [take(key, some) for key in keys]
        low, high = index.find(chosen, len(some))
        check_rows(int((high - low).sum()))
        if self._operator.kind == "inner" or self._conditions is not None:
            found, ids = expand(low, high)
            return some[ids], index.order[found]
        found, ids = expand(low, np.maximum(high, low + 1))
        other = np.full(len(ids), -1)
        met = (high > low)[ids]
        other[met] = index.order[found[met]]
        return some[ids], other

    def _give(self, table: pa.Table, rows: pa.Table, own: Ints, other: Ints) -> pa.Table:
        everyone = len(own) == table.num_rows and np.array_equal(own, np.arange(len(own)))
        met = pa.array(other, mask=other < 0)
        columns = [
            (flat(table, column) if everyone else take(flat(table, column), own))
            if port == 0
            else flat(rows, column).take(met)
            for _, port, column in (*self._operator.columns, (ARRIVAL, 0, ARRIVAL))
        ]
        return pa.Table.from_arrays(columns, schema=self._whole)

    def _prepare(self, version: Version) -> IndexedRows:
        """The rows of a version, and their index."""
        if version.key in self._prepared:
            self._prepared.move_to_end(version.key)
            return self._prepared[version.key]
        table = version.read()
        [made] = self._program.run(table.append_column(ARRIVAL, arrow(np.zeros(table.num_rows, np.int64), _INT)))
        if made.failure is not None:
            raise RuntimeError(made.failure)
        given = pa.Table.from_batches([made.batch])
        keys = [flat(given, key).cast(kind, safe=False) for key, kind in self._typed_keys(1)]
        index = _INDEXES.get((version.key, self._sought), keys, given.num_rows)
        self._prepared[version.key] = rows = IndexedRows(given, index, made.errors)
        if len(self._prepared) > _MOST_PREPARED:
            self._prepared.popitem(last=False)
        return rows

    def _typed_keys(self, port: int) -> Sequence[tuple[str, pa.DataType]]:
        return list(zip(self._operator.keys[port], self._kinds, strict=True))


def _pair_program(operator: Lookup, schema: pa.Schema) -> Program:
    """Finds the pairs, by number, for which all conditions of a join are true."""
    filters = [Filter(f"{operator.name}.on", text) for text in operator.conditions]
    try:
        return Program([[*filters, Project(operator.name, ((_PAIR, _PAIR),))]], schema.append(pa.field(_PAIR, _INT)))
    except Unsupported as reason:
        raise UserError(
            f"{reason} is not compiled, so it cannot be used to find the tuples of a LEFT JOIN with {operator.table} "
            "that have no row: compute it in a query before this one, and use its column in the condition"
        ) from None


def _surviving(program: Program, pairs: pa.Table) -> tuple[Ints, int]:
    """Numbers of the pairs for which all conditions are true, in order, and the number of evaluation errors."""
    place = pairs.num_columns - 1
    [made] = program.run(pairs.add_column(place, _PAIR, arrow(np.arange(pairs.num_rows), _INT)))
    if made.failure is not None:
        raise RuntimeError(made.failure)
    return numbers(pa.Table.from_batches([made.batch]), _PAIR), made.errors


def _with_lonely(own: Ints, other: Ints, tuples: int) -> tuple[Ints, Ints]:
    """The pairs, and in order between them every tuple without a pair, with -1 for its row.

    >>> [side.tolist() for side in _with_lonely(np.array([1, 1]), np.array([4, 5]), 3)]
    [[0, 1, 1, 2], [-1, 4, 5, -1]]
    """
    lonely = np.setdiff1d(np.arange(tuples), own)
    every = np.concatenate([own, lonely])
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate([other, np.full(len(lonely), -1)])[order]


def _sought(operator: Lookup) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which rows of a table are sought, and by which keys: conditions and key expressions."""
    values = dict(operator.row_columns)
    return operator.row_filters, tuple(values[key] for key in operator.keys[1])


def table_program(operator: Lookup) -> Program:
    """The filters and projections of a table's rows before tuples meet them.

    Raises:
        UserError: An expression is not compiled.
    """
    schema = operator.row_schema
    try:
        return Program([operator.operators], schema)
    except Unsupported as reason:
        raise UserError(
            f"{reason} is not compiled, so it cannot be computed for the rows of table {operator.table} before they "
            "are joined: add a column with the value to its file"
        ) from None


def check_lookups(graph: QueryGraph, streams: Mapping[str, pa.Schema], typer: Typer) -> None:
    """Refuses joins with tables that cannot run.

    Expressions over a table's rows must be compiled, and so must the conditions that decide whether a tuple has a row.
    """
    lookups = [operator for operator in graph.operators.values() if isinstance(operator, Lookup)]
    for operator in lookups:
        table_program(operator)
    conditional = [operator for operator in lookups if operator.conditions]
    known = graph.schemas(streams, typer) if conditional else {}
    for operator in conditional:
        schema = known[graph.inputs[operator.name][0]]
        # A type that only Spark knows is checked once Spark has been asked.
        if not any(pa.types.is_null(kind) for kind in schema.types):
            CompiledLookup(operator, schema)
