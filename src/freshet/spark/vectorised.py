"""The vectorised form: one task reads a part of every train and runs all chains with compiled kernels.

The plan is ``range(P) -> mapInArrow``, built once per P and free of exchanges: a plan with one would silently give
the rows of its first run again. All that changes between units comes by a job-local property.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshet.kernels import Program
from freshet.model import Filter, Project, Work
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
    for number, work in enumerate(task.assignment.works):
        _run_work(task, number, work)
    yield task.finish().batch()


def _run_work(task: Task, number: int, work: Work) -> None:
    train = task.train(work.train)
    if not train.rows:
        for index, chain in enumerate(work.chains):
            nothing = (0,) * len(chain.operators)
            task.note(ChainReport(number, index, None, nothing, nothing))
        return
    table = task.read(train)
    chains = tuple(task.spec.chain(chain.operators) for chain in work.chains)
    program = _PROGRAMS.get(chains, table.schema)
    for index, (chain, output) in enumerate(zip(work.chains, program.run(table), strict=True)):
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
        self._kept: OrderedDict[tuple[Chains, pa.Schema], Program] = OrderedDict()

    def get(self, chains: Chains, schema: pa.Schema) -> Program:
        """The program of chains over a schema."""
        key = (chains, schema)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        program = self._kept[key] = Program(chains, schema)
        self._chains += len(chains)
        while self._chains > self._most_chains and len(self._kept) > 1:
            (gone, _), _ = self._kept.popitem(last=False)
            self._chains -= len(gone)
        return program


_PROGRAMS: Final = Programs(most_chains=4096)
