from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from tests.log.rows import rows, values, write

from freshet.log import CursorMoved, Log, Retention, SegmentWriter
from freshet.model import ARRIVAL, Commit, FreshetError, SegmentFile


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
    with pytest.raises(FreshetError, match="no reader can be at 5"):
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
