from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.log import Lagged, Log, LogReader, Retention, SegmentWriter
from freshet.model import ARRIVAL, Commit, FreshetError, UserError


def rows(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([1] * len(values), pa.int64())})


def test_a_reader_sees_what_is_committed_while_the_owner_writes(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log, LogReader(tmp_path) as reader:
        assert reader.streams() == ()
        log.declare("s")
        assert reader.streams() == ("s",)
        assert reader.schema("s") is None
        with pytest.raises(FreshetError, match="no tuples yet"):
            reader.read("s", 0, 0)
        log.append("s", rows(1, 2))
        assert (reader.oldest("s"), reader.end("s")) == (0, 2)
        log.append("s", rows(3))
        assert reader.read("s", 1, 3)["v"].to_pylist() == [2, 3]
        assert reader.schema("s") == rows(1).schema
        assert reader.read("s", 3, 3).num_rows == 0
        log.start_reader("q", "s")
        log.advance("q", "s", 2)
        assert reader.readers()["q"].next == 2
        log.forget("s")
        assert reader.streams() == ()


def test_a_reader_follows_from_another_process(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, freshet.log as l\n"
        "with l.LogReader(pathlib.Path(sys.argv[1])) as reader:\n"
        "    print('ready', flush=True)\n"
        "    total = 0\n"
        "    for at, table in reader.follow('s', rows=3):\n"
        "        assert at == total, (at, total)\n"
        "        total += table.num_rows\n"
        "        print(*table['v'].to_pylist(), flush=True)\n"
        "        if total == 10: break\n"
    )
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.append("s", rows(0, 1, 2, 3))
        child = subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        for value in range(4, 10):
            log.append("s", rows(value))
        told = child.stdout.read()
        child.stdout.close()
        assert child.wait() == 0
        assert [int(word) for word in told.split()] == list(range(10))


def test_a_reader_that_is_too_slow_is_told_so(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log, LogReader(tmp_path) as reader:
        log.declare("s", Retention(history_age=0, history_bytes=0))
        log.append("s", rows(1, 2))
        assert reader.end("s") == 2
        log.collect()
        log.append("s", rows(3))
        with pytest.raises(Lagged, match="offset 0 is gone, retention keeps offsets from 2 on"):
            reader.read("s", 0, 3)
        assert [table["v"].to_pylist() for _, table in reader.follow("s", timeout=0.01)] == [[3]]


def test_a_file_that_goes_between_looking_and_reading_means_lagged(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log, LogReader(tmp_path) as reader:
        log.declare("s", Retention(history_age=0, history_bytes=0))
        log.append("s", rows(1))
        train = reader.train("s", 0, 1)
        log.collect()
        reader.train = lambda *_: train  # type: ignore[method-assign]
        with pytest.raises(Lagged):
            reader.read("s", 0, 1)


def test_a_file_that_somebody_deleted_is_not_called_lagged(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log, LogReader(tmp_path) as reader:
        log.declare("s")
        log.append("s", rows(1))
        for path in log.folder.iterdir():
            path.unlink()
        for side in (log, reader):
            with pytest.raises(FreshetError, match="missing from the state folder") as error:
                side.read("s", 0, 1)
            assert not isinstance(error.value, Lagged)


def test_shared_files_whose_members_went_in_parts(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log, LogReader(tmp_path) as reader:
        for stream in ("a", "b"):
            log.declare(stream, Retention(history_age=0, history_bytes=0))
        log.start_reader("rb", "b")
        for number in range(3):
            with SegmentWriter(log.folder, f"unit-{number}") as writer:
                writer.add("a", rows(number))
                writer.add("b", rows(number))
                log.commit([Commit(files=(writer.finish(),))])
            assert reader.end("a") == number + 1
            log.collect()
        with LogReader(tmp_path) as fresh:
            for side in (reader, fresh):
                assert (side.oldest("a"), side.end("a"), side.oldest("b"), side.end("b")) == (3, 3, 0, 3)
                assert side.read("b", 0, 3)["v"].to_pylist() == [0, 1, 2]


def test_reading_needs_no_owner_and_does_not_write(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.append("s", rows(1))
    for _ in range(2):
        with LogReader(tmp_path) as reader:
            assert reader.read("s", 0, 1)["v"].to_pylist() == [1]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader._connection.execute("DELETE FROM streams")
    with LogReader(tmp_path) as reader, Log.open(tmp_path) as log:
        log.append("s", rows(2))
        assert reader.read("s", 0, 2)["v"].to_pylist() == [1, 2]


def test_reading_after_a_crash_of_the_owner(tmp_path: Path) -> None:
    script = (
        "import os, sys, pathlib, pyarrow as pa, freshet.log as l\n"
        "log = l.Log.open(pathlib.Path(sys.argv[1])); log.declare('s')\n"
        "log.append('s', pa.table({'v': [5], '__arrival': [1]})); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], check=False)
    assert (tmp_path / "store.db-wal").stat().st_size > 0
    with LogReader(tmp_path) as reader:
        assert reader.read("s", 0, 1)["v"].to_pylist() == [5]


def test_reading_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Log.open(state) as log:
        log.declare("s")
        log.append("s", rows(1))
    archive = tmp_path / "archive"
    archive.mkdir()
    try:
        subprocess.run(["mount", "--bind", state, archive], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", archive], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"mounting is not permitted here: {error}")
    try:
        with LogReader(archive) as reader:
            assert reader.read("s", 0, 1)["v"].to_pylist() == [1]
    finally:
        subprocess.run(["umount", "-l", archive], check=True)


def test_waiting_for_growth(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log, LogReader(tmp_path) as reader:
        log.declare("s")
        assert reader.wait("s", 0, timeout=0.01) is False
        thread = threading.Timer(0.05, lambda: log.append("s", rows(1)))
        thread.start()
        assert reader.wait("s", 0, timeout=60) is True
        thread.join()


def test_no_log_or_another_format_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no log"):
        LogReader(tmp_path)
    Log.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("PRAGMA user_version = 11")
    with pytest.raises(UserError, match="has format 11"):
        LogReader(tmp_path)
