"""Runs the chains of a unit over Arrow tables: the same in a worker of Spark and without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import Protocol

import pyarrow as pa

from freshet.kernels.folds import CompiledFold
from freshet.kernels.key_split import KeyedTrain
from freshet.kernels.superbox.allowance import allowance, check_rows
from freshet.kernels.superbox.pipeline import Memory, Piped
from freshet.kernels.superbox.superbox import Begun, Operators, Superbox
from freshet.kernels.table_join import Version
from freshet.kernels.union import unite
from freshet.model import Chain, Fold, Input, Operator, Train
from freshet.model.messages import sentence


class Setting(Protocol):
    """What the chains of a unit need from the place where they run."""

    @property
    def rows_out(self) -> int | None:
        """Maximum number of rows that a chain may give out for each row that it reads; None: any number."""

    @property
    def blameless(self) -> tuple[type[Exception], ...]:
        """Errors that are not the fault of a chain: they end the unit."""

    def operators(self, nodes: Sequence[int]) -> tuple[Operator, ...]:
        """The operators of nodes."""

    def inputs(self, node: int) -> Sequence[pa.Schema]:
        """Columns that come in at each port of a node, without the arrival."""

    def behind(self, node: int) -> pa.Schema:
        """Columns that a node gives out, without the arrival."""

    def superbox(self, chains: tuple[Operators, ...], schema: pa.Schema) -> Superbox:
        """Chains over one input, compiled."""

    def fold(self, operator: Fold, inputs: Sequence[pa.Schema]) -> CompiledFold:
        """A fold, compiled."""

    def read(self, train: Train, columns: pa.Schema) -> pa.Table:
        """The tuples of a train, with the arrival as last column."""

    def memory(self, fold: str, compiled: CompiledFold) -> Memory:
        """What a fold remembers when the unit begins."""

    def versions(self, table: str) -> Sequence[Version]:
        """The versions of a table that are kept."""


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a chain.

    Args:
        place: Its place in the unit.
        table: The rows that it gives out; None if it failed.
        entered: Number of rows that came in at each port.
        passed: Number of rows that came out of each of its nodes.
        nanos: Nanoseconds that each of its nodes took.
        errors: Number of evaluation errors, which gave NULL.
        failure: Why it failed.
        share: Share of what was to be kept that was read, if its time was over before.
    """

    place: int
    table: pa.Table | pa.RecordBatch | None
    entered: tuple[int, ...]
    passed: tuple[int, ...]
    nanos: tuple[int, ...]
    errors: int = 0
    failure: str | None = None
    share: float = 1.0


class Runner:
    """Runs chains, each after those that it reads. If a chain raises, only the chains behind it fail with it.

    Chains over the same input run as one superbox, which computes common parts once.
    """

    def __init__(self, chains: Sequence[Chain], setting: Setting) -> None:
        self.chains, self._setting = chains, setting
        self._given: dict[int, pa.Table] = {}
        self._failures: dict[int, str] = {}
        self._wanted = Counter(each for chain in chains for each in chain.inputs if isinstance(each, int))
        self._shared = {place for place, readers in self._wanted.items() if readers > 1 and not chains[place].writes}
        self._alike: dict[Hashable, list[int]] = {}
        for place, chain in enumerate(chains):
            key = _key(chain.inputs[0]) if len(chain.inputs) == 1 else ("alone", place)
            self._alike.setdefault(key, []).append(place)

    @property
    def shared(self) -> dict[int, pa.Table]:
        """Outputs, by place, of the chains that have run and that several others read, but no stream takes. If one of
        the readers failed, the output belongs in the files of the unit. A single reader needs no copy: it and what it
        reads serve the same queries, so both take effect or neither does."""
        return {place: self._given[place] for place in self._shared if place in self._given}

    def run(self) -> Iterator[Made]:
        """Runs all chains, and yields the result of each as soon as it has run."""
        for places in self._alike.values():
            for made in self._outcomes(places):
                if made.failure is not None:
                    self._failures[made.place] = made.failure
                elif self._wanted[made.place]:
                    self._given[made.place] = _as_table(made.table)
                yield made

    def _failed(self, place: int, failure: str) -> Made:
        nothing = (0,) * len(self.chains[place].nodes)
        return Made(place, None, (0,) * len(self.chains[place].inputs), nothing, nothing, failure=failure)

    def _outcomes(self, places: Sequence[int]) -> Iterator[Made]:
        """The results of chains over one input, or of one chain over several inputs."""
        chain = self.chains[places[0]]
        failures = [self._failures[each] for each in chain.inputs if isinstance(each, int) and each in self._failures]
        if failures:
            yield from (self._failed(place, failures[0]) for place in places)
            return
        columns = self._setting.inputs(chain.nodes[0])
        tables = [self._input(each, schema, len(places)) for each, schema in zip(chain.inputs, columns, strict=True)]
        if len(tables) == 1:
            yield from self._over(tables[0], places)
        else:
            yield self._attempt(places[0], lambda: self._lead(places[0], tables))

    def _attempt(self, place: int, run: Callable[[], Made]) -> Made:
        try:
            return run()
        except self._setting.blameless:
            raise
        except Exception as error:  # whatever it is, it is this chain's failure
            return self._failed(place, sentence(error))

    def _input(self, each: Input, columns: pa.Schema, readers: int) -> pa.Table:
        if isinstance(each, Train):
            return self._setting.read(each, columns)
        table = self._given[each]
        self._wanted[each] -= readers
        if not self._wanted[each] and each not in self._shared:
            del self._given[each]
        return table

    def _over(self, table: pa.Table, places: Sequence[int]) -> Iterator[Made]:
        # Sorted, whatever their order in the plan is: the same set must not be compiled again.
        ordered = sorted(places, key=lambda place: self.chains[place].nodes)
        operators = tuple(self._setting.operators(self.chains[place].nodes) for place in ordered)
        try:
            box = self._setting.superbox(operators, table.schema)
        except Exception as error:  # to see whose fault it is, compile each by itself
            if len(places) == 1:
                yield self._failed(places[0], sentence(error))
            else:
                for place in places:
                    yield from self._over(table, [place])
            return
        begun = dict(zip(ordered, box.begin(table), strict=True))
        numbers = {place: number for number, place in enumerate(ordered)}
        for place in places:
            number, mine = numbers[place], begun.pop(place)
            run = partial(self._finish, place, table.num_rows, operators[number], mine, box.folds(number))
            yield self._attempt(place, run)

    def _finish(
        self, place: int, rows: int, operators: Operators, begun: Begun, folds: Mapping[str, CompiledFold]
    ) -> Made:
        """Runs the rest of a chain that read this many rows."""
        if begun.failure is not None:
            return self._failed(place, begun.failure)
        piped = self._piped(operators, rows, begun, folds)
        return Made(place, piped.table, (rows,), piped.passed, piped.nanos, piped.errors)

    def _piped(
        self, operators: Sequence[Operator], rows: int, begun: Begun, folds: Mapping[str, CompiledFold]
    ) -> Piped:
        if begun.is_done and self._setting.rows_out is None:  # a unit may have a thousand such chains
            return begun.finish({})
        memories = {name: self._setting.memory(name, fold) for name, fold in folds.items()}
        names = dict.fromkeys(each.reads_table for each in operators if each.reads_table is not None)
        tables = {name: self._setting.versions(name) for name in names}
        with allowance(rows + _remembered(memories, tables), self._setting.rows_out):
            piped = begun.finish(memories, tables)
            check_rows(max(piped.passed))
        return piped

    def _lead(self, place: int, tables: Sequence[pa.Table]) -> Made:
        """Runs a chain that begins with a node of several inputs."""
        setting, ports = self._setting, tuple(table.num_rows for table in tables)
        entered = sum(ports)
        first, *rest = setting.operators(self.chains[place].nodes)
        began, errors = perf_counter_ns(), 0
        if isinstance(first, Fold):
            compiled = setting.fold(first, setting.inputs(self.chains[place].nodes[0]))
            memory = setting.memory(first.name, compiled)
            with allowance(entered + _remembered({first.name: memory}, {}), setting.rows_out):
                table, errors = fold_ports(tables, memory)
                check_rows(table.num_rows)
        else:
            table = unite(tables, setting.behind(self.chains[place].nodes[0]))
        nanos = (perf_counter_ns() - began,)
        if not rest:
            return Made(place, table, ports, (table.num_rows,), nanos, errors)
        box = setting.superbox((tuple(rest),), table.schema)
        piped = self._piped(rest, max(entered, table.num_rows), box.begin(table)[0], box.folds(0))
        passed = (table.num_rows, *piped.passed)
        return Made(place, piped.table, ports, passed, (*nanos, *piped.nanos), errors + piped.errors)


def fold_ports(tables: Sequence[pa.Table], memory: Memory) -> tuple[pa.Table, int]:
    """Folds the tuples of each port in; returns the rows that it gives out, and the number of errors.

    Only the last run lets time pass: the windows that it closes also need the tuples of the runs before it.
    """
    ports = [port for port, table in enumerate(tables) if table.num_rows] or [len(tables) - 1]
    outputs, errors = [], 0
    for port in ports:
        after = memory.after if port == ports[-1] else memory.before
        folded = memory.run(tables[port], after, port)
        outputs.append(folded.output)
        errors += folded.errors
    return pa.concat_tables(outputs), errors


def _key(each: Input) -> Hashable:
    if isinstance(each, KeyedTrain):
        return each.stream, each.first, each.end, each.keep, each.path, each.own, each.parts
    return (each.stream, each.first, each.end, each.keep) if isinstance(each, Train) else each


def _as_table(made: pa.Table | pa.RecordBatch | None) -> pa.Table:
    return pa.Table.from_batches([made]) if isinstance(made, pa.RecordBatch) else made


def _remembered(memories: Mapping[str, Memory], tables: Mapping[str, Sequence[Version]]) -> int:
    """Number of rows that a chain reads besides its input."""
    return sum(memory.fold.rows for memory in memories.values()) + sum(map(len, tables.values()))
