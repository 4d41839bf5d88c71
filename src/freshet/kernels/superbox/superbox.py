"""All chains of a step over one input, which compute common parts once.

Chains share the columns that they read and equal expressions (:class:`~freshet.kernels.superbox.program.Program`).
Chains with the same filters and then a sliding aggregate with the same keys also share filtered tuples and panes
(:class:`~freshet.kernels.folds.panes.common.CommonPanes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import pyarrow as pa

from freshet.kernels.folds import CompiledFold
from freshet.kernels.folds.panes.common import CommonPanes
from freshet.kernels.folds.panes.panes import CompiledPanes
from freshet.kernels.folds.panes.rows import PaneRows
from freshet.kernels.superbox.chain import ChainOutput
from freshet.kernels.superbox.family import Family, families
from freshet.kernels.superbox.pipeline import Memory, Piped, Rest, Tables, head
from freshet.kernels.superbox.program import Program
from freshet.model import Operator
from freshet.model.schema import without_arrival

Operators = tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class Begun:
    """A chain up to its first fold or lookup, or to its end.

    Args:
        head: Its output so far; None if the chain begins with a fold or lookup.
        rest: The operators that are left.
        rows: Rows for the fold that comes next, if they were made for several chains together.
        nanos: Nanoseconds that these rows took.
        table: The input, if the chain begins with a fold or lookup.
    """

    head: ChainOutput | None
    rest: Rest
    rows: Sequence[PaneRows] | None = None
    nanos: int = 0
    table: pa.Table | None = None

    @property
    def failure(self) -> str | None:
        """Why the chain failed, if it did."""
        return None if self.head is None else self.head.failure

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to run: the chain has neither folds nor lookups."""
        return self.head is not None and self.rest.is_empty

    def finish(self, memories: Mapping[str, Memory], tables: Tables | None = None) -> Piped:
        """Runs the rest, which changes the memories of its folds.

        Raises:
            RuntimeError: The chain failed before.
        """
        head = self.head
        if head is None:
            return self.rest.run(self.table, memories, tables)
        if head.failure is not None:
            raise RuntimeError(head.failure)
        if self.rest.is_empty:
            return Piped(head.batch, head.passed, head.nanos, head.errors)
        piped = self.rest.run(pa.Table.from_batches([head.batch]), memories, tables, self.rows)
        nanos = (*head.nanos, piped.nanos[0] + self.nanos, *piped.nanos[1:])
        return Piped(piped.table, head.passed + piped.passed, nanos, head.errors + piped.errors)


class Superbox:
    """Chains over one input, compiled.

    Args:
        chains: Their operators.
        schema: Columns of the input; the arrival may be missing.

    Raises:
        Unsupported: A chain has expressions that are not compiled.

    >>> from freshet.model import ARRIVAL, Call, Filter, Lifetime, Panes, Project
    >>> def sliding(name, size, call):
    ...     columns = Project(f"{name}.input", (("ts", "ts"), ("k", "k"), ("v", "v * 2")))
    ...     return (Filter(f"{name}.filter", "v > 0"), columns, Panes(name, Lifetime("ts", size), 10, ("k",), (call,)))
    >>> schema = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    >>> box = Superbox([sliding("a", 10, Call("n", "count")), sliding("b", 20, Call("s", "sum", "v"))], schema)
    >>> box.families
    ((0, 1),)
    >>> rows = [(1, "x", 1, 0), (2, "x", 2, 0), (3, "x", 4, 0), (12, "x", 5, 0)]
    >>> begun = box.begin(pa.table([pa.array(each) for each in zip(*rows)], names=["ts", "k", "v", ARRIVAL]))
    >>> folds = [box.folds(number)[name] for number, name in enumerate("ab")]
    >>> memories = [Memory.of(fold, [each.empty_table() for each in fold.states], [None], [12]) for fold in folds]
    >>> [one, two] = [begun[n].finish({name: memories[n]}) for n, name in enumerate("ab")]
    >>> one.table.select(["k", "n"]).to_pylist(), two.table.select(["k", "s"]).to_pylist()
    ([{'k': 'x', 'n': 3}], [{'k': 'x', 's': 14}])
    """

    def __init__(self, chains: Sequence[Operators], schema: pa.Schema) -> None:
        self._heads = [head(operators) for operators in chains]
        self._families = families(chains)
        self._schema = schema
        self._alone: dict[int, Program] = {}
        in_family = {member for family in self._families for member in family.members}
        plain = [number for number, begin in enumerate(self._heads) if begin and number not in in_family]
        made = [*(self._heads[number] for number in plain), *(each for f in self._families for each in f.chains)]
        self._program = Program(made, schema) if made else None
        self._plain = {number: place for place, number in enumerate(plain)}
        self._begins = [len(plain) + sum(len(f.chains) for f in self._families[:n]) for n in range(len(self._families))]
        schemas = self._schemas()
        self._rests = [
            Rest(operators[len(self._heads[number]) :], schemas[number]) for number, operators in enumerate(chains)
        ]
        self._common = [
            CommonPanes([(self._panes(number), f.names[number]) for number in f.members], self._columns(at))
            for f, at in zip(self._families, self._begins, strict=True)
        ]

    @property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """The chains that share panes, by their numbers."""
        return tuple(family.members for family in self._families)

    def folds(self, number: int) -> Mapping[str, CompiledFold]:
        """The folds of a chain by name."""
        return self._rests[number].folds

    def begin(self, table: pa.Table) -> list[Begun]:
        """Runs all chains up to their first fold or lookup. A chain that raises does not stop the others."""
        outputs = self._program.run(table) if self._program is not None else []
        begun = {number: Begun(outputs[place], self._rests[number]) for number, place in self._plain.items()}
        for family, common, at in zip(self._families, self._common, self._begins, strict=True):
            begun |= self._begin_family(family, common, outputs[at : at + len(family.chains)], table)
        return [begun.get(number) or Begun(None, rest, table=table) for number, rest in enumerate(self._rests)]

    def _begin_family(
        self, family: Family, common: CommonPanes, outputs: Sequence[ChainOutput], table: pa.Table
    ) -> dict[int, Begun]:
        together = outputs[0]
        # Only a run of each chain by itself shows whose error it was, and whether the order of filters matters.
        if any(each.failure or each.errors or each.batch.num_rows != together.batch.num_rows for each in outputs):
            return {number: Begun(self._run_alone(number, table), self._rests[number]) for number in family.members}
        began = perf_counter_ns()
        rows = common.make(pa.Table.from_batches([together.batch]))
        nanos = (perf_counter_ns() - began) // len(family.members)
        begun = {}
        for place, number in enumerate(family.members):
            output = family.output(number, outputs)
            begun[number] = Begun(output, self._rests[number], rows[place] if rows else None, nanos)
        return begun

    def _run_alone(self, number: int, table: pa.Table) -> ChainOutput:
        if number not in self._alone:
            self._alone[number] = Program([self._heads[number]], self._schema)
        return self._alone[number].run(table)[0]

    def _columns(self, place: int) -> pa.Schema:
        assert self._program is not None
        return without_arrival(self._program.schemas[place])

    def _schemas(self) -> dict[int, pa.Schema]:
        """The input columns of each chain's first fold or lookup."""
        found = {number: without_arrival(self._schema) for number, begin in enumerate(self._heads) if not begin}
        found |= {number: self._columns(place) for number, place in self._plain.items()}
        for family, at in zip(self._families, self._begins, strict=True):
            for number in family.members:
                common, names = self._columns(at), family.names[number]
                found[number] = pa.schema([common.field(name).with_name(own) for own, name in names.items()])
        return found

    def _panes(self, number: int) -> CompiledPanes:
        first = next(iter(self.folds(number).values()))
        assert isinstance(first, CompiledPanes)
        return first
