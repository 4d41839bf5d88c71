"""Rounds: files of many sinks in one job, their cursors in one transaction, and nobody harmed by another's failure."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

from freshet.log import Export, Exported, Limits, Log, Retention, hidden_path, write_export, write_parquet
from freshet.model import ARRIVAL, FreshetError
from freshet.sinks import SinkRunner, SinkStatus, Token, create

QUERIES = ("a", "b", "c")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        for query in QUERIES:
            log.declare(query, Retention())
        yield log


class Tasks:
    """Writes files as Spark's tasks do, in this process."""

    def __init__(self, log: Log, sees_all: bool = True) -> None:
        self.sees_all, self._segments = sees_all, log.folder
        self.jobs: list[list[str]] = []
        self.fail: dict[str, str] = {}
        self.broken = False

    def export(self, number: int, exports: Sequence[Export]) -> list[Exported | Exception]:
        self.jobs.append([each.train.stream for each in exports])
        made = [self._written(replace(each, dispatch=(*each.dispatch, 77))) for each in exports]
        if self.broken:
            raise RuntimeError("an executor was lost")
        return made

    def _written(self, export: Export) -> Exported | Exception:
        if export.train.stream in self.fail:
            return FreshetError(self.fail[export.train.stream])
        return write_export(self._segments, export)


def append(log: Log, *values: int, queries: Sequence[str] = QUERIES) -> None:
    for query in queries:
        log.append(
            query, pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([5] * len(values), pa.int64())})
        )


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def runner_of(
    log: Log, folder: Path, exporter: Tasks | None = None, clock: Clock | None = None, **options: Any
) -> SinkRunner:
    runner = SinkRunner(log, interval=0.0, clock=clock or Clock(), exporter=exporter, writers=4)
    for query in QUERIES:
        runner.add(query, "files", create("parquet", {"path": str(folder / query), "rows": 2, **options}))
    return runner


def found(folder: Path, query: str) -> list[int]:
    return sorted(pyarrow.dataset.dataset(folder / query, format="parquet").to_table()["v"].to_pylist())


def status_of(runner: SinkRunner, query: str) -> SinkStatus:
    return next(status for status in runner.statuses if status.query == query)


@pytest.mark.parametrize("with_tasks", [True, False])
def test_a_round_is_one_job_and_one_transaction(log: Log, tmp_path: Path, with_tasks: bool) -> None:
    tasks = Tasks(log) if with_tasks else None
    runner = runner_of(log, tmp_path, tasks)
    append(log, 1, 2)
    before = log._store.commits
    runner.run_round()
    assert log._store.commits == before + 1
    assert [found(tmp_path, query) for query in QUERIES] == [[1, 2]] * 3
    assert [log.cursor(f"{query}/files") for query in QUERIES] == [2, 2, 2]
    assert tasks is None or tasks.jobs == [list(QUERIES)]
    runner.run_round()
    assert tasks is None or len(tasks.jobs) == 1, "nothing was due"
    assert log._store.commits == before + 1


def test_a_file_that_cannot_be_written_holds_up_no_other(log: Log, tmp_path: Path) -> None:
    tasks = Tasks(log)
    tasks.fail["b"] = "OSError: the disk is full"
    clock = Clock()
    runner = runner_of(log, tmp_path, tasks, clock)
    append(log, 1, 2)
    runner.run_round()
    assert [log.cursor(f"{query}/files") for query in QUERIES] == [2, 0, 2]
    told = status_of(runner, "b")
    assert (told.state, told.reason, told.failures) == ("failing", "OSError: the disk is full", 1)
    assert {status_of(runner, query).state for query in "ac"} == {"running"}
    tasks.fail.clear()
    clock.now = 60.0
    runner.run_round()
    assert found(tmp_path, "b") == [1, 2]
    assert (status_of(runner, "b").state, status_of(runner, "b").reason) == ("running", None)


def test_a_sink_that_cannot_be_prepared_holds_up_no_other(log: Log, tmp_path: Path) -> None:
    tasks = Tasks(log)
    runner = runner_of(log, tmp_path, tasks)
    (tmp_path / "b").rmdir()
    (tmp_path / "b").write_text("somebody's file")
    append(log, 1, 2)
    runner.run_round()
    assert [log.cursor(f"{query}/files") for query in QUERIES] == [2, 0, 2]
    assert tasks.jobs == [["a", "c"]]
    assert status_of(runner, "b").state == "failing"


def test_a_job_that_fails_as_a_whole_is_done_by_the_driver(
    log: Log, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = Tasks(log)
    tasks.broken = True
    runner = runner_of(log, tmp_path, tasks)
    append(log, 1, 2)
    runner.run_round()
    assert [found(tmp_path, query) for query in QUERIES] == [[1, 2]] * 3
    assert [status.failures for status in runner.statuses] == [0, 0, 0]
    assert "the files of sinks are written without Spark: RuntimeError: an executor was lost" in caplog.text
    assert len(list(tmp_path.glob("*/.*.open"))) == 3, "what the tasks of the job have written"
    for query in QUERIES:
        runner.remove(query)
    assert not list(tmp_path.glob("*/.*"))


@pytest.mark.parametrize("shared", [True, False])
def test_tasks_write_only_where_they_see_the_folder(log: Log, tmp_path: Path, shared: bool) -> None:
    tasks = Tasks(log, sees_all=False)
    runner = runner_of(log, tmp_path, tasks, shared=shared)
    append(log, 1, 2)
    runner.run_round()
    assert tasks.jobs == ([list(QUERIES)] if shared else [])
    assert [found(tmp_path, query) for query in QUERIES] == [[1, 2]] * 3


def test_a_folder_that_is_not_shared_is_told(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = Tasks(log, sees_all=False)
    runner = runner_of(log, tmp_path / "here", tasks, shared=True)
    there = tmp_path / "there"
    there.mkdir()

    def written(export: Export) -> Exported:
        made = write_export(log.folder, replace(export, path=there / export.path.name))
        return replace(made, path=hidden_path(export.path, export.dispatch))

    monkeypatch.setattr(tasks, "_written", written)
    append(log, 1, 2)
    runner.run_round()
    reason = str(status_of(runner, "a").reason)
    assert "an executor wrote" in reason
    assert "leave out shared = true" in reason
    assert log.cursor("a/files") == 0


def test_a_failed_transaction_does_not_double_rows(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    runner = runner_of(log, tmp_path, Tasks(log), clock)
    append(log, 1, 2)
    with monkeypatch.context() as patch:

        def full(advances: object) -> None:
            raise OSError("disk full")

        patch.setattr(log, "advance_all", full)
        runner.run_round()
    assert {status.state for status in runner.statuses} == {"failing"}
    assert [log.cursor(f"{query}/files") for query in QUERIES] == [0, 0, 0]
    append(log, 3, 4)
    for clock.now in (60.0, 120.0):
        runner.run_round()
    assert [found(tmp_path, query) for query in QUERIES] == [[1, 2, 3, 4]] * 3
    assert {status.rows for status in runner.statuses} == {4}


def test_a_late_writer_of_an_older_dispatch_touches_nobodys_file(log: Log, tmp_path: Path) -> None:
    exports: list[Export] = []
    tasks = Tasks(log)
    written = tasks._written

    def lose(export: Export) -> Exported | Exception:
        exports.append(export)
        return FreshetError("no answer")

    tasks._written = lose  # type: ignore[method-assign]
    clock = Clock()
    runner = runner_of(log, tmp_path, tasks, clock)
    append(log, 1, 2)
    runner.run_round()
    late = {each.train.stream: hidden_path(each.path, each.dispatch) for each in exports}
    tasks._written = written  # type: ignore[method-assign]
    clock.now = 60.0
    for path in late.values():
        write_parquet(path, [pa.table({"v": [666]})])
    runner.run_round()
    for path in late.values():
        write_parquet(path, [pa.table({"v": [667]})])
    assert [found(tmp_path, query) for query in QUERIES] == [[1, 2]] * 3
    assert [log.cursor(f"{query}/files") for query in QUERIES] == [2, 2, 2]


class Meeting:
    """A sink whose writes wait for each other."""

    arrival = False

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    def open(self, state: object) -> dict[str, Any]:
        return {}

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        self._barrier.wait(60)
        return {}

    def close(self) -> None:
        pass


def test_the_driver_writes_to_several_at_once(log: Log) -> None:
    barrier = threading.Barrier(3)
    runner = SinkRunner(log, writers=3)
    for query in QUERIES:
        runner.add(query, "one", Meeting(barrier))
    append(log, 1)
    runner.run_round()
    assert [status.rows for status in runner.statuses] == [1, 1, 1]


def test_what_is_left_at_the_end_goes_by_one_job_as_well(log: Log, tmp_path: Path) -> None:
    tasks = Tasks(log)
    runner = runner_of(log, tmp_path, tasks)
    append(log, 1, 2, 3)
    append(log, 4, 5, queries=["b"])
    runner.start()
    assert runner.stop(timeout=600)
    assert [found(tmp_path, query) for query in QUERIES] == [[1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3]]
    assert tasks.jobs[-1] == ["b"]
    assert len(tasks.jobs) == 3
