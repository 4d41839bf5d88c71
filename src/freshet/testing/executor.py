"""An executor that does the real work in this process, with the compiled kernels and without Spark.

Answers, states and files are those that workers on Spark would write. A unit may finish whenever the test wants.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from freshet.engine import Clock
from freshet.kernels import CompiledFold, compile_fold
from freshet.kernels.columns import NetworkColumns
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.folds import LiveFold
from freshet.kernels.kept_states import KeptStates, StateStamp, stamp_of
from freshet.kernels.running import Made, Runner
from freshet.kernels.superbox.pipeline import Memory
from freshet.kernels.superbox.program import why_not
from freshet.kernels.superbox.superbox import Operators, Superbox
from freshet.kernels.typer import KernelTyper
from freshet.log import SegmentWriter, StoredVersion, read_train
from freshet.model import (
    ARRIVAL,
    Chain,
    ChainResult,
    Fold,
    Network,
    Operator,
    OperatorRun,
    Project,
    SegmentFile,
    Train,
    Unit,
    UnitResult,
    UserError,
    state_stream,
    version_stream,
)
from freshet.model.schema import with_arrival
from freshet.model.unit import KeptCounts, given_by
from freshet.testing.faults import Faults


class InProcessExecutor:
    """Runs a unit when it is submitted, but reports it at a random later time, so that units overlap as on a cluster.

    Args:
        folder: Where segment files live.
        clock: The engine's.
        slots: Maximum number of units on their way at once.
        seed: Draws how many of them finish at a time.
        faults: What goes wrong; None: nothing.
        cost: Seconds that an operator is said to take for a tuple; None: what it really took.
        losses: Share of the units before which their worker has lost all that it kept of states.
    """

    alone: AbstractSet[str] = frozenset()

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        slots: int = 1,
        seed: int = 0,
        faults: Faults | None = None,
        cost: float | None = None,
        losses: float = 0.1,
    ) -> None:
        self.folder, self.cost = folder, cost
        self._clock, self._faults = clock, faults or Faults()
        self.slots = slots
        self._random = random.Random(seed)
        self.network = Network()
        self.columns = NetworkColumns(KernelTyper())
        self.fail_on_error: AbstractSet[str] = frozenset()
        self._superboxes: dict[tuple[tuple[Operators, ...], pa.Schema], Superbox] = {}
        self._kept = [KeptStates(2**28) for _ in range(slots)]
        self._losses, self._losing = losses, random.Random(f"losses {seed}")
        self._done: list[UnitResult] = []

    def install(
        self, network: Network, schemas: Mapping[str, pa.Schema], fail_on_error: AbstractSet[str]
    ) -> Mapping[str, pa.Schema]:
        """Finds the columns of all operators."""
        try:
            self.columns.extend(network, schemas)
        except Unsupported:
            NetworkColumns(KernelTyper(_OnlySpark())).extend(network, schemas)
            raise
        self.network, self.fail_on_error = network, fail_on_error
        return self.columns.outputs(network)

    def states(self, fold: str) -> int:
        """How many state streams a fold has."""
        return len(self.columns.states[fold])

    def way(self, nodes: Collection[int]) -> str:
        """How nodes run: all in the same way."""
        return "vectorised"

    def submit(self, unit: Unit) -> None:
        """Runs a unit."""
        now = self._clock.now()
        undone = self._faults.begun(unit, now)
        self._done.append(undone or _UnitInProcess(unit, self, self._faults.raising(unit, self.network)).result(now))

    def finished(self) -> Sequence[UnitResult]:
        """Some of the units that are done, in any order."""
        self._random.shuffle(self._done)
        count = self._random.randint(1, len(self._done)) if self._done else 0
        told, self._done = self._done[:count], self._done[count:]
        return [self._faults.returned(result) for result in told]

    def next_finish(self) -> float | None:
        """Now, if something is done."""
        return self._clock.now() if self._done else None

    def cancel(self, unit: str) -> None:
        """Gives up a unit."""
        self._done = [
            UnitResult(each.unit, each.started, each.finished, retry="cancelled") if each.unit.id == unit else each
            for each in self._done
        ]

    def close(self) -> None:
        """Has nothing to stop."""

    def superbox(self, chains: tuple[Operators, ...], schema: pa.Schema) -> Superbox:
        """Chains over one input, compiled."""
        if (chains, schema) not in self._superboxes:
            self._superboxes[chains, schema] = Superbox(chains, schema)
        return self._superboxes[chains, schema]

    def kept_by_worker(self) -> KeptStates:
        """What the worker that runs the next unit has made of the states of folds."""
        kept = self._losing.choice(self._kept)
        if self._losing.random() < self._losses:
            kept.clear()
        return kept

    def why_failed(self, chain: Chain, errors: int) -> str | None:
        """Why the errors of a chain count as a failure; None if they do not."""
        strict = errors and not self.fail_on_error.isdisjoint(self.network.queries(chain.nodes[0]))
        return f"{errors} evaluation errors" if strict else None


class _OnlySpark:
    """Says which expression only Spark can run."""

    def plain(self, operator: Operator, schema: pa.Schema) -> pa.Schema:
        for expression in operator.expressions:
            why = why_not((Project(operator.name, (("value", expression),)),), with_arrival(schema))
            if why is not None:
                raise _refused(operator.name, expression, why)
        why = why_not((operator,), with_arrival(schema)) or ""
        raise _refused(operator.name, ", ".join(operator.expressions), why)


def _refused(operator: str, expression: str, why: str) -> UserError:
    query = operator.partition(".")[0]
    return UserError(
        f"query {query}: only Spark can compute {expression} ({why}), and this engine runs without Spark: "
        'test this query with App.start(master="local[2]")'
    )


class _UnitInProcess:
    """One unit while it runs, the setting of its chains, and the chains that are to raise."""

    rows_out = None
    blameless = ()

    def __init__(self, unit: Unit, executor: InProcessExecutor, raising: AbstractSet[int]) -> None:
        self._unit, self._executor = unit, executor
        self._raising = {unit.chains[place].nodes[0] for place in raising}
        self._states = {state.fold: state for state in unit.states}
        self._memories: dict[str, Memory] = {}
        self._found: dict[str, tuple[CompiledFold, StateStamp, LiveFold]] = {}
        self._kept = executor.kept_by_worker()
        self._before = self._kept.hits, self._kept.misses
        self._numbers = {self.operators([number])[0].name: number for number in unit.nodes}

    def _raise_in(self, *nodes: int) -> None:
        if not self._raising.isdisjoint(nodes):
            raise RuntimeError("it raised")

    def superbox(self, chains: tuple[Operators, ...], schema: pa.Schema) -> Superbox:
        self._raise_in(*(self._numbers[operators[0].name] for operators in chains))
        return self._executor.superbox(chains, schema)

    def operators(self, nodes: Sequence[int]) -> tuple[Operator, ...]:
        return tuple(self._executor.network.nodes[number].operator for number in nodes)

    def inputs(self, node: int) -> Sequence[pa.Schema]:
        return self._executor.columns.inputs[node]

    def behind(self, node: int) -> pa.Schema:
        self._raise_in(node)
        return self._executor.columns.behind[node]

    def fold(self, operator: Fold, inputs: Sequence[pa.Schema]) -> CompiledFold:
        self._raise_in(self._numbers[operator.name])
        return compile_fold(operator, *inputs)

    def read(self, train: Train, columns: pa.Schema) -> pa.Table:
        return read_train(self._executor.folder, train, with_arrival(columns))

    def memory(self, fold: str, compiled: CompiledFold) -> Memory:
        state = self._states[fold]
        live = self._kept.recall(fold, compiled, state.ranges, partial(read_train, self._executor.folder))
        self._found[fold] = compiled, stamp_of(state.ranges), live
        old = [each.rows for each in state.ranges]
        self._memories[fold] = Memory(live, old, state.before, state.after)
        return self._memories[fold]

    def versions(self, table: str) -> list[StoredVersion]:
        kept = next(train for train in self._unit.tables if train.stream == version_stream(table))
        return [StoredVersion(self._executor.folder, segment) for segment in kept.segments]

    def result(self, now: float) -> UnitResult:
        """Runs all chains and writes one file."""
        results: dict[int, ChainResult] = {}
        runner = Runner(self._unit.chains, self)
        with SegmentWriter(self._executor.folder, f"{self._unit.id}-0") as writer:
            for made in runner.run():
                chain = self._unit.chains[made.place]
                results[made.place] = result = self._result(chain, made)
                if result.failure is None and made.table is not None:
                    for stream in chain.writes:
                        writer.add(stream, made.table)
            if any(result.failure for result in results.values()):
                for place, table in runner.shared.items():
                    writer.add(given_by(self._unit.id, place), table)
            dropped = self._write_states(writer)
            file = writer.finish()
        self._keep(file)
        chains = [results[place] for place in range(len(self._unit.chains))]
        if dropped:
            chains = [replace(each, dropped=self._of(each.chain, dropped)) for each in chains]
        files, hits, misses = (file,) if file.members else (), *self._before
        kept = KeptCounts(self._kept.hits - hits, self._kept.misses - misses, self._kept.nbytes)
        return UnitResult(self._unit, now, now, tuple(chains), files, kept=kept)

    def _of(self, chain: Chain, dropped: Mapping[str, Sequence[tuple[str, int]]]) -> tuple[tuple[str, int], ...]:
        return tuple(each for operator in self.operators(chain.nodes) for each in dropped.get(operator.name, ()))

    def _write_states(self, writer: SegmentWriter) -> dict[str, list[tuple[str, int]]]:
        """Writes the new states; returns how much each fold drops from its old ones."""
        dropped: dict[str, list[tuple[str, int]]] = {}
        for fold, memory in self._memories.items():
            memory.rewrite(self._states[fold].rewrites)
            for number, (tables, gone) in enumerate(zip(memory.appended, memory.dropped, strict=True)):
                if tables:
                    writer.add(state_stream(fold, number), pa.concat_tables(tables))
                dropped.setdefault(fold, []).append((state_stream(fold, number), gone))
        return dropped

    def _keep(self, file: SegmentFile) -> None:
        """Keeps the states as they were and as the file makes them, if it is committed."""
        grown = {stream: (rows, file.name, position) for stream, rows, position, *_ in file.members}
        for fold, (compiled, stamp, live) in self._found.items():
            memory = self._memories[fold]
            changes = zip(stamp, memory.dropped, strict=True)
            after = tuple(mark.after(dropped, *grown.get(mark.stream, ())) for mark, dropped in changes)
            self._kept.keep(fold, compiled, {stamp: live, after: memory.fold})

    def _result(self, chain: Chain, made: Made) -> ChainResult:
        failure = made.failure or self._executor.why_failed(chain, made.errors)
        entered = (made.entered, *made.passed[:-1])
        cost = self._executor.cost
        runs = tuple(
            OperatorRun(number, before, after, nanos / 1e9 if cost is None else cost * before)
            for number, before, after, nanos in zip(chain.nodes, entered, made.passed, made.nanos, strict=True)
        )
        if failure is not None or made.table is None:
            return ChainResult(chain, 0, runs, failure=failure)
        arrivals = np.sort(made.table.column(ARRIVAL).to_numpy()) / 1e6
        return ChainResult(chain, made.table.num_rows, runs, arrivals, errors=made.errors)
