from __future__ import annotations

import sqlite3
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.log import CursorMoved, Deposed, Log, LogReader, Retention, SegmentWriter
from freshet.log.store.verify import verify
from freshet.model import ARRIVAL, Commit, FreshetError, SegmentFile, UserError


def rows(*values: int, arrival: int = 1) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([arrival] * len(values), pa.int64())})


def write(log: Log, name: str, **members: pa.Table) -> SegmentFile:
    with SegmentWriter(log.folder, name) as writer:
        for stream, table in members.items():
            writer.add(stream, table)
        return writer.finish()


def values(log: Log, stream: str) -> list[int]:
    first, end = log.oldest(stream), log.end(stream)
    return [] if first == end else log.read(stream, first, end)["v"].to_pylist()


@pytest.fixture
def log(tmp_path: Path):
    with Log.open(tmp_path / "state") as log:
        log.declare("s")
        yield log


def test_offsets_are_consecutive_and_survive_reopening(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.declare("t")
        assert log.append("s", rows(1, 2), source_position={"at": 2}) == range(2)
        assert log.append("t", rows(9)) == range(1)
        assert log.append("s", rows(3)) == range(2, 3)
    with Log.open(tmp_path) as log:
        assert log.epoch == 2
        assert values(log, "s") == [1, 2, 3]
        assert log.append("s", rows(4)) == range(3, 4)
        assert log.source_position("s") == {"at": 2}
        assert log.source_position("t") is None
        train = log.train("s", 0, 4)
        assert [(part.first, part.rows) for part in train.segments] == [(0, 2), (2, 1), (3, 1)]
        sequences = [part.sequence for part in (*train.segments, *log.train("t", 0, 1).segments)]
        assert sorted(sequences) == [0, 1, 2, 3]
        assert sequences == [0, 2, 3, 1]


def test_arrivals_never_go_back(log: Log) -> None:
    log.append("s", rows(1, arrival=100))
    log.append("s", pa.table({"v": [2, 3, 4], ARRIVAL: [50, 120, 110]}))
    assert log.read("s", 0, 4)[ARRIVAL].to_pylist() == [100, 100, 120, 120]
    assert [log.arrival("s", offset) for offset in range(4)] == [100, 100, 120, 120]


def test_arrival_inside_a_segment_is_read_from_it(log: Log) -> None:
    log.append("s", pa.table({"v": [1, 2, 3], ARRIVAL: [10, 20, 30]}))
    assert [log.arrival("s", offset) for offset in range(3)] == [10, 20, 30]
    with pytest.raises(ValueError, match="ends at 3"):
        log.arrival("s", 3)


def test_an_append_of_nothing_writes_nothing(log: Log) -> None:
    assert log.append("s", rows()) == range(0)
    assert log.append("s", rows(), source_position={"at": 5}) == range(0)
    assert log.source_position("s") == {"at": 5}
    assert list(log.folder.iterdir()) == []


def test_a_commit_moves_cursors_and_takes_files_in_together(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        for stream in ("s", "a", "b"):
            log.declare(stream)
        log.append("s", rows(1, 2, 3))
        assert log.start_reader("qa", "s") == 0
        assert log.start_reader("qb", "s", "latest") == 3
        file = write(log, "unit-1", a=rows(10, 20), b=rows(7))
        log.commit([Commit((("qa", "s", 0, 2),), (file,)), Commit((("qa", "s", 2, 3),))])
    with Log.open(tmp_path) as log:
        assert (log.cursor("qa"), log.cursor("qb"), log.cursor("none")) == (3, 3, None)
        assert (values(log, "a"), values(log, "b")) == ([10, 20], [7])
        assert {name: (r.stream, r.next) for name, r in log.readers().items()} == {
            "qa": ("s", 3),
            "qb": ("s", 3),
        }


@pytest.mark.parametrize(
    "bad",
    [("q", "s", 1, 2), ("q", "s", 0, 9), ("q", "a", 0, 0), ("q", "s", 0, -1)],
)
def test_a_commit_that_does_not_fit_the_cursor_has_no_effect(log: Log, bad: tuple[str, str, int, int]) -> None:
    log.declare("a")
    log.append("s", rows(1, 2, 3))
    log.start_reader("q", "s")
    log.start_reader("other", "s")
    file = write(log, "unit-1", a=rows(1))
    with pytest.raises(CursorMoved):
        log.commit([Commit((("other", "s", 0, 1),), (file,)), Commit((bad,))])
    assert (log.cursor("q"), log.cursor("other"), log.end("a")) == (0, 0, 0)
    # The log goes on, and numbers were not used up.
    log.commit([Commit((("other", "s", 0, 1),), (file,))])
    assert log.train("a", 0, 1).segments[0].sequence == 1


def test_files_that_are_missing_or_cut_are_not_committed(log: Log) -> None:
    whole = write(log, "unit-1", s=rows(1))
    (log.folder / whole.name).unlink()
    with pytest.raises(FreshetError, match="must run again"):
        log.commit([Commit(files=(whole,))])
    cut = write(log, "unit-2", s=rows(1))
    with (log.folder / cut.name).open("r+b") as file:
        file.truncate(10)
    with pytest.raises(FreshetError, match="must run again"):
        log.commit([Commit(files=(cut,))])
    assert log.end("s") == 0


def test_a_file_may_hold_several_segments_of_a_stream(log: Log) -> None:
    writer = SegmentWriter(log.folder, "unit")
    writer.add("s", rows(1, 2))
    writer.add("s", rows(3))
    log.commit([Commit(files=(writer.finish(), SegmentFile("nothing.arrows", 0, ())))])
    assert values(log, "s") == [1, 2, 3]
    assert len(log.train("s", 0, 3).segments) == 2


def test_unknown_names_are_named(log: Log) -> None:
    for call in (
        lambda: log.append("x", rows(1)),
        lambda: log.end("x"),
        lambda: log.start_reader("q", "x"),
        lambda: log.commit([Commit(files=(write(log, "u", x=rows(1)),))]),
    ):
        with pytest.raises(FreshetError, match="no stream x; it has: s"):
            call()
    with pytest.raises(FreshetError, match="no reader q"):
        log.commit([Commit((("q", "s", 0, 0),))])


def test_a_sink_keeps_its_state_with_its_cursor(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.append("s", rows(1, 2))
        log.start_reader("sink", "s")
        assert log.reader_state("sink") == {}
        log.advance("sink", "s", 2, {"bytes": 17})
        with pytest.raises(CursorMoved):
            log.advance("sink", "s", 1)
    with Log.open(tmp_path) as log:
        assert log.start_reader("sink", "s", "latest") == 2
        assert log.reader_state("sink") == {"bytes": 17}
        log.set_cursor("sink", "earliest")
        assert log.cursor("sink") == 0
        log.drop_reader("sink")
        assert log.cursor("sink") is None


def test_a_reader_stays_with_its_stream(log: Log) -> None:
    log.declare("t")
    log.start_reader("q", "s")
    with pytest.raises(FreshetError, match="reads s, not t"):
        log.start_reader("q", "t")
    with pytest.raises(FreshetError, match="no reader can stand at 5"):
        log.start_reader("r", "s", 5)


def test_heartbeats_are_entries_of_the_sequence(log: Log) -> None:
    log.heartbeat("s", 5)
    log.append("s", rows(1))
    log.heartbeat("s", 10)
    log.heartbeat("s", 20)
    # Of those at one offset the newest says all that the others said.
    assert [(beat.sequence, beat.offset, beat.time) for beat in log.heartbeats("s")] == [(0, 0, 5), (3, 1, 20)]
    assert [beat.time for beat in log.heartbeats("s", 1)] == [20]
    assert log.meters().streams["s"].heartbeats == 3


def test_dead_letters_and_late_rows_are_counted_and_exact(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("a/b")
        log.append("a/b", rows(), dead=[{"n": 1}], late=[{"m": 1}, {"m": 2}])
        (dead,) = (tmp_path / "dead").iterdir()
        dead.open("a").write('{"n": "written before a crash, never committed"}\n')
    with Log.open(tmp_path) as log:
        assert dead.read_text() == '{"n": 1}\n'
        log.append("a/b", rows(), dead=[{"n": 2}])
        meter = log.meters().streams["a/b"]
        assert (meter.dead, meter.late) == (2, 2)
        assert dead.read_text() == '{"n": 1}\n{"n": 2}\n'
        log.forget("a/b")
        assert not dead.exists()


def test_a_forgotten_stream_takes_its_readers_along(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", Retention(bound_bytes=5))
        log.append("s", rows(1))
        log.start_reader("q", "s")
        log.forget("s")
        assert (log.readers(), log.streams()) == ({}, {})
        log.declare("s")
        assert (log.oldest("s"), log.end("s")) == (0, 0)
        log.append("s", rows(2))
    with Log.open(tmp_path) as log:
        assert values(log, "s") == [2]
        assert len(log.collect().files) == 1
        assert values(log, "s") == [2]


def test_redeclaring_changes_the_retention_only(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.append("s", rows(1))
        log.declare("s", Retention(history_age=5))
        assert values(log, "s") == [1]
    with Log.open(tmp_path) as log:
        assert log.streams() == {"s": Retention(history_age=5)}


def test_bytes_of_a_range(log: Log) -> None:
    log.append("s", rows(*range(100)))
    log.append("s", rows(*range(100)))
    whole = sum(part.length for part in log.train("s", 0, 200).segments)
    assert log.bytes("s", 0, 200) == whole
    assert log.bytes("s", 50, 150) == pytest.approx(whole / 2, abs=2)
    assert log.bytes("s", 7, 7) == 0


def test_threads_append_and_commit_at_once(tmp_path: Path) -> None:
    streams = [f"s{number}" for number in range(6)]
    with Log.open(tmp_path) as log:
        for stream in streams:
            log.declare(stream)
            log.declare("out." + stream)
            log.start_reader("q." + stream, stream)

        def work(stream: str) -> None:
            for number in range(10):
                offsets = log.append(stream, rows(number, number))
                file = write(log, f"{stream}-{number}", **{"out." + stream: rows(number)})
                log.commit([Commit((("q." + stream, stream, offsets.start, offsets.stop),), (file,))])

        threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with Log.open(tmp_path) as log:
        seen = []
        for stream in streams:
            assert values(log, stream) == [number for number in range(10) for _ in range(2)]
            assert values(log, "out." + stream) == list(range(10))
            assert log.cursor("q." + stream) == 20
            for name in (stream, "out." + stream):
                seen += [part.sequence for part in log.train(name, 0, log.end(name)).segments]
        assert sorted(seen) == list(range(120))


def test_a_file_of_250_members_is_one_row(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.append("s", rows(1))
        names = [f"q{number}" for number in range(250)]
        for name in names:
            log.declare(name)
            log.start_reader("r." + name, "s")
        file = write(log, "unit", **{name: rows(1) for name in names})
        log.commit([Commit(tuple(("r." + name, "s", 0, 1) for name in names), (file,))])
        assert {log.end(name) for name in names} == {1}
        assert {log.cursor("r." + name) for name in names} == {1}
    with sqlite3.connect(tmp_path / "store.db") as connection:
        assert connection.execute("SELECT count(*) FROM segments").fetchone() == (2,)


def test_a_second_owner_is_refused(tmp_path: Path) -> None:
    with Log.open(tmp_path):
        script = (
            "import sys, pathlib, freshet.log as l\n"
            "try: l.Log.open(pathlib.Path(sys.argv[1]))\n"
            "except Exception as e: print(type(e).__name__, e)"
        )
        told = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
        assert told.stdout.startswith("UserError")
        assert "in use by process" in told.stdout
        assert "epoch 1" in told.stdout
        with pytest.raises(UserError, match="in use"):
            Log.open(tmp_path)
    Log.open(tmp_path).close()


def test_an_owner_back_from_the_dead_cannot_write(tmp_path: Path) -> None:
    with Log.open(tmp_path) as old:
        old.declare("s")
        old.start_reader("q", "s")
        old.append("s", rows(1))
        file = write(old, "unit", s=rows(13))
        # What a shared disk does when it takes the lease of a silent host away.
        (tmp_path / "lock").unlink()
        script = (
            "import sys, pathlib, pyarrow as pa, freshet.log as l\n"
            "log = l.Log.open(pathlib.Path(sys.argv[1]))\n"
            "print(log.append('s', pa.table({'v': [2], '__arrival': [2]})))"
        )
        new = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
        assert new.stdout.strip() == "range(1, 2)"
        for call in (
            lambda: old.append("s", rows(3)),
            lambda: old.commit([Commit((("q", "s", 0, 1),), (file,))]),
            lambda: old.advance("q", "s", 1),
            lambda: old.collect(),
        ):
            with pytest.raises(Deposed, match="epoch 1 of this state folder is over"):
                call()
    with Log.open(tmp_path) as log:
        assert values(log, "s") == [1, 2]
        assert log.cursor("q") == 0


def test_another_format_is_refused(tmp_path: Path) -> None:
    Log.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="has format 99, this version of Freshet reads format 4"):
        Log.open(tmp_path)


def test_a_folder_of_the_first_format_is_taken_over(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        for reader in ("well", "stuck"):
            log.start_reader(reader, "s")
        log.append("s", rows(1, 2))
        log.advance("well", "s", 1)
        log.set_need("stuck", False)
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.execute("DELETE FROM meta WHERE key IN ('digest', 'commits')")
    (tmp_path / "tail").unlink()
    for file in (tmp_path / "segments").iterdir():
        unstamped = file.name.split("@")[0] + ".arrows"
        connection.execute("UPDATE segments SET file = ? WHERE file = ?", (unstamped, file.name))
        file.rename(file.with_name(unstamped))
    connection.commit()
    with LogReader(tmp_path) as other:
        assert other.end("s") == 2
    with Log.open(tmp_path) as log:
        found = {name: (one.next, one.needed, one.parked) for name, one in log.readers().items()}
        assert found == {"well": (1, True, False), "stuck": (0, False, False)}
        log.park(["well"])
    # What holds parked readers must not be opened by a version that does not know them.
    with sqlite3.connect(tmp_path / "store.db") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)


def test_a_foreign_database_or_a_file_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(UserError, match="not one of Freshet"):
        Log.open(tmp_path)
    with pytest.raises(UserError, match="not a folder"):
        Log.open(tmp_path / "store.db")


def test_a_closed_log_says_so(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    log.declare("s")
    log.close()
    log.close()
    with pytest.raises(FreshetError, match="closed"):
        log.append("s", rows(1))


def test_kinds_are_found_once_in_a_folder_of_format_3(tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[1] / "takeover" / "v3" / "waiting.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    with LogReader(tmp_path / "state") as before:
        # One that is only read stays as it is.
        kinds = {name: before.kind(name) for name in before.streams()}
        readers = {name: (reader.kind, reader.owner) for name, reader in before.readers().items()}
    with Log.open(tmp_path / "state") as log:
        streams = {name: log.kind(name) for name in log.streams()}
        assert {name: (reader.kind, reader.owner) for name, reader in log.readers().items()} == readers
    assert streams == kinds | {"packets": "stream", "alerts": "stream"}
    assert set(streams.values()) == {"stream", "output", "queue", "state", "versions"}
    assert (streams["large"], streams["pairs.join_1.state"], streams["table:hosts"]) == ("output", "state", "versions")
    assert {name for name, kind in streams.items() if "@" in name or name.startswith("__shared")} <= {
        name for name, kind in streams.items() if kind == "queue"
    }
    assert readers["pairs.join_1.state"] == ("state", "pairs")
    assert {owner for kind, owner in readers.values() if kind == "operator"} >= {"pairs", "both", "loud"}
    assert not any(check.damage for check in verify(tmp_path / "state"))
