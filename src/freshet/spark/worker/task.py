"""What every task does, whatever its form: find its assignment, read its part of a train, write one file, report."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from freshet.log.segments.segment import SegmentWriter, read_train
from freshet.log.segments.sums import Checks
from freshet.model import SegmentFile, Train
from freshet.model.schema import with_arrival
from freshet.spark.driver.failures import no_blame
from freshet.spark.worker.assignment import PROPERTY, Assignment, read_property
from freshet.spark.worker.report import ChainReport, StateReport, TaskReport, report_row, sample
from freshet.spark.worker.spec import Spec, load_spec

UNREADABLE: Final = "cannot be read"
"""In the reason of every retry for a segment file that could not be opened."""


@dataclass
class Task:
    """A running task: its assignment and the one file that it writes.

    The file's name carries the attempt, because Spark may run a task twice and the loser may write after the job
    has succeeded.
    """

    assignment: Assignment
    spec: Spec
    part: int
    attempt: int
    reports: list[ChainReport] = field(default_factory=list)
    states: list[StateReport] = field(default_factory=list)
    _outputs: list[int] = field(default_factory=list)
    """Which reports have a member of the file, in its order."""

    def __post_init__(self) -> None:
        self._name = f"{self.assignment.unit}-{self.part}-{self.attempt}"
        sums = self.assignment.checks is not Checks.NEVER
        self._writer = SegmentWriter(self.assignment.segments, self._name, sums=sums)

    @classmethod
    def begin(cls) -> Task:
        """The task that this process is running."""
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("outside of a Spark task")
        with no_blame("the state folder cannot be read"):
            assignment = read_property(context.getLocalProperty(PROPERTY))
            spec = load_spec(assignment.specs, assignment.spec)
        return cls(assignment, spec, context.partitionId(), context.taskAttemptId())

    def train(self, whole: Train) -> Train:
        """This task's part of a train."""
        return self.assignment.part(whole, self.part)

    def read(self, train: Train, columns: pa.Schema | None = None) -> pa.Table:
        """The tuples of a part; one that has none needs the columns."""
        schema = None if columns is None else with_arrival(columns)
        with no_blame(f"the train of {train.stream} {UNREADABLE}"):
            return read_train(self.assignment.segments, train, schema, self.assignment.checks)

    def read_state(self, fold: str, part: Train, schema: pa.Schema) -> pa.Table:
        """Rows of a state."""
        with no_blame(f"the state of {fold} {UNREADABLE}"):
            return read_train(self.assignment.segments, part, schema, self.assignment.checks)

    def add(self, report: ChainReport, output: pa.RecordBatch | pa.Table | None = None) -> None:
        """Takes a chain's report and its output, if it has any; to write that is a cost of its last operator."""
        writes = self.assignment.chains[report.chain].writes
        if output is not None and output.num_rows and writes:
            began = time.perf_counter_ns()
            self._outputs.append(len(self.reports))
            self._writer.add(writes[0], output)
            arrivals = sample(output.column(output.num_columns - 1).to_numpy())
            spent = time.perf_counter_ns() - began
            report = report._replace(nanos=(*report.nanos[:-1], report.nanos[-1] + spent), arrivals=arrivals)
        self.reports.append(report)

    def add_state(self, chain: int, stream: str, rows: pa.Table, dropped: int) -> None:
        """Takes what became of a state stream; after all outputs."""
        self._writer.add(stream, rows)
        self.states.append(StateReport(chain, stream, dropped, (rows.num_rows, 0, 0, 0, 0)))

    def finish(self) -> pa.RecordBatch:
        """Makes the file durable; only then is there something to report, in the one row that the task returns."""
        with no_blame("the output cannot be written"):
            report = self._report(self._writer.finish())
            return report_row(report.text(), self.assignment.report_file(self._name), self.assignment.parts)

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
        return TaskReport(self.part, file.name if file.members else None, file.bytes, tuple(chains), states)


def drain(batches: Iterable[pa.RecordBatch]) -> None:
    """Reads the input to its end: Spark discards a worker that leaves some, which costs the next job 300 ms."""
    for _ in batches:
        pass
