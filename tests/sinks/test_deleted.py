"""Files that somebody deletes, moves or shortens while sinks write them: nothing goes where nobody finds it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from freshet.log import DurableLines, Limits, Log, Retention
from freshet.log.segments.storage import write_all
from freshet.model import ARRIVAL
from freshet.sinks import SinkRunner, Token, create


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        log.declare("q", Retention())
        yield log


def append(log: Log, *values: int) -> None:
    log.append("q", pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([5] * len(values), pa.int64())}))


def jsonl(path: Path) -> list[int]:
    return [int(line[6:-1]) for line in path.read_text().splitlines()]


def parquet(path: Path) -> list[int]:
    return sorted(pyarrow.parquet.read_table(path)["v"].to_pylist())


def table(path: Path) -> list[int]:
    with sqlite3.connect(path) as database:
        return [value for (value,) in database.execute("SELECT v FROM t ORDER BY v")]


def delete(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("moved"))


def delete_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


KINDS: dict[str, tuple[dict[str, Any], Callable[[Path], list[int]]]] = {
    "jsonl": ({}, jsonl),
    "parquet": ({"every": 0.01}, parquet),
    "table": ({"table": "t"}, table),
}


@pytest.mark.parametrize("vanish", [delete, move, delete_folder])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_after_a_deletion_are_in_a_file_that_can_be_found(
    kind: str, vanish: Callable[[Path], None], log: Log, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options, read = KINDS[kind]
    path = tmp_path / "out" / "place"
    time = 0.0
    runner = SinkRunner(log, clock=lambda: time)
    runner.add("q", "sink", create(kind, {"path": str(path), **options}))

    def bring(*values: int) -> None:
        nonlocal time
        append(log, *values)
        while log.cursor("q/sink") != log.end("q"):
            time += 1.0
            runner.run_round()

    bring(1, 2)
    assert read(path) == [1, 2]
    vanish(path)
    bring(3, 4)
    bring(5)
    assert read(path) == [3, 4, 5]
    if vanish is move:
        assert read(path.with_name("moved")) == [1, 2]
    (status,) = runner.statuses
    assert (status.state, status.rows, status.waiting) == ("running", 5, 0)
    assert "was deleted" in str(status.note)
    assert "sink q/sink" in caplog.text


@pytest.mark.parametrize("vanish", [None, delete, move, delete_folder])
@pytest.mark.parametrize("kind", KINDS)
def test_a_deletion_after_the_last_row_is_told_at_the_end(
    kind: str, vanish: Callable[[Path], None] | None, log: Log, tmp_path: Path
) -> None:
    options, read = KINDS[kind]
    path = tmp_path / "out" / "place"
    runner = SinkRunner(log)
    runner.add("q", "sink", create(kind, {"path": str(path), **options}))
    append(log, 1, 2)
    runner.drain_all()
    assert read(path) == [1, 2]
    if vanish is not None:
        vanish(path)
    runner.start()
    assert runner.stop(timeout=600)
    (status,) = runner.statuses
    assert (status.state, status.rows) == ("stopped", 2)
    assert (status.note is not None) == (vanish is not None)


def test_a_folder_that_was_replaced_by_another_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "place"
    sink = create("parquet", {"path": str(path)})
    sink.open({})
    sink.write(pa.table({"v": [1]}), Token("q", 0, 1))
    shutil.rmtree(path)
    path.mkdir()
    sink.write(pa.table({"v": [2]}), Token("q", 1, 2))
    sink.close()
    assert parquet(path) == [2]
    assert "files that were written to it before are gone" in str(getattr(sink, "note", None))


def test_lines_are_not_in_a_file_that_vanishes_during_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    lines = DurableLines(path)
    lines.write(["a"])
    real, moved = write_all, list[Path]()

    def write_and_move(descriptor: int, content: memoryview) -> None:
        if not moved:
            moved.append(path.rename(tmp_path / "moved.jsonl"))
        real(descriptor, content)

    monkeypatch.setattr("freshet.log.segments.lines.write_all", write_and_move)
    lines.write(["b"])
    lines.close()
    assert (tmp_path / "moved.jsonl").read_text() == "a\n"
    assert path.read_text() == "b\n"
    assert lines.missing == 2


def test_a_file_that_was_deleted_between_two_runs_is_told(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = create("jsonl", {"path": str(path)})
    sink.open({})
    state = sink.write(pa.table({"v": [1]}), Token("q", 0, 1))
    sink.close()
    path.unlink()
    sink = create("jsonl", {"path": str(path)})
    sink.open(state)
    sink.close()
    assert "9 bytes that were written to it are gone" in str(getattr(sink, "note", None))


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt()])
def test_a_function_that_ends_its_thread_is_a_sink_that_fails(log: Log, raised: BaseException) -> None:
    def take(table: pa.Table, token: object) -> None:
        raise raised

    runner = SinkRunner(log)
    runner.add("q", "sink", create("callback", {"function": take}))
    runner.start()
    append(log, 1)
    assert runner.stop(timeout=600)
    (status,) = runner.statuses
    assert (status.state, status.waiting) == ("failing", 1)
    assert str(status.reason).startswith(type(raised).__name__)


def test_an_error_whose_text_raises_is_told_by_its_kind(log: Log) -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def take(table: pa.Table, token: object) -> None:
        raise Silent

    runner = SinkRunner(log)
    runner.add("q", "sink", create("callback", {"function": take}))
    runner.start()
    append(log, 1)
    assert runner.stop(timeout=600)
    (status,) = runner.statuses
    assert (status.state, status.reason) == ("failing", "Silent")
