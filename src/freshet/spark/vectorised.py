"""The vectorised form: one task reads a part of every train and runs all chains with compiled kernels.

The plan is ``range(P) -> mapInArrow``, built once per P and free of exchanges: a plan with one would silently give
the rows of its first run again. All that changes between units comes by a job-local property.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshet.kernels import Program
from freshet.model import Chain, Filter, Lookup, Project, Work
from freshet.spark.folding import Folding
from freshet.spark.lookups import run_lookup
from freshet.spark.report import REPORT_COLUMNS, ChainReport
from freshet.spark.task import Task, drain

Chains = tuple[tuple[Filter | Project, ...], ...]


def vectorised_plan(session: SparkSession, parts: int) -> DataFrame:
    """The plan over a number of tasks."""
    return session.range(0, parts, 1, parts).mapInArrow(run_vectorised, REPORT_COLUMNS)


def run_vectorised(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task."""
    drain(batches)
    task = Task.begin()
    folding = Folding(task)
    for number, work in enumerate(task.assignment.works):
        with_fold = [index for index, chain in enumerate(work.chains) if folding.has(chain)]
        with_table = [
            index for index, chain in enumerate(work.chains) if index not in with_fold and _looks(task, chain)
        ]
        plain = [index for index in range(len(work.chains)) if index not in with_fold and index not in with_table]
        if plain:
            _run_work(task, number, work, plain)
        for index in with_table:
            run_lookup(task, number, work, index)
        for index in with_fold:
            folding.run(number, work, index)
    folding.finish()
    yield task.finish()


def _looks(task: Task, chain: Chain) -> bool:
    return bool(task.assignment.tables) and any(isinstance(each, Lookup) for each in task.spec.chain(chain.operators))


def _run_work(task: Task, number: int, work: Work, places: Sequence[int]) -> None:
    """Runs the chains at some places of a work over this task's part of its train."""
    train = task.train(work.train)
    if not train.rows:
        for index in places:
            nothing = (0,) * len(work.chains[index].operators)
            task.note(ChainReport(number, index, None, nothing, nothing))
        return
    table = task.read(train)
    # In one order, whatever that of the plan is: the same set must not be compiled again.
    places = sorted(places, key=lambda index: work.chains[index].operators)
    members = [work.chains[index] for index in places]
    chains: Chains = tuple(task.spec.chain(chain.operators) for chain in members)  # type: ignore[misc]
    program = _PROGRAMS.get(chains, table.schema)
    for index, chain, output in zip(places, members, program.run(table), strict=True):
        report = ChainReport(number, index, None, output.passed, output.nanos, (), output.errors, output.failure)
        if output.failure is None:
            task.add(chain, output.batch, report)
        else:
            task.note(report)


class Programs:
    """Compiled programs, kept by content and not by spec: a query that is added must not make workers compile all
    others again. Bounded by chains, because a program of one chain and one of hundreds differ so much in size.

    >>> import pyarrow as pa
    >>> programs = Programs(most_chains=2)
    >>> schema = pa.schema([("v", pa.int64())])
    >>> one = programs.get(((Filter("f", "v > 1"),),), schema)
    >>> programs.get(((Filter("f", "v > 1"),),), schema) is one
    True
    """

    def __init__(self, most_chains: int) -> None:
        self._most_chains = most_chains
        self._chains = 0
        self.grown = False
        """Whether a program was compiled since someone last looked."""
        self._kept: OrderedDict[tuple[Chains, pa.Schema], Program] = OrderedDict()

    def get(self, chains: Chains, schema: pa.Schema) -> Program:
        """The program of chains over a schema."""
        key = (chains, schema)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        program = self._kept[key] = Program(chains, schema)
        self.grown = True
        self._chains += len(chains)
        while self._chains > self._most_chains and len(self._kept) > 1:
            (gone, _), _ = self._kept.popitem(last=False)
            self._chains -= len(gone)
        return program


_PROGRAMS: Final = Programs(most_chains=4096)


def set_aside(phase: str, info: Mapping[str, int]) -> None:
    """Takes compiled programs out of the collections that Spark's daemon makes between tasks (see :mod:`gc`).

    Fifty long queries are two hundred thousand objects, and to look at them all took 100 ms of every step. A program
    has no cycles, so that one which is given up goes all the same.
    """
    if _PROGRAMS.grown and phase == "stop" and info["generation"] == 2:
        _PROGRAMS.grown = False
        gc.freeze()
