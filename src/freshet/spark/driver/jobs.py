"""Jobs: the plans of all forms, kept ready, and how one is run over chains."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from freshet.log.segments.sums import Checks, missing
from freshet.model import Chain, State, Train, Unit
from freshet.model.scheduling.unit import components
from freshet.spark.driver.failures import retry_reason
from freshet.spark.driver.forms import Form
from freshet.spark.driver.installation import Installation
from freshet.spark.session.settings import in_process
from freshet.spark.worker.assignment import PROPERTY, Assignment, telling
from freshet.spark.worker.catalyst import catalyst_plan
from freshet.spark.worker.report import TaskReport, read_reports, rows_of
from freshet.spark.worker.shuffled import compiled_join, shuffled_plan
from freshet.spark.worker.task import UNREADABLE
from freshet.spark.worker.vectorised import vectorised_plan

# Below these a second task costs more than it saves: the kernels take about 10 ns for each tuple and chain, and every
# task pays about 0.1 ms for each chain, however few tuples it has.
SPLIT_TUPLES: Final = 50_000
SPLIT_EFFORT: Final = 500_000
# Each task pays for each of its chains, however few tuples it has; with 250 chains over 100,000 tuples the driver, too,
# takes longer to put the reports of two tasks together for each chain.
DEALT_CHAINS: Final = 8
"""Minimum number of chains for each task with which tasks get some of the chains over all tuples."""
_SYNCED_FROM: Final = 1 << 20
"""Bytes from which on a task syncs its file itself, although the driver could: the driver's thread would wait for the
disk, and the sync that it saves is a small part of that."""
_MOST_PLANS: Final = 128
_MOST_TAGS: Final = 16
_TAGS: Final = "spark.job.tags"
_ROUNDS: Final = Counter[str]()
"""Rounds of empty jobs that have run in each Spark of this process, by its id: they have its Java code compiled."""


@dataclass(frozen=True, slots=True)
class Job:
    """Chains that run together; in the catalyst form they all read one train."""

    form: Form
    chains: tuple[Chain, ...]
    states: tuple[State, ...] = ()
    parted: tuple[str, ...] = ()
    """Folds that merge tuples in parts."""


class Jobs:
    """Runs jobs; plans are built once and kept until too many others were used since."""

    def __init__(self, session: SparkSession, state: Path, installation: Installation) -> None:
        self.cores = session.sparkContext.defaultParallelism
        self.checks = Checks.ONCE
        """When tasks check the checksums of their trains; measurements change it."""
        self.split_tuples, self.split_effort = SPLIT_TUPLES, SPLIT_EFFORT
        """From which train and which effort on a second task pays; measurements change them."""
        self._session, self._state, self._installation = session, state, installation
        # What another machine has written, only that machine can sync.
        self._synced_from = _SYNCED_FROM if in_process(session.sparkContext.master or "") else 0
        self._vectorised = cache(partial(vectorised_plan, session))
        self._catalyst = lru_cache(_MOST_PLANS)(partial(catalyst_plan, session))

    def describe(self, unit: Unit, queries: Collection[str]) -> None:
        """Names the jobs that this thread submits from now on, for those who watch Spark or cancel jobs."""
        context, names = self._session.sparkContext, list(queries)[:_MOST_TAGS]
        more = f" and {len(queries) - len(names)} more" if len(queries) > len(names) else ""
        context.setJobGroup(unit.id, f"{', '.join(names)}{more}: {unit.rows} tuples", True)
        # addJobTag sets the same property, but with one call to the JVM for each tag.
        context.setLocalProperty(_TAGS, ",".join(name.replace(",", " ") for name in names))

    def run(self, unit: Unit, spec: str, job: Job, parts: dict[str, float]) -> list[TaskReport]:
        """Runs a job of a unit, and adds the time spent planning and running to ``parts``."""
        began = time.perf_counter()
        tasks = self.tasks(job)
        plan = self._plan_of(job, tasks)
        assignment = self.assignment(unit, spec, job, tasks)
        with telling(self._session.sparkContext, PROPERTY, assignment.text(), assignment.specs, unit.id):
            planned = time.perf_counter()
            parts["plan"] = parts.get("plan", 0.0) + planned - began
            try:
                return read_reports(rows_of(plan))
            except Exception as error:
                if UNREADABLE in (retry_reason(error) or ""):
                    _check_files(assignment)
                raise
            finally:
                parts["job"] = parts.get("job", 0.0) + time.perf_counter() - planned

    def assignment(self, unit: Unit, spec: str, job: Job, tasks: int) -> Assignment:
        """What the tasks of a job are told."""
        tables = self._tables(job.chains, unit.tables)
        told = job.chains, job.states, tables, job.parted, self.checks, self._synced_from, is_dealt(job, tasks)
        return Assignment(self._state, unit.id, spec, tasks, *told)

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

    def _tables(self, chains: Sequence[Chain], tables: tuple[Train, ...]) -> tuple[Train, ...]:
        if not tables:
            return ()
        nodes = self._installation.network.nodes
        read = {stream for chain in chains for number in chain.nodes for stream in nodes[number].tables}
        return tuple(train for train in tables if train.stream in read)

    def warm_up(self, spec: str, rounds: int) -> None:
        """Runs empty jobs. What an earlier application has run in the same Spark counts, up to the last round."""
        spark = str(self._session.sparkContext.applicationId)
        for _ in range(max(1, rounds - _ROUNDS[spark])):
            self.probe(spec)
            self.probe(spec, self.cores)
            _ROUNDS[spark] += 1

    def probe(self, spec: str, tasks: int = 1) -> None:
        """Runs an empty job."""
        assignment = Assignment(self._state, "probe", spec, tasks, ())
        self._session.sparkContext.setLocalProperty(PROPERTY, assignment.text())
        rows_of(self._vectorised(tasks))

    def tasks(self, job: Job) -> int:
        """The number of tasks that pays for a job."""
        if job.form == "shuffled" or job.parted:
            return self.cores
        parts = max([state.parts for state in job.states], default=1)
        if parts > 1:
            return min(self.cores, parts)
        long = max(train.rows for chain in job.chains for train in chain.trains) >= self.split_tuples
        # Spark's own form moves each tuple through three processes, so even one chain is effort enough.
        pays = long and (job.form == "catalyst" or _effort(job.chains) >= self.split_effort)
        return min(self.cores, self._most_tasks(job)) if pays else 1

    def _most_tasks(self, job: Job) -> int:
        """The number of tasks that could have something to do: a fold whose state lies in one part needs one."""
        if not job.states:
            return self.cores
        parts = components(job.chains)
        folds = self._installation.folds
        is_whole = (any(folds(job.chains[place].nodes) for place in part) for part in parts)
        return len(parts) if all(is_whole) else self.cores

    def _catalyst_plan(self, chains: Sequence[Chain], tasks: int) -> DataFrame:
        installed = self._installation
        operators = tuple(installed.operators(chain.nodes) for chain in chains)
        schema = installed.columns.inputs[chains[0].nodes[0]][0]
        outputs = tuple(installed.columns.behind[chain.nodes[-1]] for chain in chains)
        return self._catalyst(operators, schema, outputs, tasks)


def is_dealt(job: Job, tasks: int) -> bool:
    """Whether each task of a job gets some of its chains over all tuples, and not all chains over some tuples.

    >>> chains = (Chain((0,), (Train("s", 0, 100_000),)),) * 20
    >>> is_dealt(Job("vectorised", chains), 2), is_dealt(Job("vectorised", chains), 4)
    (True, False)
    """
    plain = job.form == "vectorised" and not job.states and not job.parted
    return plain and tasks > 1 and len(job.chains) >= DEALT_CHAINS * tasks


def _check_files(assignment: Assignment) -> None:
    """Raises if a file is gone although its folder is there: unlike one that a task could not read, no other try of the
    unit finds it."""
    if not assignment.segments.is_dir():
        return
    for train in assignment.trains():
        for segment in train.segments:
            if not (assignment.segments / segment.file).exists():
                raise missing(segment)


def _effort(chains: Sequence[Chain]) -> int:
    """Tuples times chains, as if no filter dropped any."""
    rows: list[int] = []
    for chain in chains:
        # A loop: a unit may have a thousand chains, and this is asked for each unit.
        count = 0
        for each in chain.inputs:
            count += rows[each] if isinstance(each, int) else each.end - each.first
        rows.append(count)
    return sum(rows)
