"""What is installed: every operator with the columns it reads and writes, and the physical form of every chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import Final, Literal

import pyarrow as pa

from freshet.kernels import Program, why_not
from freshet.model import Filter, Node, Project, UserError
from freshet.spark.analysis import Analysis
from freshet.spark.spec import Spec
from freshet.spark.task import with_arrival

Form = Literal["vectorised", "catalyst"]

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


class Installation:
    """Grows with the network; numbers are never used again, so what is known of a node stays true.

    ``reads[n]`` and ``writes[n]`` are the columns (without the arrival) in front of and behind node ``n``.
    """

    def __init__(self, analysis: Analysis, vectorise: bool = True) -> None:
        self.reads: list[pa.Schema] = []
        self.writes: list[pa.Schema] = []
        self.outputs: dict[str, pa.Schema] = {}
        self._analysis = analysis
        self._vectorise = vectorise
        self._nodes: list[Node] = []
        self._agreed: dict[str, pa.Schema] = {}
        self._forms: dict[tuple[int, ...], tuple[Form, str]] = {}

    def extend(self, nodes: Sequence[Node], streams: Mapping[str, pa.Schema]) -> Spec:
        """Takes in the nodes that are new; queries may read queries, whatever their order."""
        waiting = list(_queries(nodes[len(self._nodes) :]))
        known: dict[int, tuple[pa.Schema, pa.Schema]] = {}
        outputs = dict(self.outputs)
        agreed = dict(self._agreed)
        while waiting:
            ready = [query for query in waiting if all(_source(n, streams, outputs) for n in query if n.is_first)]
            if not ready:
                names = ", ".join(sorted({node.reads for query in waiting for node in query if node.is_first}))
                raise UserError(f"query {waiting[0][0].query}: no stream or query among {names} can be read")
            for query in ready:
                paths = self._query(query, {**outputs, **streams})
                known.update(paths)
                self._agree(query, paths, outputs, agreed)
            waiting = [query for query in waiting if query not in ready]
        # Nothing was changed until here: a query that is refused leaves no trace.
        for number in range(len(self._nodes), len(nodes)):
            self.reads.append(known[number][0])
            self.writes.append(known[number][1])
        self._nodes, self.outputs, self._agreed = list(nodes), outputs, agreed
        return Spec.of(nodes, agreed)

    def operators(self, numbers: Sequence[int]) -> tuple[Filter | Project, ...]:
        """The operators of a chain."""
        return tuple(self._nodes[number].operator for number in numbers)

    def query(self, number: int) -> str:
        """The query of a node."""
        return self._nodes[number].query

    def stream(self, number: int) -> str:
        """The stream that a chain ending in a node writes to."""
        return self._nodes[number].writes

    def form(self, numbers: Sequence[int]) -> tuple[Form, str]:
        """The physical form of a chain, and why."""
        key = tuple(numbers)
        if key not in self._forms:
            self._forms[key] = self._choose(key)
        return self._forms[key]

    def _choose(self, numbers: tuple[int, ...]) -> tuple[Form, str]:
        if not self._vectorise:
            return "catalyst", "the executor was asked for it"
        reason = why_not(self.operators(numbers), with_arrival(self.reads[numbers[0]]))
        return ("vectorised", "all its expressions are compiled") if reason is None else ("catalyst", reason)

    def _query(self, query: Sequence[Node], streams: Mapping[str, pa.Schema]) -> dict[int, tuple[pa.Schema, pa.Schema]]:
        found: dict[int, tuple[pa.Schema, pa.Schema]] = {}
        for node in query:
            # The nodes of a path follow each other.
            schema = streams[node.reads] if node.is_first else found[node.number - 1][1]
            found[node.number] = (schema, self._output(node, schema))
        return found

    def _output(self, node: Node, schema: pa.Schema) -> pa.Schema:
        operator = node.operator
        if why_not((operator,), with_arrival(schema)) is not None:
            return self._analysis.output(operator, schema)
        if isinstance(operator, Filter):
            return schema
        made = Program(((operator,),), with_arrival(schema)).schemas[0]
        columns = pa.schema(list(made)[:-1])
        for field in columns:
            if pa.types.is_null(field.type):
                raise UserError(f"operator {operator.name}: column {field.name} is only NULL: CAST it to a type")
        return columns

    def _agree(
        self,
        query: Sequence[Node],
        paths: Mapping[int, tuple[pa.Schema, pa.Schema]],
        outputs: dict[str, pa.Schema],
        agreed: dict[str, pa.Schema],
    ) -> None:
        name = query[0].query
        ends = [paths[node.number][1] for node in query if node.path[-1] == node.number]
        common = reduce(lambda left, right: _common(name, left, right), ends)
        outputs[name] = common
        if any(end != common for end in ends):
            agreed[name] = common
        else:
            agreed.pop(name, None)


def _queries(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """The nodes of each query; one that was dropped and added again under its name comes twice."""
    for _, same in groupby(nodes, key=lambda node: node.query):
        query: list[Node] = []
        for node in same:
            if any(node.name == other.name for other in query):
                yield query
                query = []
            query.append(node)
        yield query


def _source(node: Node, *schemas: Mapping[str, pa.Schema]) -> bool:
    return any(node.reads in known for known in schemas)


def _common(query: str, left: pa.Schema, right: pa.Schema) -> pa.Schema:
    """The columns that two paths of a UNION ALL agree on: names of the first, the wider of the types."""
    if len(left) != len(right):
        raise UserError(f"query {query}: the parts of its UNION ALL have {len(left)} and {len(right)} columns")
    fields = []
    for one, other in zip(left, right, strict=True):
        kind = _wider(one.type, other.type)
        if kind is None:
            raise UserError(
                f"query {query}: column {one.name} is {one.type} in one part of its UNION ALL and "
                f"{other.type} in another: CAST one of them"
            )
        fields.append(pa.field(one.name, kind))
    return pa.schema(fields)


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The common type where every value of both is one of its values (or, for a bigint as double, nearest to one)."""
    if one == other:
        return one
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=_INTEGERS.index)
    numbers = (*_INTEGERS, pa.float32(), pa.float64())
    return pa.float64() if one in numbers and other in numbers else None
