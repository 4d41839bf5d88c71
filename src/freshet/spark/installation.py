"""What is installed: every operator with the columns it reads and writes, and the physical form of every chain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

import pyarrow as pa

from freshet.kernels import why_not
from freshet.kernels.folds import compile_fold
from freshet.kernels.folds.join import CompiledSide
from freshet.kernels.parting import parted_at
from freshet.kernels.pipeline import split
from freshet.kernels.shuffling import why_never_shuffled
from freshet.kernels.typer import KernelTyper
from freshet.model import Filter, Fold, Node, Operator, Project, Side, Union, UserError
from freshet.model.schema import with_arrival
from freshet.spark.analysis import Analysis
from freshet.spark.shuffled import compiled_side
from freshet.spark.spec import Spec

Form = Literal["vectorised", "catalyst", "shuffled", "parted", "staged"]
"""``shuffled``: a large join. ``parted``: a large train up to a sliding aggregate. ``staged``: a chain with folds or
lookups that has pieces of several forms; it runs as several jobs."""


class Installation:
    """Grows with the network; numbers are never used again, so what is known of a node stays true.

    ``reads[n]`` and ``writes[n]`` are the columns (without the arrival) in front of and behind node ``n``.
    """

    def __init__(self, analysis: Analysis, vectorise: bool = True, rows_out: int | None = None) -> None:
        self.reads: list[pa.Schema] = []
        self.writes: list[pa.Schema] = []
        self.outputs: dict[str, pa.Schema] = {}
        self._typer = KernelTyper(analysis)
        self._vectorise = vectorise
        self._rows_out = rows_out
        self._nodes: list[Node] = []
        self._agreed: dict[str, pa.Schema] = {}
        self._forms: dict[tuple[int, ...], tuple[Form, str]] = {}
        self._states: dict[str, int] = {}
        self._others: dict[int, pa.Schema] = {}

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
        both = [*zip(self.reads, self.writes, strict=True), *(known[number] for number in sorted(known))]
        folded = {node.query for node in nodes if node.operator.remembers or node.operator.reads_table}
        reads = {node.number: both[node.number][0] for node in nodes if node.query in folded}
        new = nodes[len(self._nodes) :]
        _check_text(Spec.of(new, agreed, {node.number: known[node.number][0] for node in new}, self._others), new)
        # Nothing was changed until here: a query that is refused leaves no trace.
        self.reads, self.writes = [each for each, _ in both], [each for _, each in both]
        self._nodes, self.outputs, self._agreed = list(nodes), outputs, agreed
        return Spec.of(nodes, agreed, reads, self._others, self._rows_out)

    def operators(self, numbers: Sequence[int]) -> tuple[Operator, ...]:
        """The operators of a chain."""
        return tuple(self._nodes[number].operator for number in numbers)

    def folds(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The folds that a chain goes through."""
        return tuple(each.fold for each in self.operators(numbers) if isinstance(each, Fold))

    def tables(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The tables that a chain joins with."""
        tables = (each.reads_table for each in self.operators(numbers))
        return tuple(table for table in tables if table is not None)

    def states(self, fold: str) -> int:
        """How many state streams a fold has."""
        return self._states[fold]

    def stages(self, numbers: Sequence[int]) -> list[tuple[Form, tuple[int, ...]]]:
        """The jobs of a chain with folds or lookups: its pieces, those that are compiled together with these."""
        stages: list[tuple[Form, tuple[int, ...]]] = []
        place = 0
        for piece in split(self.operators(numbers)):
            size = len(piece) if isinstance(piece, tuple) else 1
            some = tuple(numbers[place : place + size])
            form: Form = self.form(some)[0] if isinstance(piece, tuple) else "vectorised"
            if stages and stages[-1][0] == form == "vectorised":
                stages[-1] = (form, stages[-1][1] + some)
            else:
                stages.append((form, some))
            place += size
        return stages

    def stages_around(
        self, numbers: Sequence[int], joins: Collection[int], parted: bool = False
    ) -> list[tuple[Form, tuple[int, ...]]]:
        """The jobs of a chain of which some joins are shuffled, or which goes in parts up to its first aggregate. That
        one comes twice: in parts, and to close windows."""
        if parted:
            place = self.parted_at(numbers)
            assert place is not None
            return [("parted", tuple(numbers[: place + 1])), *self.stages_around(numbers[place:], joins)]
        stages: list[tuple[Form, tuple[int, ...]]] = []
        rest: list[int] = []
        for number in numbers:
            if number in joins:
                stages += self.stages(rest)
                stages.append(("shuffled", (number,)))
                rest = []
            else:
                rest.append(number)
        return stages + self.stages(rest)

    def parted_at(self, numbers: Sequence[int]) -> int | None:
        """The place of the aggregate up to which a chain can run in parts; None: it cannot."""
        place = parted_at(self.operators(numbers))
        return place if place is not None and len(self.stages(numbers[: place + 1])) == 1 else None

    def shufflable(self, numbers: Sequence[int]) -> list[tuple[int, Side]]:
        """The joins of a chain that could be shuffled."""
        sides = ((number, self._nodes[number].operator) for number in numbers)
        return [(number, side) for number, side in sides if isinstance(side, Side) and why_never_shuffled(side) is None]

    def side(self, number: int) -> tuple[CompiledSide, Literal[0, 1]]:
        """The side of a join that a node is, compiled, and its port."""
        operator = self._nodes[number].operator
        assert isinstance(operator, Side)
        return compiled_side(operator, self.reads[number], self._others[number]), operator.port

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
        if not all(isinstance(operator, Filter | Project) for operator in self.operators(numbers)):
            return self._choose_staged(numbers)
        if not self._vectorise:
            return "catalyst", "the executor was asked for it"
        reason = why_not(_stateless(self.operators(numbers)), with_arrival(self.reads[numbers[0]]))
        return ("vectorised", "all its expressions are compiled") if reason is None else ("catalyst", reason)

    def _choose_staged(self, numbers: tuple[int, ...]) -> tuple[Form, str]:
        """One job where all pieces are compiled, else one for each stage."""
        others = [some for form, some in self.stages(numbers) if form == "catalyst"]
        if not others:
            return "vectorised", "all its expressions are compiled"
        return "staged", f"{self._nodes[others[0][0]].name}: {self.form(others[0])[1]}"

    def _query(self, query: Sequence[Node], streams: Mapping[str, pa.Schema]) -> dict[int, tuple[pa.Schema, pa.Schema]]:
        found: dict[int, tuple[pa.Schema, pa.Schema]] = {}
        waiting = list(query)
        while waiting:
            # The nodes of a path follow each other, and a side of a join waits for what comes in on the other one.
            later = []
            for node in waiting:
                before = found.get(node.number - 1)
                if not node.is_first and before is None:
                    later.append(node)
                    continue
                schema = streams[node.reads] if before is None or node.is_first else before[1]
                other = _other_side(node, query, found, streams)
                if isinstance(node.operator, Side) and other is None:
                    later.append(node)
                    continue
                if other is not None:
                    self._others[node.number] = other
                found[node.number] = (schema, self._output(node, schema, other))
            if len(later) == len(waiting):
                raise UserError(f"query {query[0].query}: its joins wait for each other")
            waiting = later
        return found

    def _output(self, node: Node, schema: pa.Schema, other: pa.Schema | None = None) -> pa.Schema:
        operator, inputs = node.operator, [schema]
        if isinstance(operator, Side) and other is not None:
            inputs = [schema, other] if operator.port == 0 else [other, schema]
        if isinstance(operator, Fold):
            # It refuses what it cannot remember.
            self._states[operator.fold] = len(compile_fold(operator, schema, other).states)
        return operator.output(inputs, self._typer)

    def _agree(
        self,
        query: Sequence[Node],
        paths: Mapping[int, tuple[pa.Schema, pa.Schema]],
        outputs: dict[str, pa.Schema],
        agreed: dict[str, pa.Schema],
    ) -> None:
        name = query[0].query
        ends = [paths[node.number][1] for node in query if node.path[-1] == node.number]
        common = Union(name).output(ends, self._typer)
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


def _check_text(spec: Spec, nodes: Sequence[Node]) -> None:
    """Refuses what workers would not read as it is: that would fail for every query, not only for the one."""
    try:
        found: Spec | None = Spec.parse(spec.text())
    except Exception:
        found = None
    if found != spec:
        raise UserError(f"query {nodes[-1].query}: it cannot be told to workers; this is a mistake in Freshet")


def _stateless(operators: Sequence[Operator]) -> list[Filter | Project]:
    return [operator for operator in operators if isinstance(operator, Filter | Project)]


def _other_side(
    node: Node,
    query: Sequence[Node],
    found: Mapping[int, tuple[pa.Schema, pa.Schema]],
    streams: Mapping[str, pa.Schema],
) -> pa.Schema | None:
    """What comes in on the other side of a join, where that is known yet."""
    mine = node.operator
    if not isinstance(mine, Side):
        return None
    for each in query:
        theirs = each.operator
        if isinstance(theirs, Side) and theirs.fold == mine.fold and theirs.port != mine.port:
            if each.is_first:
                return streams[each.reads]
            if each.number - 1 in found:
                return found[each.number - 1][1]
    return None


def _source(node: Node, *schemas: Mapping[str, pa.Schema]) -> bool:
    return any(node.reads in known for known in schemas)
