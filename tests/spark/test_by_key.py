"""Folds in parts by key: several tasks of one unit, each with its own keys, and residents that keep their parts."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import write_train

from freshet.app import App
from freshet.kernels import task_split
from freshet.log import LogReader, read_train
from freshet.model import ARRIVAL, Call, Chain, Filter, Lifetime, Panes, Project, Segment, State, Train, state_stream
from freshet.spark.worker.assignment import Assignment
from freshet.spark.worker.report import TaskReport, report_of
from freshet.spark.worker.spec import Spec
from freshet.spark.worker.task import Task
from freshet.spark.worker.vectorised import KEPT, run_task
from freshet.testing import answers

INPUT = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()})
CHAIN = (
    Filter("q.filter", "v > 2"),
    Project("q.columns", (("ts", "ts"), ("g", "k % 40"), ("v", "v"))),
    Panes("q.aggregate", Lifetime("ts", 100), 100, ("g",), (Call("n", "count"), Call("d", "count_distinct", "v"))),
)
_attempts = count()


class Tasks:
    """Runs units of one chain in some number of tasks, as a worker does, over its files."""

    def __init__(self, folder: Path, parts: int) -> None:
        self.folder, self.parts = folder, parts
        (folder / "specs").mkdir(parents=True)
        (folder / "segments").mkdir()
        middle = pa.schema({"ts": pa.int64(), "g": pa.int64(), "v": pa.int64()})
        self.spec = Spec(CHAIN, ((INPUT,), (INPUT,), (middle,))).store(folder / "specs")
        self.trains = {name: Train(name, 0, 0) for name in self.names(parts)}
        self.mark: int | None = None
        self.rows: list[dict[str, Any]] = []

    def names(self, parts: int) -> list[str]:
        return [state_stream("q.aggregate", number, part, parts) for part in range(parts) for number in (0, 1)]

    def run(self, train: Train, tasks: int, mark: int, becomes: int | None = None) -> list[TaskReport]:
        ranges = tuple(self.trains[name] for name in self.names(self.parts))
        state = State("q.aggregate", ranges, (self.mark,), (mark,), (), self.parts, becomes)
        unit = f"u{next(_attempts)}"
        told = Assignment(self.folder, unit, self.spec, tasks, (Chain((0, 1, 2), (train,), ("q",)),), (state,))
        reports = []
        for part in range(tasks):
            task = Task.of(Assignment.parse(told.text()), part, str(next(_attempts)))
            reports.append(report_of(json.loads(run_task(task).text())))
        for report in reports:
            self._commit(report)
        self.parts, self.mark = becomes or self.parts, mark
        return reports

    def _commit(self, report: TaskReport) -> None:
        for chain in report.chains:
            assert chain.failure is None
            if chain.member is not None and report.file is not None:
                segment = _segment("q", 0, report.file, chain.member)
                table = read_train(self.folder / "segments", Train("q", 0, segment.rows, (segment,)))
                self.rows += table.drop_columns([ARRIVAL]).to_pylist()
        for change in report.states:
            old = self.trains.get(change.stream, Train(change.stream, 0, 0))
            segments = list(old.segments)
            if change.member is not None and report.file is not None:
                segments.append(_segment(old.stream, old.end, report.file, change.member))
            first, end = old.first + change.dropped, segments[-1].end if segments else old.end
            left = tuple(each for each in segments if each.end > first)
            self.trains[change.stream] = Train(old.stream, first, max(first, end), left)


def _segment(stream: str, first: int, file: str, member: tuple[int, ...]) -> Segment:
    rows, position, length, arrival, last = member
    return Segment(stream, first, rows, 0, arrival, last, file, position, length)


def table(step: int, rows: int = 400) -> pa.Table:
    draw = np.random.default_rng(step)
    times = np.sort(draw.integers(step * 50, step * 50 + 60, rows))
    return pa.table({"ts": times, "k": draw.integers(0, 500, rows), "v": draw.integers(0, 9, rows), ARRIVAL: times})


def test_tasks_with_keys_of_their_own_give_what_one_task_gives(tmp_path: Path) -> None:
    KEPT.clear()
    one, more = Tasks(tmp_path / "one", 1), Tasks(tmp_path / "more", 2)
    plan = [(2, None), (2, None), (1, None), (2, 3), (3, None), (2, None), (4, 1), (1, None), (2, 2), (2, None)]
    for step, (tasks, becomes) in enumerate(plan):
        train = table(step)
        [expected] = one.run(write_train(one.folder, "s", train), 1, step * 50)
        found = more.run(write_train(more.folder, "s", train), tasks, step * 50, becomes)
        passed = [report.chains[0].passed for report in found if report.chains]
        assert [sum(each) for each in zip(*passed, strict=True)] == list(expected.chains[0].passed)
        worked = [each for each in passed if any(each)]
        assert len(worked) == min(tasks, more.parts if becomes is None else 1)
        assert {name for name, train in more.trains.items() if train.rows} <= set(more.names(more.parts))
    assert Counter(map(str, one.rows)) == Counter(map(str, more.rows))
    assert one.rows
    KEPT.clear()


def test_a_task_keeps_its_own_part(tmp_path: Path) -> None:
    KEPT.clear()
    tasks = Tasks(tmp_path / "parts", 2)
    kept = []
    for step in range(4):
        reports = tasks.run(write_train(tasks.folder, "s", table(step)), 2, 0)
        kept.append([report.kept[:2] for report in reports])
    assert kept == [[(0, 1), (0, 1)], *[[(1, 0), (1, 0)]] * 3]
    KEPT.clear()


QUERIES = {
    "sums": "SELECT k, sum(v) AS total, count(DISTINCT v) AS d FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k",
    "pairs": "SELECT s.k AS k, s.v AS a, t.v AS b FROM s [RANGE 3 SECONDS] JOIN t [RANGE 3 SECONDS] ON s.k = t.k",
    "chained": "SELECT k % 7 AS g, count(*) AS n FROM (SELECT s.ts AS ts, s.k AS k FROM s [RANGE 3 SECONDS] "
    "JOIN t [RANGE 3 SECONDS] ON s.k = t.k) [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k % 7",
    "counted": "SELECT count(*) AS n FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS]",
}
CHUNKS, ROWS = 24, 40


def declare(folder: Path, **options: Any) -> App:
    app = App("by-key", state=folder / "state", **options)
    for stream in ("s", "t"):
        app.stream(stream, "ts timestamp, k int, v int", event_time="ts", lateness="1 s")
    for name, sql in QUERIES.items():
        app.query(name, sql)
    return app


def chunk(stream: str, number: int) -> list[dict[str, Any]]:
    draw = random.Random(f"{stream} {number}")
    return [
        {"ts": datetime.fromtimestamp(number * 2 + row / ROWS, UTC), "k": draw.randrange(60), "v": draw.randrange(9)}
        for row in range(ROWS)
    ]  # fmt: skip


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_residents_that_keep_parts_change_no_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_split, "KEYED_ROWS", 1)
    monkeypatch.setattr(task_split, "KEYED_STATE", 1)
    rows = {stream: [row for number in range(CHUNKS) for row in chunk(stream, number)] for stream in "st"}
    expected = answers(declare(tmp_path / "in-process"), rows)
    draw, restarts = random.Random(1), 0
    parts: set[str] = set()
    for place, residents in enumerate((2, 1, 2)):
        with declare(tmp_path, spark=spark, resident=residents).start() as run:
            for number in range(place * CHUNKS // 3, (place + 1) * CHUNKS // 3):
                for stream in "st":
                    run.push(stream, chunk(stream, number))
                assert run.drain(timeout=600.0)
                if draw.random() < 0.3:
                    for each in run.report()["residents"]["present"][:1]:
                        with suppress(ProcessLookupError):
                            os.kill(each["process"], signal.SIGKILL)
            if place == 2:
                for stream in "st":
                    run.heartbeat(stream, 1e6)
                assert run.drain(timeout=600.0)
            report = run.report()
            restarts += report["residents"]["restarts"]
            assert report["ways"]["resident"]["calls"] > 0
            found = {name: Counter(map(plain, run.read(name).to_pylist())) for name in QUERIES}
        with LogReader(tmp_path / "state") as log:
            parts |= {name.partition("_h1_")[0] for name in log.streams() if "_of_2" in name}
    assert restarts > 0
    folds = {"sums.aggregate": 2, "pairs.join_1": 2, "chained.sub_1.join_1": 2, "chained.aggregate": 1}
    assert parts == {f"{fold}.state_{number + 1}" for fold, streams in folds.items() for number in range(streams)}
    assert found == {name: Counter(map(plain, expected[name])) for name in QUERIES}
    assert all(found.values())


def plain(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(str(value) for value in row.values())
