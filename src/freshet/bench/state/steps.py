"""Steps of ``freshet bench state``: units as a worker runs them, without the Spark job around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

import pyarrow as pa

from freshet.bench.state.load import LoadStep, StateLoad
from freshet.engine.fold_states import is_scattered
from freshet.kernels.folds import compile_fold
from freshet.log import SegmentWriter
from freshet.model import Chain, Segment, SegmentFile, State, Train, state_stream
from freshet.spark.worker.assignment import Assignment
from freshet.spark.worker.report import StateReport, TaskReport
from freshet.spark.worker.spec import Spec, load_spec
from freshet.spark.worker.task import Task
from freshet.spark.worker.vectorised import KEPT, run_task

_OUTPUT: Final = "q"


class StepTime(NamedTuple):
    """Seconds that a unit took in its worker, and those of them that the fold took; rows that came out."""

    unit: float
    fold: float
    rows_out: int


class WorkerSteps:
    """A fold that runs step by step, with its state in segment files.

    Args:
        load: What it remembers and reads.
        folder: An empty folder.
    """

    def __init__(self, load: StateLoad, folder: Path) -> None:
        self._load, self._folder = load, folder
        for name in ("segments", "specs"):
            (folder / name).mkdir(parents=True)
        self._spec = Spec((load.operator,), (load.inputs,)).store(folder / "specs")
        self._numbers = count()
        streams = len(compile_fold(load.operator, *load.inputs).states)
        self._ranges = [Train(state_stream(load.operator.name, number), 0, 0) for number in range(streams)]
        for number, rows in load.remembered():
            [segment] = self._written(self._ranges[number], rows)
            self._ranges[number] = _with(self._ranges[number], 0, segment)
        self._steps = 0
        self._kept = False

    @property
    def rows(self) -> int:
        """Number of rows that are remembered."""
        return sum(each.rows for each in self._ranges)

    def step(self) -> StepTime:
        """Runs the next step; if need be, a unit of its own has first written the state anew."""
        scattered = tuple(
            number
            for number, each in enumerate(self._ranges)
            if is_scattered(len(each.segments), sum(segment.length for segment in each.segments))
        )
        load = self._load.step(self._steps)
        if scattered:
            self._run(load._replace(rows=load.rows.slice(0, 0), after=load.before), scattered)
        self._steps += 1
        return self._run(load)

    def rebuild(self) -> list[StepTime]:
        """Runs a step for each input in a worker that has to build the state from the log: after them, every part of
        the state has been looked up."""
        KEPT.clear()
        self._kept = False
        return [self.step() for _ in self._load.inputs]

    def _run(self, load: LoadStep, rewrites: tuple[int, ...] = ()) -> StepTime:
        number = next(self._numbers)
        chain = Chain((0,), tuple(self._train(port, load) for port in range(len(self._load.inputs))), (_OUTPUT,))
        fold = self._load.operator.name
        state = State(fold, tuple(self._ranges), load.before, load.after, rewrites)
        whole = Assignment(self._folder, f"u{number}", self._spec, 1, (chain,), (state,))
        text = (whole.brief() if self._kept else whole).text()
        began = perf_counter()
        assignment = Assignment.parse(text)
        report = run_task(Task(assignment, load_spec(assignment.specs, assignment.spec), 0, str(number)))
        seconds = perf_counter() - began
        self._kept = True
        self._take(report)
        [made] = report.chains
        if made.failure is not None:
            raise RuntimeError(f"a step failed: {made.failure}")
        return StepTime(seconds, sum(made.nanos) / 1e9, made.passed[-1])

    def _train(self, port: int, load: LoadStep) -> Train:
        """What comes in at a port."""
        empty = Train(f"input_{port}", 0, 0)
        return _with(empty, 0, *self._written(empty, load.rows)) if port == load.port else empty

    def _written(self, before: Train, rows: pa.Table) -> list[Segment]:
        """Rows in a file of their own, as the segment that comes next."""
        writer = SegmentWriter(self._folder / "segments", f"f{next(self._numbers)}")
        writer.add(before.stream, rows)
        return _segments(before, writer.finish())

    def _take(self, report: TaskReport) -> None:
        """Commits the changes of the states."""
        changes = {change.stream: change for change in report.states}
        self._ranges = [
            _changed(each, changes[each.stream], report.file) if each.stream in changes else each
            for each in self._ranges
        ]


def _segments(before: Train, file: SegmentFile) -> list[Segment]:
    return [
        Segment(before.stream, before.end, rows, 0, first, last, file.name, position, length)
        for _, rows, position, length, first, last in file.members
    ]


def _changed(state: Train, change: StateReport, file: str | None) -> Train:
    if change.member is None or file is None:
        return _with(state, change.dropped)
    rows, position, length, first, last = change.member
    return _with(state, change.dropped, Segment(state.stream, state.end, rows, 0, first, last, file, position, length))


def _with(state: Train, dropped: int, *more: Segment) -> Train:
    """A state without its first rows, and with more segments."""
    segments: Sequence[Segment] = (*state.segments, *more)
    first, end = state.first + dropped, more[-1].end if more else state.end
    return replace(state, first=first, end=end, segments=tuple(each for each in segments if each.end > first))
