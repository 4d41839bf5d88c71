"""The vectorised form: one task reads a part of every train and runs all chains with compiled kernels.

The plan is ``range(P) -> mapInArrow``, built once per P and free of exchanges: a plan with an exchange would silently
give the rows of its first run again. Whatever changes between units comes in a job-local property.
"""

from __future__ import annotations

import gc
import resource
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshet.kernels import CompiledFold, compile_fold
from freshet.kernels.in_parts import run_in_parts, timing_of
from freshet.kernels.kept_states import KeptStates
from freshet.kernels.key_split import Division, KeyedTrain, division
from freshet.kernels.running import Runner
from freshet.kernels.superbox.superbox import Operators, Superbox
from freshet.kernels.typer import KernelTyper
from freshet.kernels.unit_states import UnitStates
from freshet.log import StoredVersion
from freshet.model import Chain, Fold, Train, version_stream
from freshet.model.functions import forget_raised, raised_in
from freshet.model.scheduling.unit import KeptCounts, components
from freshet.spark.driver.failures import Retry, no_blame
from freshet.spark.worker.assignment import is_whole
from freshet.spark.worker.report import REPORT_COLUMNS, ChainReport, TaskReport
from freshet.spark.worker.task import UNREADABLE, Task, drain

Chains = tuple[Operators, ...]
_compiled = lru_cache(maxsize=256)(compile_fold)


def vectorised_plan(session: SparkSession, parts: int) -> DataFrame:
    """The plan over a number of tasks."""
    return session.range(0, parts, 1, parts).mapInArrow(run_vectorised, REPORT_COLUMNS)


def run_vectorised(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task of a Spark job."""
    drain(batches)
    task = Task.begin()
    yield task.row(run_task(task))


def run_task(task: Task, between: Callable[[], None] = lambda: None) -> TaskReport:
    """Runs the chains of a task, writes its file, and keeps what it has made of states.

    Args:
        task: The task.
        between: Is called after each chain; it may raise to end the task early.
    """
    forget_raised()
    setting = TaskSetting(task)
    mine = _mine(task, setting)
    places = list(mine)
    runner, failed = Runner(list(mine.values()), setting), False
    timing = None if task.assignment.parts > 1 else timing_of(runner.chains)
    for made in runner.run() if timing is None else run_in_parts(runner.chains, setting, timing):
        place = places[made.place]
        if made.failure is not None:
            setting.fail(task.assignment.chains[place])
            failed = True
        entered = made.entered if task.assignment.chains[place].tells_ports else ()
        raised = raised_in(task.spec.chain(task.assignment.chains[place].nodes)) if made.errors else ""
        done = ChainReport(
            place, None, made.passed, made.nanos, (), made.errors, made.failure, entered, made.share, raised
        )
        task.add(done, made.table)
        between()
    for number, table in runner.shared.items() if failed else ():
        task.add_given(places[number], table)
    setting.finish()
    report = task.report()
    return replace(report, kept=setting.keep(report))


def _mine(task: Task, setting: TaskSetting) -> dict[int, Chain]:
    """The chains that this task runs, by their places. Their inputs are trains, and places among these chains.

    If tasks can share the tuples of connected chains, each takes a part of them, or those with keys of its own; else
    one task runs these chains. If chains are dealt, one task runs them in any case.
    """
    chains, parts = task.assignment.chains, task.assignment.parts
    if parts == 1:
        return dict(enumerate(chains))
    found: dict[int, Chain] = {}
    for number, component in enumerate(components(chains)):
        if task.assignment.dealt:
            found |= {place: chains[place] for place in component} if number % parts == task.part else {}
        elif (whole := _undivided(task, component)) is None:
            some = {place: _part(task, chains[place]) for place in component}
            found |= some if any(chain.rows for chain in some.values()) else {}
        elif (by_key := setting.division(component)) is not None:
            found |= setting.divide(component, by_key)
        elif zlib.crc32(whole.encode()) % parts == task.part:
            found |= {place: chains[place] for place in component}
    places = {place: number for number, place in enumerate(sorted(found))}

    def own(chain: Chain) -> Chain:
        return replace(chain, inputs=tuple(places[each] if isinstance(each, int) else each for each in chain.inputs))

    return {place: own(found[place]) for place in places}


def _undivided(task: Task, component: Sequence[int]) -> str | None:
    """The first operator of connected chains that needs more than some tuples of a train; None: none does."""
    operators = (each for place in component for each in task.spec.chain(task.assignment.chains[place].nodes))
    return next((each.name for each in operators if each.remembers and each.name not in task.assignment.parted), None)


def _part(task: Task, chain: Chain) -> Chain:
    return replace(chain, inputs=tuple(task.train(each) if isinstance(each, Train) else each for each in chain.inputs))


class TaskVersion(StoredVersion):
    """A version of a table as a task reads it: if its file cannot be read, the unit runs again."""

    __slots__ = ()

    def read(self) -> pa.Table:
        with no_blame(f"a version of {self.segment.stream} {UNREADABLE}"):
            return StoredVersion.read(self)


class Lacking(Exception):
    """A task got a brief assignment, but has not kept the state of a fold: it needs the whole one."""


class TaskSetting:
    """What chains find in a task; implements :class:`freshet.kernels.running.Setting`."""

    blameless: Final = (Retry, Lacking)

    def __init__(self, task: Task) -> None:
        self._task = task
        assignment = task.assignment
        self._states = UnitStates(assignment.states, KEPT, self._read_state, assignment.segments)
        self._failed: set[str] = set()
        self.rows_out = task.spec.rows_out
        self.operators = task.spec.chain
        self.superbox = _SUPERBOXES.get
        self.memory = self._states.memory
        KEPT.most_bytes = within_limit(task.spec.kept_bytes)
        self._before = KEPT.hits, KEPT.misses
        self._tables = {train.stream: train.segments for train in assignment.tables}

    def division(self, component: Sequence[int]) -> Division | None:
        """How connected chains can be divided by key; None: one task must run all of them."""
        return division(self._task.assignment.chains, component, self._states.state, self.operators, self._fold_at)

    def divide(self, component: Sequence[int], by_key: Division) -> dict[int, Chain]:
        """Connected chains for the parts that are this task's own."""
        task, chains = self._task, self._task.assignment.chains
        own = by_key.own(task.part, task.assignment.parts)
        if not own:
            return {}
        nodes = [number for place in component for number in chains[place].nodes]
        self._states.own |= {each.name: own for each in self.operators(nodes) if each.remembers}
        return {place: by_key.bound(place, chains[place], own) for place in component}

    def _fold_at(self, node: int) -> CompiledFold:
        return _compiled(self._task.spec.operators[node], *self.inputs(node))

    def inputs(self, node: int) -> Sequence[pa.Schema]:
        return self._task.spec.inputs[node]

    def behind(self, node: int) -> pa.Schema:
        return self._task.spec.operators[node].output(self.inputs(node), KernelTyper())

    def fold(self, operator: Fold, inputs: Sequence[pa.Schema]) -> CompiledFold:
        return _compiled(operator, *inputs)

    def read(self, train: Train, columns: pa.Schema) -> pa.Table:
        table = self._task.read(train, columns)
        return train.select(table) if isinstance(train, KeyedTrain) else table

    def _read_state(self, fold: str, part: Train, schema: pa.Schema) -> pa.Table:
        """Rows of a state.

        Raises:
            Lacking: The assignment was brief, and does not say where all of them are.
        """
        if not is_whole(part):
            raise Lacking(fold)
        return self._task.read_state(fold, part, schema)

    def versions(self, table: str) -> list[TaskVersion]:
        folder = self._task.assignment.segments
        return [TaskVersion(folder, segment) for segment in self._tables[version_stream(table)]]

    def fail(self, chain: Chain) -> None:
        """Discards what the folds of a chain that failed would remember."""
        self._failed.update(operator.name for operator in self.operators(chain.nodes))

    def finish(self) -> None:
        """Writes the changes of the states."""
        if not self._task.assignment.states:
            return
        chains = enumerate(self._task.assignment.chains)
        places = {operator.name: place for place, chain in chains for operator in self.operators(chain.nodes)}
        for fold, stream, tables, dropped in self._states.changes(self._failed):
            if tables or dropped:
                self._task.add_state(places[fold], stream, tables, dropped)

    def keep(self, report: TaskReport) -> KeptCounts:
        """Keeps the states of the folds that did not fail, as they were and as the reported file makes them."""
        written = [(each.stream, each.member) for each in report.states if each.member is not None]
        self._states.keep({stream: (rows, report.file or "", at) for stream, (rows, at, *_) in written}, self._failed)
        hits, misses = self._before
        return KeptCounts(KEPT.hits - hits, KEPT.misses - misses, KEPT.nbytes)


class _BoxKey:
    """Chains and a schema, hashed once: the operators of a thousand chains take milliseconds each time."""

    __slots__ = ("_hash", "chains", "schema")

    def __init__(self, chains: Chains, schema: pa.Schema) -> None:
        self.chains, self.schema = chains, schema
        self._hash = hash((chains, schema))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BoxKey) and self.chains == other.chains and self.schema == other.schema


class Superboxes:
    """Compiled superboxes. They are kept by content, so that workers need not compile all queries again when one is
    added. The limit counts chains, because a superbox may have one chain or hundreds.

    >>> import pyarrow as pa
    >>> from freshet.model import Filter
    >>> boxes = Superboxes(most_chains=2)
    >>> schema = pa.schema([("v", pa.int64())])
    >>> one = boxes.get(((Filter("f", "v > 1"),),), schema)
    >>> boxes.get(((Filter("f", "v > 1"),),), schema) is one
    True
    """

    def __init__(self, most_chains: int) -> None:
        self._most_chains = most_chains
        self._chains = 0
        self.grown = False
        """Whether something was compiled since someone last looked."""
        self._kept: OrderedDict[_BoxKey, Superbox] = OrderedDict()

    def get(self, chains: Chains, schema: pa.Schema) -> Superbox:
        """The superbox of chains over a schema."""
        key = _BoxKey(chains, schema)
        if (found := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return found
        box = self._kept[key] = Superbox(chains, schema)
        self.grown = True
        self._chains += len(chains)
        while self._chains > self._most_chains and len(self._kept) > 1:
            gone, _ = self._kept.popitem(last=False)
            self._chains -= len(gone.chains)
        return box


_SUPERBOXES: Final = Superboxes(most_chains=4096)
KEPT: Final = KeptStates(2**30)
"""What this process has made of the states of folds."""
_SHARE: Final = 4


def within_limit(declared: int) -> int:
    """The memory that kept states may take: a quarter of the process's address space if Spark limits that by
    ``spark.executor.pyspark.memory``. Segments that are mapped count there, and a unit needs room for itself."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return declared if limit == resource.RLIM_INFINITY else min(declared, limit // _SHARE)


def set_aside(phase: str, info: Mapping[str, int]) -> None:
    """Takes what was compiled out of the collections that Spark's daemon makes between tasks (see :mod:`gc`).

    Fifty long queries are two hundred thousand objects, and visiting them all took 100 ms of every step. A superbox has
    no cycles, so one that is no longer kept is freed all the same.
    """
    if _SUPERBOXES.grown and phase == "stop" and info["generation"] == 2:
        _SUPERBOXES.grown = False
        gc.freeze()


def set_aside_now() -> None:
    """The same between two dispatches of a resident, which never comes back to Spark's daemon."""
    if _SUPERBOXES.grown:
        gc.collect()
        _SUPERBOXES.grown = False
        gc.freeze()
