"""The vectorised form: one task reads a part of every train and runs all chains with compiled kernels.

The plan is ``range(P) -> mapInArrow``, built once per P and free of exchanges: a plan with one would silently give
the rows of its first run again. All that changes between units comes by a job-local property.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshet.kernels import CompiledFold
from freshet.kernels.allowance import allowance, check_rows
from freshet.kernels.pipeline import Memory
from freshet.kernels.superbox import Begun, Operators, Superbox
from freshet.model import Chain, Side, Train, Work
from freshet.spark.failures import Retry
from freshet.spark.folding import Folding
from freshet.spark.lookups import TaskVersion, tables_of
from freshet.spark.report import REPORT_COLUMNS, ChainReport
from freshet.spark.task import Task, drain

Chains = tuple[Operators, ...]
Others = tuple[tuple[str, pa.Schema], ...]
"""For each join of a chain, by the name of its fold, the columns of the input on the other side."""


def vectorised_plan(session: SparkSession, parts: int) -> DataFrame:
    """The plan over a number of tasks."""
    return session.range(0, parts, 1, parts).mapInArrow(run_vectorised, REPORT_COLUMNS)


def run_vectorised(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task."""
    drain(batches)
    task = Task.begin()
    folding = Folding(task)
    for number, work in enumerate(task.assignment.works):
        parted = task.assignment.parted
        folded = [index for index, chain in enumerate(work.chains) if folding.has(chain) and not parted]
        others = [index for index in range(len(work.chains)) if index not in folded]
        mine = [index for index in folded if folding.is_mine(work.chains[index])]
        _note_nothing(task, number, work, set(folded).difference(mine))
        part = task.train(work.train)
        if not part.rows:
            _note_nothing(task, number, work, others)
        elif part.rows == work.train.rows:
            # All of them over the same tuples: what they have in common is computed once.
            mine = [*others, *mine]
        else:
            _run(task, folding, number, work, part, others)
        _run(task, folding, number, work, work.train, mine)
    folding.finish()
    yield task.finish()


def _note_nothing(task: Task, number: int, work: Work, places: Iterable[int]) -> None:
    """Reports chains for which this task has nothing to do."""
    for index in places:
        nothing = (0,) * len(work.chains[index].operators)
        task.note(ChainReport(number, index, None, nothing, nothing))


def _run(task: Task, folding: Folding, number: int, work: Work, train: Train, places: Sequence[int]) -> None:
    """Runs the chains at some places of a work over a train, or this task's part of one."""
    if not places:
        return
    # In one order, whatever that of the plan is: the same set must not be compiled again.
    ordered = sorted(places, key=lambda index: work.chains[index].operators)
    chains = [work.chains[index] for index in ordered]
    table = task.read(train, next((task.spec.reads.get(chain.operators[0]) for chain in chains), None))
    try:
        box = _SUPERBOXES.get(
            tuple(task.spec.chain(chain.operators) for chain in chains),
            table.schema,
            tuple(_others(task, chain) for chain in chains),
        )
    except Exception as error:  # whose fault it is shows when each is compiled by itself
        if len(places) == 1:
            _fail(task, folding, (number, places[0]), chains[0], f"{type(error).__name__}: {error}")
        for index in places if len(places) > 1 else ():
            _run(task, folding, number, work, train, [index])
        return
    begun = dict(zip(ordered, box.begin(table), strict=True))
    folds = {index: box.folds(place) for place, index in enumerate(ordered)}
    for index in places:
        _finish(task, folding, (number, index), work.chains[index], table.num_rows, begun.pop(index), folds[index])


def _finish(
    task: Task,
    folding: Folding,
    place: tuple[int, int],
    chain: Chain,
    rows: int,
    begun: Begun,
    folds: Mapping[str, CompiledFold],
) -> None:
    """Runs what is left of a chain over so many rows, and takes its output."""
    if begun.failure is not None:
        _fail(task, folding, place, chain, begun.failure)
        return
    try:
        memories, tables = folding.memories(folds, *place), tables_of(task, chain)
        with allowance(rows + _remembered(memories, tables), task.spec.rows_out):
            piped = begun.finish(memories, tables)
            check_rows(max(piped.passed))
    except Retry:
        raise
    except Exception as error:  # whatever it is, it is this query's failure alone
        _fail(task, folding, place, chain, f"{type(error).__name__}: {error}")
        return
    task.add(chain, piped.table, ChainReport(*place, None, piped.passed, piped.nanos, (), piped.errors))


def _remembered(memories: Mapping[str, Memory], tables: Mapping[str, Sequence[TaskVersion]]) -> int:
    """Rows that a chain reads besides those of its train."""
    states: int = sum(rows.num_rows for memory in memories.values() for rows in memory.states)
    return states + sum(version.segment.rows for versions in tables.values() for version in versions)


def _fail(task: Task, folding: Folding, place: tuple[int, int], chain: Chain, failure: str) -> None:
    nothing = (0,) * len(chain.operators)
    task.note(ChainReport(*place, None, nothing, nothing, failure=failure))
    folding.fail(chain)


def _others(task: Task, chain: Chain) -> Others:
    spec = task.spec
    return tuple(
        (operator.fold, spec.others[number])
        for number in chain.operators
        if isinstance(operator := spec.operators[number], Side)
    )


class Superboxes:
    """Compiled superboxes, kept by content and not by spec: a query that is added must not make workers compile all
    others again. Bounded by chains, because one of a single chain and one of hundreds differ so much in size.

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
        self._kept: OrderedDict[tuple[Chains, pa.Schema, tuple[Others, ...]], Superbox] = OrderedDict()

    def get(self, chains: Chains, schema: pa.Schema, others: tuple[Others, ...] = ()) -> Superbox:
        """The superbox of chains over a schema."""
        key = (chains, schema, others)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        box = self._kept[key] = Superbox(chains, schema, [dict(each) for each in others])
        self.grown = True
        self._chains += len(chains)
        while self._chains > self._most_chains and len(self._kept) > 1:
            (gone, *_), _ = self._kept.popitem(last=False)
            self._chains -= len(gone)
        return box


_SUPERBOXES: Final = Superboxes(most_chains=4096)


def set_aside(phase: str, info: Mapping[str, int]) -> None:
    """Takes what was compiled out of the collections that Spark's daemon makes between tasks (see :mod:`gc`).

    Fifty long queries are two hundred thousand objects, and to look at them all took 100 ms of every step. A superbox
    has no cycles, so that one which is given up goes all the same.
    """
    if _SUPERBOXES.grown and phase == "stop" and info["generation"] == 2:
        _SUPERBOXES.grown = False
        gc.freeze()
