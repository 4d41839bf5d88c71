"""An executor that does the real work in this process, with the compiled kernels and without Spark.

Answers, states and files are those that workers on Spark would write. A unit may finish whenever the test wants.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from freshet.engine import Clock
from freshet.kernels import CompiledFold, compile_fold
from freshet.kernels.columns import NetworkColumns
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.in_parts import run_in_parts, timing_of
from freshet.kernels.keeping import kept_rows
from freshet.kernels.kept_states import KeptStates
from freshet.kernels.key_split import KeyedTrain, division
from freshet.kernels.running import Made, Runner
from freshet.kernels.superbox.program import why_not
from freshet.kernels.superbox.superbox import Operators, Superbox
from freshet.kernels.typer import KernelTyper
from freshet.kernels.unit_states import UnitStates
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
    version_stream,
)
from freshet.model.functions import forget_raised, raised_in, readable
from freshet.model.scheduling.unit import KeptCounts, Worths, components, given_by
from freshet.model.schema import with_arrival, with_one_arrival
from freshet.sql import why_failed
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
        resplits: Share of the units before which states are divided anew, into parts by key.
        stopwatch: Tells the time to instances that run in parts; None: none does.
    """

    alone: AbstractSet[str] = frozenset()
    slow: AbstractSet[int] = frozenset()

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
        resplits: float = 0.0,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        self.folder, self.cost, self.stopwatch = folder, cost, stopwatch
        self._clock, self._faults = clock, faults or Faults()
        self.slots = slots
        self._random = random.Random(seed)
        self.network = Network()
        self.columns = NetworkColumns(KernelTyper())
        self.fail_on_error: AbstractSet[str] = frozenset()
        self._superboxes: dict[tuple[tuple[Operators, ...], pa.Schema], Superbox] = {}
        self._kept = [KeptStates(2**28) for _ in range(slots)]
        self._losses, self._losing = losses, random.Random(f"losses {seed}")
        self._resplits, self._splitting = resplits, random.Random(f"resplits {seed}")
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

    def sizes(self, node: int) -> tuple[float, float]:
        """Bytes of a tuple in front of an operator and behind it, by the types of its columns."""
        return self.columns.sizes(node)

    def parts(self, fold: str, now: int, rows: int, remembered: int) -> int:
        """The number of parts that a state should have: sometimes another one than it has now."""
        if self._splitting.random() >= self._resplits or not self._keyed(fold):
            return now
        return self._splitting.choice((1, 2, 3, 4))

    def _keyed(self, fold: str) -> bool:
        return any(node.operator.split_keys for node in self.network.nodes if node.name == fold)

    def tasks(self) -> int:
        """The number of tasks of the next unit."""
        return self._splitting.choice((1, 2, 3)) if self._resplits else 1

    def operators(self, nodes: Sequence[int]) -> tuple[Operator, ...]:
        """The operators of nodes."""
        return tuple(self.network.nodes[number].operator for number in nodes)

    def fold_at(self, node: int) -> CompiledFold:
        """A fold, compiled."""
        return compile_fold(self.network.nodes[node].operator, *self.columns.inputs[node])

    def way(self, nodes: Collection[int]) -> str:
        """How nodes run: all in the same way."""
        return "vectorised"

    def submit(self, unit: Unit) -> None:
        """Runs a unit."""
        now = self._clock.now()
        undone = self._faults.begun(unit, now)
        self._done.append(undone or _run_unit(unit, self, self._faults.raising(unit, self.network), now))

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

    def why_failed(self, chain: Chain, errors: int, rows: int) -> str | None:
        """Why the errors of a chain count as a failure; None if they do not."""
        if not errors or self.fail_on_error.isdisjoint(self.network.queries(chain.nodes[0])):
            return None
        operators = self.operators(chain.nodes)
        return why_failed(errors, rows, operators, raised_in(operators))


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
        f"query {query}: only Spark can compute {readable(expression)} ({why}), and this engine runs without Spark: "
        'test this query with App.start(master="local[2]")'
    )


class _TaskInProcess:
    """Some or all chains of a unit while they run, and their setting.

    Args:
        unit: The unit.
        executor: Who runs it.
        raising: Nodes that are to raise.
        number: Which of the tasks of the unit this is.
    """

    rows_out = None
    blameless = ()

    def __init__(self, unit: Unit, executor: InProcessExecutor, raising: AbstractSet[int], number: int) -> None:
        self._unit, self._executor, self._raising, self._number = unit, executor, raising, number
        self._kept = executor.kept_by_worker()
        self._before = self._kept.hits, self._kept.misses
        self.states = UnitStates(unit.states, self._kept, self._read_state)
        self.memory = self.states.memory
        self.worths: list[Worths] = []
        self._numbers = {self.operators([number])[0].name: number for number in unit.nodes}

    def _raise_in(self, *nodes: int) -> None:
        if not self._raising.isdisjoint(nodes):
            raise RuntimeError("it raised")

    def superbox(self, chains: tuple[Operators, ...], schema: pa.Schema) -> Superbox:
        self._raise_in(*(self._numbers[operators[0].name] for operators in chains))
        return self._executor.superbox(chains, schema)

    def operators(self, nodes: Sequence[int]) -> tuple[Operator, ...]:
        return self._executor.operators(nodes)

    def inputs(self, node: int) -> Sequence[pa.Schema]:
        return self._executor.columns.inputs[node]

    def behind(self, node: int) -> pa.Schema:
        self._raise_in(node)
        return self._executor.columns.behind[node]

    def fold(self, operator: Fold, inputs: Sequence[pa.Schema]) -> CompiledFold:
        self._raise_in(self._numbers[operator.name])
        return compile_fold(operator, *inputs)

    def read(self, train: Train, columns: pa.Schema) -> pa.Table:
        kept = kept_rows(read_train(self._executor.folder, train, with_arrival(columns)), train)
        self.worths += [kept.worths] if kept.worths is not None else []
        return train.select(kept.table) if isinstance(train, KeyedTrain) else kept.table

    def _read_state(self, fold: str, part: Train, schema: pa.Schema) -> pa.Table:
        return read_train(self._executor.folder, part, schema)

    def versions(self, table: str) -> list[StoredVersion]:
        kept = next(train for train in self._unit.tables if train.stream == version_stream(table))
        return [StoredVersion(self._executor.folder, segment) for segment in kept.segments]

    def run(self, chains: Mapping[int, Chain], alone: bool) -> tuple[dict[int, ChainResult], SegmentFile]:
        """Runs chains, which have these places in the unit, and writes one file. Only a task that is alone reads whole
        trains, so that it may run in parts."""
        forget_raised()
        results: dict[int, ChainResult] = {}
        places = {place: number for number, place in enumerate(chains)}
        runner = Runner([_renumbered(chain, places) for chain in chains.values()], self)
        with SegmentWriter(self._executor.folder, f"{self._unit.id}-{self._number}") as writer:
            for made in self._made(runner, alone):
                place = list(chains)[made.place]
                chain = self._unit.chains[place]
                results[place] = result = self._result(chain, made)
                if result.failure is None and made.table is not None:
                    for stream in chain.writes:
                        writer.add(stream, with_one_arrival(made.table, chain.arrival))
            if any(result.failure for result in results.values()):
                for number, table in runner.shared.items():
                    writer.add(given_by(self._unit.id, list(chains)[number]), table)
            dropped = self._write_states(writer)
            file = writer.finish()
        self.states.keep({stream: (rows, file.name, position) for stream, rows, position, *_ in file.members})
        return {place: replace(each, dropped=self._of(each.chain, dropped)) for place, each in results.items()}, file

    def _made(self, runner: Runner, alone: bool) -> Iterator[Made]:
        timing, stopwatch = timing_of(runner.chains), self._executor.stopwatch
        if timing is None or stopwatch is None or not alone:
            return runner.run()
        return run_in_parts(runner.chains, self, timing, stopwatch)

    def counts(self) -> KeptCounts:
        """What its worker had kept."""
        hits, misses = self._before
        return KeptCounts(self._kept.hits - hits, self._kept.misses - misses, self._kept.nbytes)

    def _of(self, chain: Chain, dropped: Mapping[str, Sequence[tuple[str, int]]]) -> tuple[tuple[str, int], ...]:
        return tuple(each for operator in self.operators(chain.nodes) for each in dropped.get(operator.name, ()))

    def _write_states(self, writer: SegmentWriter) -> dict[str, list[tuple[str, int]]]:
        """Writes the new states; returns how much each fold drops from its old ones."""
        dropped: dict[str, list[tuple[str, int]]] = {}
        for fold, stream, tables, gone in self.states.changes():
            if tables:
                writer.add(stream, pa.concat_tables(tables))
            dropped.setdefault(fold, []).append((stream, gone))
        return dropped

    def _result(self, chain: Chain, made: Made) -> ChainResult:
        failure = made.failure or self._executor.why_failed(chain, made.errors, sum(made.entered))
        entered = (sum(made.entered), *made.passed[:-1])
        ports = made.entered if chain.tells_ports else ()
        cost = self._executor.cost
        runs = tuple(
            OperatorRun(number, before, after, nanos / 1e9 if cost is None else cost * before)
            for number, before, after, nanos in zip(chain.nodes, entered, made.passed, made.nanos, strict=True)
        )
        if failure is not None or made.table is None:
            return ChainResult(chain, 0, runs, failure=failure, entered=ports, share=made.share)
        arrivals = np.sort(with_one_arrival(made.table, chain.arrival).column(ARRIVAL).to_numpy()) / 1e6
        return ChainResult(
            chain, made.table.num_rows, runs, arrivals, errors=made.errors, entered=ports, share=made.share
        )


def _renumbered(chain: Chain, places: Mapping[int, int]) -> Chain:
    """A chain whose inputs are places in a shorter list."""
    return replace(chain, inputs=tuple(places[each] if isinstance(each, int) else each for each in chain.inputs))


def _run_unit(unit: Unit, executor: InProcessExecutor, raising: AbstractSet[int], now: float) -> UnitResult:
    """Runs a unit, what can be divided by key in several tasks, one after the other."""
    nodes = {unit.chains[place].nodes[0] for place in raising}
    tasks = [_TaskInProcess(unit, executor, nodes, number) for number in range(executor.tasks())]
    mine: list[dict[int, Chain]] = [{} for _ in tasks]
    for component in components(unit.chains):
        by_key = division(unit.chains, component, tasks[0].states.state, executor.operators, executor.fold_at)
        if by_key is None:
            mine[0] |= {place: unit.chains[place] for place in component}
            continue
        folds = {each.name for place in component for each in executor.operators(unit.chains[place].nodes)}
        for number, task in enumerate(tasks):
            if own := by_key.own(number, len(tasks)):
                task.states.own |= dict.fromkeys(folds, own)
                mine[number] |= {place: by_key.bound(place, unit.chains[place], own) for place in component}
    busy = [(task, dict(sorted(some.items()))) for task, some in zip(tasks, mine, strict=True) if some]
    done = [task.run(some, alone=len(busy) == 1) for task, some in busy]
    chains = [
        _together([results[place] for results, _ in done if place in results]) for place in range(len(unit.chains))
    ]
    kept = KeptCounts()
    for task in tasks:
        kept = kept.plus(task.counts())
    worths = tuple(each for task in tasks for each in task.worths)
    files = tuple(file for _, file in done if file.members)
    return UnitResult(unit, now, now, tuple(chains), files, kept=kept, worths=worths)


def _together(results: Sequence[ChainResult]) -> ChainResult:
    """What several tasks did in a chain."""
    first, *others = results
    for each in others:
        pairs = zip(first.operators, each.operators, strict=True)
        first = ChainResult(
            first.chain,
            first.rows_out + each.rows_out,
            tuple(
                OperatorRun(a.operator, a.rows_in + b.rows_in, a.rows_out + b.rows_out, a.seconds + b.seconds)
                for a, b in pairs
            ),
            np.sort(np.concatenate([first.arrivals, each.arrivals])),
            errors=first.errors + each.errors,
            failure=first.failure or each.failure,
            dropped=(*first.dropped, *each.dropped),
            entered=tuple(map(sum, zip(first.entered, each.entered, strict=True))),
            share=first.share,
        )
    return first if first.failure is None else replace(first, rows_out=0, arrivals=())
