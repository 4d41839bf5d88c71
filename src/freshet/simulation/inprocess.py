"""An executor that does the real work in this process, with the compiled kernels and without Spark.

It is for tests and for trying things out: answers, states and files are those that workers on Spark would write, and a
unit may finish whenever the test wants.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from freshet.engine import Clock
from freshet.kernels import CompiledFold
from freshet.kernels.folds import compile_fold
from freshet.kernels.pipeline import Memory, Piped
from freshet.kernels.superbox import Begun, Superbox
from freshet.kernels.typer import KernelTyper
from freshet.log import SegmentWriter, StoredVersion, read_train
from freshet.model import (
    ARRIVAL,
    Chain,
    ChainResult,
    Fold,
    Node,
    OperatorRun,
    Side,
    State,
    Train,
    Unit,
    UnitResult,
    UserError,
    state_stream,
    version_stream,
)


class Columns:
    """The columns in front of and behind every node of a network, and the state streams of its folds."""

    def __init__(self) -> None:
        self.reads: dict[int, pa.Schema] = {}
        self.writes: dict[int, pa.Schema] = {}
        self.others: dict[int, pa.Schema] = {}
        """For a side of a join the columns that come in on the other side."""
        self.states: dict[str, tuple[pa.Schema, ...]] = {}

    def extend(self, nodes: Sequence[Node], streams: Mapping[str, pa.Schema]) -> None:
        """Takes in the nodes that are new."""
        waiting = [node for node in nodes if node.number not in self.reads]
        while waiting:
            later = [node for node in waiting if not self._take(node, nodes, streams)]
            if len(later) == len(waiting):
                raise UserError(f"query {waiting[0].query}: what {waiting[0].name} reads is not known")
            waiting = later

    def _take(self, node: Node, nodes: Sequence[Node], streams: Mapping[str, pa.Schema]) -> bool:
        schema = self._input(node, nodes, streams)
        other = self._other(node, nodes, streams)
        if schema is None or (isinstance(node.operator, Side) and other is None):
            return False
        self.reads[node.number] = schema
        if other is not None:
            self.others[node.number] = other
        inputs = [schema]
        if isinstance(node.operator, Side) and other is not None:
            inputs = [schema, other] if node.operator.port == 0 else [other, schema]
        self.writes[node.number] = node.operator.output(inputs, KernelTyper())
        if isinstance(node.operator, Fold):
            self.states[node.operator.fold] = compile_fold(node.operator, schema, other).states
        return True

    def _input(self, node: Node, nodes: Sequence[Node], streams: Mapping[str, pa.Schema]) -> pa.Schema | None:
        if not node.is_first:
            return self.writes.get(node.number - 1)
        if node.reads in streams:
            return streams[node.reads]
        ends = (each.number for each in nodes if each.query == node.reads and each.is_last)
        return next((self.writes[number] for number in ends if number in self.writes), None)

    def _other(self, node: Node, nodes: Sequence[Node], streams: Mapping[str, pa.Schema]) -> pa.Schema | None:
        if not isinstance(node.operator, Side):
            return None
        for each in nodes:
            side = each.operator
            if isinstance(side, Side) and side.fold == node.operator.fold and side.port != node.operator.port:
                schema = self._input(each, nodes, streams)
                if schema is not None:
                    return schema
        return None


class InProcessExecutor:
    """Runs a unit when it is submitted; when that is told is up to chance, so that units overlap as on a cluster.

    Args:
        folder: Where segment files live.
        clock: The engine's.
        slots: Units that may be on their way at once.
        seed: Draws how many of them finish at a time.
    """

    def __init__(self, folder: Path, clock: Clock, *, slots: int = 1, seed: int = 0) -> None:
        self._folder, self._clock = folder, clock
        self.slots = slots
        self._random = random.Random(seed)
        self._nodes: Sequence[Node] = ()
        self._fail: AbstractSet[str] = frozenset()
        self._columns = Columns()
        self._superboxes: dict[tuple[tuple[int, ...], ...], Superbox] = {}
        self._done: list[UnitResult] = []

    def install(
        self, nodes: Sequence[Node], schemas: Mapping[str, pa.Schema], fail_on_error: AbstractSet[str]
    ) -> Mapping[str, pa.Schema]:
        """Finds the columns of all operators."""
        self._columns.extend(nodes, schemas)
        self._nodes, self._fail = nodes, fail_on_error
        return {node.query: self._columns.writes[node.number] for node in nodes if node.is_last}

    def states(self, fold: str) -> int:
        """How many state streams a fold has."""
        return len(self._columns.states[fold])

    def submit(self, unit: Unit) -> None:
        """Runs a unit."""
        self._done.append(_Run(unit, self).result(self._clock.now()))

    def finished(self) -> Sequence[UnitResult]:
        """Some of the units that are done, in any order."""
        self._random.shuffle(self._done)
        count = self._random.randint(1, len(self._done)) if self._done else 0
        told, self._done = self._done[:count], self._done[count:]
        return told

    def next_finish(self) -> float | None:
        """Now, if something is done."""
        return self._clock.now() if self._done else None

    def cancel(self, unit: str) -> None:
        """Gives a unit up."""
        self._done = [
            UnitResult(each.unit, each.started, each.finished, retry="cancelled") if each.unit.id == unit else each
            for each in self._done
        ]

    def close(self) -> None:
        """Nothing to stop."""

    def superbox(self, chains: Sequence[Chain]) -> Superbox:
        """Chains over one input, compiled."""
        key = tuple(chain.operators for chain in chains)
        if key not in self._superboxes:
            operators = [tuple(self._nodes[number].operator for number in numbers) for numbers in key]
            others = [
                {
                    operator.fold: self._columns.others[number]
                    for number, operator in zip(numbers, some, strict=True)
                    if isinstance(operator, Side)
                }
                for numbers, some in zip(key, operators, strict=True)
            ]
            self._superboxes[key] = Superbox(operators, self.input(chains[0]), others)
        return self._superboxes[key]

    def read(self, train: Train, schema: pa.Schema) -> pa.Table:
        """The tuples of a train."""
        names = [name for name in schema.names if name != ARRIVAL]
        whole = pa.schema([*(schema.field(name) for name in names), pa.field(ARRIVAL, pa.int64())])
        return read_train(self._folder, train, whole)

    def versions(self, train: Train) -> list[StoredVersion]:
        """Versions of a table."""
        return [StoredVersion(self._folder, segment) for segment in train.segments]

    def input(self, chain: Chain) -> pa.Schema:
        """Columns that a chain reads."""
        return self._columns.reads[chain.operators[0]]

    def writer(self, name: str) -> SegmentWriter:
        """Writes the file of a unit."""
        return SegmentWriter(self._folder, name)

    def node(self, number: int) -> Node:
        """An operator in its place."""
        return self._nodes[number]

    def why_failed(self, query: str, piped: Piped) -> str | None:
        """Why the errors of a chain are a failure, if they are."""
        return f"{piped.errors} evaluation errors" if piped.errors and query in self._fail else None


class _Run:
    """One unit being run."""

    def __init__(self, unit: Unit, executor: InProcessExecutor) -> None:
        self._unit, self._executor = unit, executor
        self._pairs = [(work.train, chain) for work in unit.works for chain in work.chains]
        self._states = {state.fold: state for state in unit.states}
        self._memories: dict[str, Memory] = {}
        self._failures: dict[str, str] = {}
        self._last = {fold: place for place, (_, chain) in enumerate(self._pairs) for fold in self._folds(chain)}

    def _folds(self, chain: Chain) -> Iterator[str]:
        operators = (self._executor.node(number).operator for number in chain.operators)
        return (operator.fold for operator in operators if isinstance(operator, Fold))

    def _tables(self, chain: Chain) -> dict[str, list[StoredVersion]]:
        kept = {train.stream: train for train in self._unit.tables}
        operators = (self._executor.node(number).operator for number in chain.operators)
        tables = {operator.reads_table for operator in operators if operator.reads_table is not None}
        return {table: self._executor.versions(kept[version_stream(table)]) for table in tables}

    def _query(self, chain: Chain) -> str:
        return self._executor.node(chain.operators[0]).query

    def result(self, now: float) -> UnitResult:
        """Runs all chains in their order and writes one file."""
        made: list[Piped | None] = []
        for work in self._unit.works:
            box = self._executor.superbox(work.chains)
            begun = box.begin(self._executor.read(work.train, self._executor.input(work.chains[0])))
            for number, chain in enumerate(work.chains):
                made.append(self._chain(len(made), chain, begun[number], box.folds(number)))
        with self._executor.writer(f"{self._unit.id}-0") as writer:
            results = []
            for (train, chain), piped in zip(self._pairs, made, strict=True):
                failure = self._failures.get(self._query(chain))
                if piped is not None and failure is None:
                    writer.add(self._executor.node(chain.operators[-1]).writes, piped.table)
                results.append(_chain_result(chain, train, piped, failure))
            dropped = self._write_states(writer)
            file = writer.finish()
        if results:
            results[-1] = replace(results[-1], dropped=dropped)
        return UnitResult(self._unit, now, now, tuple(results), (file,) if file.members else ())

    def _chain(self, place: int, chain: Chain, begun: Begun, folds: Mapping[str, CompiledFold]) -> Piped | None:
        query = self._query(chain)
        if query in self._failures:
            return None
        try:
            memories = {
                name: self._memory(name, fold, is_last=self._last[name] == place) for name, fold in folds.items()
            }
            piped = begun.finish(memories, self._tables(chain))
        except Exception as error:  # whatever it is, it is this query's failure alone
            self._failures[query] = f"{type(error).__name__}: {error}"
            return None
        failure = self._executor.why_failed(query, piped)
        if failure is not None:
            self._failures[query] = failure
        return piped

    def _memory(self, name: str, fold: CompiledFold, *, is_last: bool) -> Memory:
        state = self._states[name]
        if name not in self._memories:
            self._memories[name] = Memory(self._read(state, fold.states), state.before, state.before, fold)
        # Only the last chain through a fold closes windows: what the others bring belongs into them.
        self._memories[name].after = state.after if is_last else state.before
        return self._memories[name]

    def _read(self, state: State, schemas: Sequence[pa.Schema]) -> list[pa.Table]:
        return [self._executor.read(each, schema) for each, schema in zip(state.ranges, schemas, strict=True)]

    def _write_states(self, writer: SegmentWriter) -> tuple[tuple[str, int], ...]:
        failed = {
            fold for _, chain in self._pairs if self._query(chain) in self._failures for fold in self._folds(chain)
        }
        dropped = []
        for fold, memory in self._memories.items():
            if fold in failed:
                continue
            memory.gather(self._states[fold].ranges)
            for number, (tables, gone) in enumerate(zip(memory.appended, memory.dropped, strict=True)):
                if tables:
                    writer.add(state_stream(fold, number), pa.concat_tables(tables))
                dropped.append((state_stream(fold, number), gone))
        return tuple(dropped)


def _chain_result(chain: Chain, train: Train, piped: Piped | None, failure: str | None) -> ChainResult:
    if piped is None or failure is not None:
        runs = tuple(OperatorRun(number, 0, 0, 0.0) for number in chain.operators)
        return ChainResult(chain, train, 0, runs, failure=failure)
    entered = (train.rows, *piped.passed[:-1])
    runs = tuple(
        OperatorRun(number, before, after, nanos / 1e9)
        for number, before, after, nanos in zip(chain.operators, entered, piped.passed, piped.nanos, strict=True)
    )
    arrivals = np.sort(piped.table.column(ARRIVAL).to_numpy()) / 1e6
    return ChainResult(chain, train, piped.table.num_rows, runs, arrivals, errors=piped.errors)
