"""What every task does, whatever its form: find its assignment, read its part of a train, write one file, report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from freshet.kernels.keeping import kept_rows
from freshet.log.segments.segment import SegmentWriter, read_train
from freshet.log.segments.sums import Checks
from freshet.model import SegmentFile, Train
from freshet.model.scheduling.unit import Worths, given_by
from freshet.model.schema import with_arrival, with_one_arrival
from freshet.spark.driver.failures import no_blame
from freshet.spark.worker.assignment import PROPERTY, Assignment, told
from freshet.spark.worker.report import ChainReport, StateReport, TaskReport, report_row, sample
from freshet.spark.worker.spec import Spec, load_spec

UNREADABLE: Final = "cannot be read"
"""In the reason of every retry for a segment file that could not be opened."""
_FOLDER: Final = "the state folder cannot be read"
_OUTPUT: Final = "the output cannot be written"


@dataclass
class Task:
    """A running task: its assignment and the one file that it writes.

    The file's name carries the attempt, because Spark may run a task twice and the loser may write after the job
    has succeeded. In a resident the attempt is the number of the dispatch, which the driver gives out once.
    """

    assignment: Assignment
    spec: Spec
    part: int
    attempt: str
    reports: list[ChainReport] = field(default_factory=list)
    states: list[StateReport] = field(default_factory=list)
    worths: dict[str, Worths] = field(default_factory=dict)
    """What the tuples that it read were worth, by edge."""
    _outputs: list[int] = field(default_factory=list)
    """Which reports have a member of the file, in its order."""

    def __post_init__(self) -> None:
        self._name = f"{self.assignment.unit}-{self.part}-{self.attempt}"
        sums = self.assignment.checks is not Checks.NEVER
        self._writer = SegmentWriter(self.assignment.segments, self._name, sums=sums)

    @classmethod
    def begin(cls) -> Task:
        """The task of a Spark job that this process is running."""
        context, text = task_property(PROPERTY)
        with no_blame(_FOLDER):
            assignment = Assignment.parse(told(text))
        return cls.of(assignment, context.partitionId(), str(context.taskAttemptId()))

    @classmethod
    def of(cls, assignment: Assignment, part: int, attempt: str) -> Task:
        """A task over a part of an assignment."""
        with no_blame(_FOLDER):
            spec = load_spec(assignment.specs, assignment.spec)
        return cls(assignment, spec, part, attempt)

    def train(self, whole: Train) -> Train:
        """This task's part of a train."""
        return self.assignment.part(whole, self.part)

    def read(self, train: Train, columns: pa.Schema | None = None) -> pa.Table:
        """The tuples of a part that are kept; the columns are needed only if the part may be empty."""
        schema = None if columns is None else with_arrival(columns)
        kept = kept_rows(self._read(f"the train of {train.stream}", train, schema), train)
        if kept.worths is not None:
            self.worths[kept.worths.edge] = kept.worths
        return kept.table

    def read_state(self, fold: str, part: Train, schema: pa.Schema) -> pa.Table:
        """Rows of a state."""
        return self._read(f"the state of {fold}", part, schema)

    def _read(self, what: str, part: Train, schema: pa.Schema | None) -> pa.Table:
        with no_blame(f"{what} {UNREADABLE}"):
            return read_train(self.assignment.segments, part, schema, self.assignment.checks)

    def add(self, report: ChainReport, output: pa.RecordBatch | pa.Table | None = None) -> None:
        """Takes a chain's report and its output, if there is any; its last operator bears the cost of writing it."""
        writes = self.assignment.chains[report.chain].writes
        if output is not None and output.num_rows and writes:
            began = time.perf_counter_ns()
            self._outputs.append(len(self.reports))
            output = with_one_arrival(output, self.assignment.chains[report.chain].arrival)
            arrivals = sample(self._writer.add(writes[0], output))
            spent = time.perf_counter_ns() - began
            report = report._replace(nanos=(*report.nanos[:-1], report.nanos[-1] + spent), arrivals=arrivals)
        self.reports.append(report)

    def add_given(self, chain: int, output: pa.Table) -> None:
        """Takes what a chain gave to others if one of them failed; call it after all reports."""
        place = next(place for place, report in enumerate(self.reports) if report.chain == chain)
        if output.num_rows:
            self._outputs.append(place)
            self._writer.add(given_by(self.assignment.unit, chain), output)

    def add_state(self, chain: int, stream: str, tables: Sequence[pa.Table], dropped: int) -> None:
        """Takes the change of a state stream: new rows, and how many old ones go. Call it after all outputs."""
        if tables:
            self._writer.add(stream, pa.concat_tables(tables))
        self.states.append(StateReport(chain, stream, dropped, (sum(map(len, tables)), 0, 0, 0, 0)))

    def report(self) -> TaskReport:
        """Writes the file, and only then reports it."""
        with no_blame(_OUTPUT):
            return self._report(self._writer.finish(self.assignment.synced_from))

    def finish(self) -> pa.RecordBatch:
        """Writes the file, and returns the row that reports it."""
        return self.row(self.report())

    def row(self, report: TaskReport) -> pa.RecordBatch:
        """A report as the one row that a task of a Spark job returns."""
        with no_blame(_OUTPUT):
            return report_row(report.text(), self.assignment.specs / f"{self._name}.report", self.assignment.parts)

    def _report(self, file: SegmentFile) -> TaskReport:
        members = iter(file.members)
        chains = list(self.reports)
        for place in self._outputs:
            chains[place] = chains[place]._replace(member=next(members)[1:])
        # States that grew come after all outputs.
        states = tuple(
            report._replace(member=next(members)[1:] if report.member and report.member[0] else None)
            for report in self.states
        )
        name, worths = file.name if file.members else None, tuple(self.worths.values())
        return TaskReport(self.part, name, file.bytes, tuple(chains), states, synced=file.synced, worths=worths)


def task_property(name: str) -> tuple[TaskContext, str]:
    """The task that this process is running, and a property of its job."""
    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(name)
    if context is None or text is None:
        raise RuntimeError(f"this is no Spark task of a job with a property {name}")
    return context, text


def drain(batches: Iterable[pa.RecordBatch]) -> None:
    """Reads the input to its end: Spark discards a worker that leaves some of it, and the next job waits 300 ms."""
    for _ in batches:
        pass
