"""A worker keeps the states of folds: what it finds is what the unit names, and what it lacks is built from the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.bench.state.load import JoinLoad, PanesLoad, StateLoad
from freshet.bench.state.steps import WorkerSteps
from freshet.log import SegmentWriter, read_train
from freshet.model import ARRIVAL, Chain, Join, Lifetime, Segment, State, Train, state_stream
from freshet.spark.worker.assignment import Assignment
from freshet.spark.worker.report import TaskReport, report_of
from freshet.spark.worker.spec import Spec, load_spec
from freshet.spark.worker.task import Task
from freshet.spark.worker.vectorised import KEPT, Lacking, run_task

COLUMNS = pa.schema({"ts": pa.int64(), "k": pa.int64()})
JOIN = Join("q.join_1", "inner", (Lifetime("ts", 100),) * 2, (("k",), ("k",)), (("a", 0, "ts"), ("b", 1, "ts")))


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    KEPT.clear()
    yield
    KEPT.clear()


@pytest.mark.parametrize("load", [JoinLoad(3000), PanesLoad(2000)], ids=["join", "panes"])
def test_steps_give_the_same_whether_the_state_is_kept_or_built(load: StateLoad, tmp_path: Path) -> None:
    kept, built = WorkerSteps(load, tmp_path / "kept"), WorkerSteps(load, tmp_path / "built")
    before = KEPT.hits
    rows = [kept.step().rows_out for _ in range(70)]
    assert KEPT.hits >= before + 69
    inputs = len(load.inputs)
    assert rows == [step.rows_out for _ in range(70 // inputs) for step in built.rebuild()]
    assert kept.rows == built.rows


class Worker:
    """Runs units of a join one after the other, over its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "specs").mkdir()
        (folder / "segments").mkdir()
        self.spec = Spec((JOIN,), ((COLUMNS, COLUMNS),)).store(folder / "specs")
        self.ranges = [Train(state_stream("q.join_1", side), 0, 0) for side in (0, 1)]
        self.attempts = 0

    def assignment(self, port: int, *rows: tuple[int, int]) -> Assignment:
        self.attempts += 1
        writer = SegmentWriter(self.folder / "segments", f"in-{self.attempts}")
        times, keys = zip(*rows, strict=True)
        writer.add("s", pa.table({"ts": times, "k": keys, ARRIVAL: times}))
        file = writer.finish()
        train = Train("s", 0, len(rows), (_segment("s", 0, file.name, file.members[0][1:]),))
        chain = Chain((0,), (train, Train("t", 0, 0)) if port == 0 else (Train("s", 0, 0), train), ("out",))
        state = State("q.join_1", tuple(self.ranges), (None, None), (None, None))
        return Assignment(self.folder, f"u{self.attempts}", self.spec, 1, (chain,), (state,))

    def run(self, assignment: Assignment) -> TaskReport:
        self.attempts += 1
        told = Assignment.parse(assignment.text())
        report = run_task(Task(told, load_spec(told.specs, told.spec), 0, str(self.attempts)))
        return report_of(json.loads(report.text()))

    def commit(self, report: TaskReport) -> None:
        for number, old in enumerate(self.ranges):
            for change in report.states:
                if change.stream == old.stream and change.member is not None and report.file is not None:
                    new = _segment(old.stream, old.end, report.file, change.member)
                    self.ranges[number] = Train(old.stream, old.first, new.end, (*old.segments, new))

    def output(self, report: TaskReport) -> list[tuple[int, int]]:
        [chain] = report.chains
        if chain.member is None or report.file is None:
            return []
        segment = _segment("out", 0, report.file, chain.member)
        rows = read_train(self.folder / "segments", Train("out", 0, segment.rows, (segment,)))
        return sorted(zip(rows.column("a").to_pylist(), rows.column("b").to_pylist(), strict=True))


def _segment(stream: str, first: int, file: str, member: tuple[int, ...]) -> Segment:
    rows, position, length, arrival, last = member
    return Segment(stream, first, rows, 0, arrival, last, file, position, length)


def test_what_was_not_committed_is_never_used(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    report = worker.run(worker.assignment(0, (1, 7), (2, 8)))
    assert report.kept[:2] == (0, 1)
    worker.commit(report)
    lost = worker.run(worker.assignment(0, (3, 7)))
    again = worker.run(worker.assignment(0, (4, 7)))
    assert (lost.kept[:2], again.kept[:2]) == ((1, 0), (1, 0)), "both began with what was committed"
    worker.commit(again)
    report = worker.run(worker.assignment(1, (5, 7)))
    assert report.kept[:2] == (1, 0)
    assert worker.output(report) == [(1, 5), (4, 5)]
    assert report.kept.bytes == KEPT.nbytes > 0


def test_what_another_worker_has_committed_is_read_from_the_log(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.commit(worker.run(worker.assignment(0, (1, 7))))
    mine = worker.run(worker.assignment(0, (2, 7)))
    theirs = worker.run(worker.assignment(0, (3, 7)))
    worker.commit(mine)  # as if the other attempt had run elsewhere: its file is not the one that was kept last
    report = worker.run(worker.assignment(1, (5, 7)))
    assert theirs.file != mine.file
    assert report.kept[:2] == (1, 0), "what both began with is kept, and only what came since is read"
    assert worker.output(report) == [(1, 5), (2, 5)]


def test_a_brief_assignment_is_enough_for_who_has_the_state(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    for number in range(3):
        worker.commit(worker.run(worker.assignment(0, (number, 7))))
    whole = worker.assignment(1, (5, 7))
    brief = whole.brief()
    assert [len(each.segments) for each in brief.states[0].ranges] == [1, 0]
    assert worker.output(worker.run(brief)) == [(0, 5), (1, 5), (2, 5)]
    KEPT.clear()
    with pytest.raises(Lacking):
        worker.run(brief)
    assert worker.output(worker.run(whole)) == [(0, 5), (1, 5), (2, 5)]


def test_nothing_is_kept_if_there_is_no_room(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.spec = Spec((JOIN,), ((COLUMNS, COLUMNS),), kept_bytes=0).store(tmp_path / "specs")
    for number in range(2):
        report = worker.run(worker.assignment(0, (number, 7)))
        worker.commit(report)
        assert tuple(report.kept) == (0, 1, 0)
    assert worker.output(worker.run(worker.assignment(1, (5, 7)))) == [(0, 5), (1, 5)]
