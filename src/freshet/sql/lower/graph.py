"""The graph under construction: operators with unique names, and the streams they may read."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
from sqlglot import exp

from freshet.model.functions import OwnOperator
from freshet.model.schema import ARRIVAL
from freshet.sql.check.scope import Relation, TypedColumns
from freshet.sql.lower.logical import Logical, Window
from freshet.sql.parse.errors import did_you_mean, fail
from freshet.sql.parse.limits import MOST_OPERATORS, TOO_MANY_OPERATORS


class GraphBuilder:
    """Collects operators and what they read: streams, of which some are tables."""

    def __init__(
        self, streams: Mapping[str, pa.Schema], tables: Collection[str], functions: Mapping[str, OwnOperator]
    ) -> None:
        self.operators: dict[str, Logical] = {}
        self.inputs: dict[str, tuple[str, ...]] = {}
        self.relations: dict[str, Relation] = {}
        """What each node and each stream gives out."""
        self.places: dict[str, exp.Expr | None] = {}
        """Where nodes are in the text."""
        self.tables: dict[str, exp.Expr] = {}
        """Tables that are read, each with its first place in the text."""
        self.functions = functions
        """Operators of the user's own, by name in lower case."""
        self._streams = streams
        self._tables = frozenset(tables)
        self._prefixes: set[str] = set()
        # Shared with the scratch graphs: their operators take time, too.
        self._made = [0]

    def add(
        self,
        operator: Logical,
        inputs: tuple[Relation, ...],
        columns: TypedColumns | None = None,
        place: exp.Expr | None = None,
    ) -> Relation:
        """Adds an operator; returns what it gives out (by default what it reads)."""
        self._made[0] += 1
        if self._made[0] > MOST_OPERATORS:
            raise fail(TOO_MANY_OPERATORS, place)
        name = operator.name
        self.operators[name] = operator
        self.inputs[name] = tuple(relation.node for relation in inputs)
        self.places[name] = place
        windowed = isinstance(operator, Window) or any(relation.windowed for relation in inputs)
        self.relations[name] = Relation(name, inputs[0].columns if columns is None else columns, windowed)
        return self.relations[name]

    def scratch(self) -> GraphBuilder:
        """An empty graph over the same streams, to look at what a query would give out."""
        graph = GraphBuilder(self._streams, self._tables, self.functions)
        graph._made = self._made
        return graph

    def is_endless(self, relation: Relation) -> bool:
        """Whether tuples of a stream come without a window and without an end."""
        return not relation.windowed and self._reads_stream(relation.node)

    def _reads_stream(self, node: str) -> bool:
        inputs = self.inputs.get(node)
        return node not in self.tables if inputs is None else any(map(self._reads_stream, inputs))

    def prefix(self, wanted: str) -> str:
        """A prefix for the names of a sub-query's operators that no other has."""
        name, number = wanted, 1
        while name in self._prefixes:
            number += 1
            name = f"{wanted}_{number}"
        self._prefixes.add(name)
        return name

    def stream(self, table: exp.Table) -> Relation:
        """What a stream gives out; names are found whatever their case, as in Spark."""
        if table.db:
            raise fail("a stream has a simple name without dots", table)
        spelled = {name.lower(): name for name in self._streams} | {name: name for name in self._streams}
        name = spelled.get(table.name) or spelled.get(table.name.lower())
        if name is None:
            known = f" (there are: {', '.join(self._streams)})" if self._streams else ": none is declared"
            hint = did_you_mean(table.name, self._streams) or known
            raise fail(f"unknown stream {'or table ' if self._tables else ''}{table.name}{hint}", table.this)
        columns = tuple((field.name, field.type) for field in self._streams[name] if field.name != ARRIVAL)
        self.relations[name] = Relation(name, columns)
        if name in self._tables:
            self.tables.setdefault(name, table.this)
        return self.relations[name]
