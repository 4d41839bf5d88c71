"""Jobs: the plans of all forms, kept ready, and how one is run over chains."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from freshet.log.segments.sums import Checks, missing
from freshet.model import Chain, State, Train, Unit, version_stream
from freshet.spark.driver.failures import retry_reason
from freshet.spark.driver.forms import Form
from freshet.spark.driver.installation import Installation
from freshet.spark.worker.assignment import PROPERTY, Assignment, forget_property
from freshet.spark.worker.catalyst import catalyst_plan
from freshet.spark.worker.report import TaskReport, read_reports, rows_of
from freshet.spark.worker.shuffled import compiled_join, shuffled_plan
from freshet.spark.worker.task import UNREADABLE
from freshet.spark.worker.vectorised import vectorised_plan

Chains = tuple[Chain, ...]

# Below these a second task costs more than the first one saves. The kernels need some 10 ns for a tuple and chain,
# so there must be many of both; and every task pays some 0.1 ms for each chain, however few tuples it has.
_SPLIT_TUPLES: Final = 50_000
_SPLIT_EFFORT: Final = 500_000
_MOST_PLANS: Final = 128


@dataclass(frozen=True, slots=True)
class Job:
    """Chains that run together; those of the catalyst form are over one train."""

    form: Form
    chains: Chains
    states: tuple[State, ...] = ()
    parted: tuple[str, ...] = ()
    """Folds that merge tuples in parts."""


class Jobs:
    """Runs jobs; plans are built once and kept (the least recently used one goes first)."""

    def __init__(self, session: SparkSession, state: Path, installation: Installation) -> None:
        self.cores = session.sparkContext.defaultParallelism
        self.checks = Checks.ONCE
        """When tasks look at the checksums of their trains; for measurements."""
        self._session = session
        self._state = state
        self._installation = installation
        self._vectorised = cache(partial(vectorised_plan, session))
        self._catalyst = lru_cache(_MOST_PLANS)(partial(catalyst_plan, session))

    def run(self, unit: Unit, spec: str, job: Job, parts: dict[str, float]) -> list[TaskReport]:
        """Runs a job of a unit, and adds the time spent planning and running to ``parts``."""
        began = time.perf_counter()
        tasks = self._tasks(job)
        plan = self._plan_of(job, tasks)
        tables = self._tables(job.chains, unit.tables)
        assignment = Assignment(
            self._state, unit.id, spec, tasks, job.chains, job.states, tables, job.parted, self.checks
        )
        text = assignment.property_text()
        self._session.sparkContext.setLocalProperty(PROPERTY, text)
        planned = time.perf_counter()
        parts["plan"] = parts.get("plan", 0.0) + planned - began
        try:
            return read_reports(rows_of(plan))
        except BaseException as error:
            assignment.forget_reports()
            if (reason := retry_reason(error)) is not None and UNREADABLE in reason:
                _check_files(assignment)
            raise
        finally:
            parts["job"] = parts.get("job", 0.0) + time.perf_counter() - planned
            forget_property(text)

    def _plan_of(self, job: Job, tasks: int) -> DataFrame:
        if job.form == "vectorised":
            return self._vectorised(tasks)
        if job.form == "catalyst":
            return self._catalyst_plan(job.chains, tasks)
        [chain] = job.chains
        [number] = chain.nodes
        [operator] = self._installation.operators(chain.nodes)
        join = compiled_join(operator, *self._installation.columns.inputs[number])
        port = next(port for port, train in enumerate(chain.trains) if train.rows)
        return shuffled_plan(self._session, number, join, port, tasks)

    def _tables(self, chains: Chains, tables: tuple[Train, ...]) -> tuple[Train, ...]:
        if not tables:
            return ()
        operators = [each for chain in chains for each in self._installation.operators(chain.nodes)]
        read = {version_stream(each.reads_table) for each in operators if each.reads_table is not None}
        return tuple(train for train in tables if train.stream in read)

    def probe(self, spec: str, tasks: int = 1) -> None:
        """Runs an empty job."""
        assignment = Assignment(self._state, "probe", spec, tasks, ())
        self._session.sparkContext.setLocalProperty(PROPERTY, assignment.text())
        rows_of(self._vectorised(tasks))

    def _tasks(self, job: Job) -> int:
        if job.form == "shuffled" or job.parted:
            return self.cores
        long = max(train.rows for chain in job.chains for train in chain.trains) >= _SPLIT_TUPLES
        # Spark's own form moves each tuple through three processes, so that even one chain is effort enough.
        return self.cores if long and (job.form == "catalyst" or _effort(job.chains) >= _SPLIT_EFFORT) else 1

    def _catalyst_plan(self, chains: Chains, tasks: int) -> DataFrame:
        installed = self._installation
        operators = tuple(installed.operators(chain.nodes) for chain in chains)
        schema = installed.columns.inputs[chains[0].nodes[0]][0]
        outputs = tuple(installed.columns.behind[chain.nodes[-1]] for chain in chains)
        return self._catalyst(operators, schema, outputs, tasks)


def _check_files(assignment: Assignment) -> None:
    """Tells a file that is gone, although its folder is there, from one that a task could not read: no other try of
    the unit finds it."""
    if not assignment.segments.is_dir():
        return
    for train in assignment.trains():
        for segment in train.segments:
            if not (assignment.segments / segment.file).exists():
                raise missing(segment)


def _effort(chains: Chains) -> int:
    """Tuples times chains, as if no filter held any back."""
    rows: list[int] = []
    for chain in chains:
        rows.append(chain.rows + sum(rows[each] for each in chain.inputs if isinstance(each, int)))
    return sum(rows)
