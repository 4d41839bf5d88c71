"""Runs the chains of a unit over Arrow tables: the same in a worker of Spark and without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Protocol

import pyarrow as pa

from freshet.kernels.folds import CompiledFold
from freshet.kernels.superbox.allowance import allowance, check_rows
from freshet.kernels.superbox.pipeline import Memory, Piped
from freshet.kernels.superbox.superbox import Begun, Operators, Superbox
from freshet.kernels.table_join import Version
from freshet.kernels.union import unite
from freshet.model import Chain, Fold, Input, Operator, Train


class Setting(Protocol):
    """What the chains of a unit find where they run."""

    @property
    def rows_out(self) -> int | None:
        """Rows that a chain may give out for each row that it reads; None: any number."""

    @property
    def blameless(self) -> tuple[type[Exception], ...]:
        """Errors that are no chain's fault: they end the unit."""

    def operators(self, nodes: Sequence[int]) -> tuple[Operator, ...]:
        """What nodes do."""

    def inputs(self, node: int) -> Sequence[pa.Schema]:
        """Columns that come in at each port of a node, the arrival apart."""

    def behind(self, node: int) -> pa.Schema:
        """Columns that a node gives out, the arrival apart."""

    def superbox(self, chains: tuple[Operators, ...], schema: pa.Schema) -> Superbox:
        """Chains over one input, compiled."""

    def fold(self, operator: Fold, inputs: Sequence[pa.Schema]) -> CompiledFold:
        """A fold, compiled."""

    def read(self, train: Train, columns: pa.Schema) -> pa.Table:
        """The tuples of a train, the arrival last."""

    def memory(self, fold: str, compiled: CompiledFold) -> Memory:
        """What a fold remembers when the unit begins."""

    def versions(self, table: str) -> Sequence[Version]:
        """What is kept of a table."""


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a chain.

    Args:
        place: Its place in the unit.
        table: What it gives out; None where it failed.
        entered: Rows that came in.
        passed: Rows that came out of each of its nodes.
        nanos: Nanoseconds that each of them took.
        errors: Evaluation errors, which gave NULL.
        failure: Why it failed.
    """

    place: int
    table: pa.Table | pa.RecordBatch | None
    entered: int
    passed: tuple[int, ...]
    nanos: tuple[int, ...]
    errors: int = 0
    failure: str | None = None


def run_chains(chains: Sequence[Chain], setting: Setting) -> Iterator[Made]:
    """Runs chains, each after those that it reads. One that raises does not stop the others, but those behind it.

    Chains over the same input run as one superbox: what they have in common is computed once.
    """
    return _Unit(chains, setting).run()


class _Unit:
    def __init__(self, chains: Sequence[Chain], setting: Setting) -> None:
        self._chains, self._setting = chains, setting
        self._given: dict[int, pa.Table] = {}
        self._failures: dict[int, str] = {}
        self._wanted = Counter(each for chain in chains for each in chain.inputs if isinstance(each, int))
        self._alike: dict[Hashable, list[int]] = {}
        for place, chain in enumerate(chains):
            key = _key(chain.inputs[0]) if len(chain.inputs) == 1 else ("alone", place)
            self._alike.setdefault(key, []).append(place)

    def run(self) -> Iterator[Made]:
        for places in self._alike.values():
            for made in self._together(places) if len(self._chains[places[0]].inputs) == 1 else self._led(places[0]):
                if made.failure is not None:
                    self._failures[made.place] = made.failure
                elif self._wanted[made.place]:
                    self._given[made.place] = _as_table(made.table)
                yield made

    def _failed(self, place: int, failure: str) -> Made:
        nothing = (0,) * len(self._chains[place].nodes)
        return Made(place, None, 0, nothing, nothing, failure=failure)

    def _failure_before(self, place: int) -> str | None:
        inputs = self._chains[place].inputs
        return next((self._failures[each] for each in inputs if isinstance(each, int) and each in self._failures), None)

    def _input(self, each: Input, columns: pa.Schema, readers: int = 1) -> pa.Table:
        if isinstance(each, Train):
            return self._setting.read(each, columns)
        table = self._given[each]
        self._wanted[each] -= readers
        if not self._wanted[each]:
            del self._given[each]
        return table

    def _together(self, places: Sequence[int]) -> Iterator[Made]:
        """Chains over one input."""
        failure = self._failure_before(places[0])
        if failure is not None:
            yield from (self._failed(place, failure) for place in places)
            return
        chain = self._chains[places[0]]
        table = self._input(chain.inputs[0], self._setting.inputs(chain.nodes[0])[0], len(places))
        yield from self._over(table, places)

    def _over(self, table: pa.Table, places: Sequence[int]) -> Iterator[Made]:
        # In one order, whatever that of the plan is: the same set must not be compiled again.
        ordered = sorted(places, key=lambda place: self._chains[place].nodes)
        operators = tuple(self._setting.operators(self._chains[place].nodes) for place in ordered)
        try:
            box = self._setting.superbox(operators, table.schema)
        except Exception as error:  # whose fault it is shows when each is compiled by itself
            if len(places) == 1:
                yield self._failed(places[0], f"{type(error).__name__}: {error}")
            else:
                for place in places:
                    yield from self._over(table, [place])
            return
        begun = dict(zip(ordered, box.begin(table), strict=True))
        numbers = {place: number for number, place in enumerate(ordered)}
        for place in places:
            folds = box.folds(numbers[place])
            yield self._finish(place, table.num_rows, begun.pop(place), folds)

    def _finish(self, place: int, rows: int, begun: Begun, folds: Mapping[str, CompiledFold]) -> Made:
        """Runs what is left of a chain over so many rows."""
        if begun.failure is not None:
            return self._failed(place, begun.failure)
        try:
            piped = self._piped(self._setting.operators(self._chains[place].nodes), rows, begun, folds)
        except self._setting.blameless:
            raise
        except Exception as error:  # whatever it is, it is this chain's failure
            return self._failed(place, f"{type(error).__name__}: {error}")
        return Made(place, piped.table, rows, piped.passed, piped.nanos, piped.errors)

    def _piped(
        self, operators: Sequence[Operator], rows: int, begun: Begun, folds: Mapping[str, CompiledFold]
    ) -> Piped:
        memories = {name: self._setting.memory(name, fold) for name, fold in folds.items()}
        names = dict.fromkeys(each.reads_table for each in operators if each.reads_table is not None)
        tables = {name: self._setting.versions(name) for name in names}
        with allowance(rows + _remembered(memories, tables), self._setting.rows_out):
            piped = begun.finish(memories, tables)
            check_rows(max(piped.passed))
        return piped

    def _led(self, place: int) -> Iterator[Made]:
        """A chain that begins with a node of several inputs."""
        failure = self._failure_before(place)
        if failure is not None:
            yield self._failed(place, failure)
            return
        chain, setting = self._chains[place], self._setting
        columns = setting.inputs(chain.nodes[0])
        tables = [self._input(each, schema) for each, schema in zip(chain.inputs, columns, strict=True)]
        try:
            yield self._lead(place, tables, setting.operators(chain.nodes))
        except setting.blameless:
            raise
        except Exception as error:
            yield self._failed(place, f"{type(error).__name__}: {error}")

    def _lead(self, place: int, tables: Sequence[pa.Table], operators: tuple[Operator, ...]) -> Made:
        setting, entered = self._setting, sum(table.num_rows for table in tables)
        first, rest = operators[0], operators[1:]
        began, errors = perf_counter_ns(), 0
        if isinstance(first, Fold):
            compiled = setting.fold(first, setting.inputs(self._chains[place].nodes[0]))
            memory = setting.memory(first.name, compiled)
            with allowance(entered + _remembered({first.name: memory}, {}), setting.rows_out):
                table, errors = fold_ports(compiled, tables, memory)
                check_rows(table.num_rows)
        else:
            table = unite(tables, setting.behind(self._chains[place].nodes[0]))
        nanos = (perf_counter_ns() - began,)
        if not rest:
            return Made(place, table, entered, (table.num_rows,), nanos, errors)
        box = setting.superbox((rest,), table.schema)
        piped = self._piped(rest, max(entered, table.num_rows), box.begin(table)[0], box.folds(0))
        passed = (table.num_rows, *piped.passed)
        return Made(place, piped.table, entered, passed, (*nanos, *piped.nanos), errors + piped.errors)


def fold_ports(compiled: CompiledFold, tables: Sequence[pa.Table], memory: Memory) -> tuple[pa.Table, int]:
    """Folds the tuples of each port in; returns what it gives out, and the errors.

    Only the last run lets time pass: what the others bring belongs into what it closes.
    """
    ports = [port for port, table in enumerate(tables) if table.num_rows] or [len(tables) - 1]
    outputs, errors = [], 0
    for port in ports:
        after = memory.after if port == ports[-1] else memory.before
        folded = compiled.run(tables[port], memory.states, memory.before, after, port)
        memory.change(folded.appended, folded.dropped)
        outputs.append(folded.output)
        errors += folded.errors
    return pa.concat_tables(outputs), errors


def _key(each: Input) -> Hashable:
    return (each.stream, each.first, each.end) if isinstance(each, Train) else each


def _as_table(made: pa.Table | pa.RecordBatch | None) -> pa.Table:
    return pa.Table.from_batches([made]) if isinstance(made, pa.RecordBatch) else made


def _remembered(memories: Mapping[str, Memory], tables: Mapping[str, Sequence[Version]]) -> int:
    """Rows that a chain reads besides those that come in."""
    states: int = sum(rows.num_rows for memory in memories.values() for rows in memory.states)
    return states + sum(map(len, tables.values()))
