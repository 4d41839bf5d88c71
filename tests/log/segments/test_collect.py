from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.log import Lagged, Limits, Log, LogFull, Retention, SegmentWriter
from freshet.model import ARRIVAL, Commit

NO_HISTORY = Retention(history_age=0, history_bytes=0)


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


def rows(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([1] * len(values), pa.int64())})


def segment_bytes(log: Log) -> int:
    return log.train("s", log.end("s") - 1, log.end("s")).segments[0].length


def files(log: Log) -> int:
    return len(list(log.folder.iterdir()))


def test_what_every_reader_has_consumed_goes(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", NO_HISTORY)
        for reader in ("a", "b"):
            log.start_reader(reader, "s")
        for value in range(5):
            log.append("s", rows(value, value))
        log.advance("a", "s", 10)
        log.advance("b", "s", 5)
        done = log.collect()
        # The reader stands in the middle of the third segment, which stays.
        assert (done.segments, len(done.files), log.oldest("s"), files(log)) == (2, 2, 4, 3)
        assert log.read("s", 5, 10)["v"].to_pylist() == [2, 3, 3, 4, 4]
        with pytest.raises(Lagged, match="offset 3 is gone, retention keeps offsets from 4 on") as lagged:
            log.read("s", 3, 10)
        assert (lagged.value.asked, lagged.value.oldest) == (3, 4)
        with pytest.raises(Lagged):
            log.arrival("s", 0)
        log.drop_reader("b")
        log.collect()
        assert (log.oldest("s"), log.end("s"), files(log)) == (10, 10, 0)
    with Log.open(tmp_path) as log:
        assert (log.oldest("s"), log.end("s")) == (10, 10)
        assert log.append("s", rows(7)) == range(10, 11)
        assert log.start_reader("c", "s", "earliest") == 10


def test_history_by_age_and_by_bytes(tmp_path: Path) -> None:
    clock = Clock()
    with Log.open(tmp_path, now=clock) as log:
        log.declare("s", Retention(history_age=100, history_bytes=None))
        for value in range(10):
            log.append("s", rows(value))
            clock.time += 10
        log.collect()
        assert log.oldest("s") == 0
        clock.time += 25
        log.collect()
        assert log.oldest("s") == 3
        log.declare("s", Retention(history_age=None, history_bytes=4 * segment_bytes(log) + 1))
        log.collect()
        assert log.oldest("s") == 6


def test_a_shared_file_stays_while_one_member_is_needed(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        for stream in ("a", "b"):
            log.declare(stream, NO_HISTORY)
        log.start_reader("ra", "a")
        log.start_reader("rb", "b")
        with SegmentWriter(log.folder, "unit") as writer:
            writer.add("a", rows(1))
            writer.add("b", rows(2))
            log.commit([Commit(files=(writer.finish(),))])
        log.advance("ra", "a", 1)
        done = log.collect()
        assert (done.segments, done.files, log.oldest("a")) == (1, [], 1)
    with Log.open(tmp_path) as log:
        assert log.read("b", 0, 1)["v"].to_pylist() == [2]
        with pytest.raises(Lagged):
            log.read("a", 0, 1)
        log.advance("rb", "b", 1)
        assert log.collect().files == ["unit.arrows"]
        assert files(log) == 0


def test_the_bound_holds_a_stream_back_until_its_readers_have_read(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.append("s", rows(0))
        log.start_reader("q", "s")
        bound = 2 * segment_bytes(log)
        log.declare("s", Retention(bound_bytes=bound))
        log.append("s", rows(1))
        with pytest.raises(LogFull, match="wait for its readers, the bound is"):
            log.append("s", rows(2), source_position={"at": 3}, dead=[{"x": 1}])
        assert (log.end("s"), log.source_position("s"), files(log)) == (2, None, 2)
        assert "s is held back" in (log.meters().streams["s"].held_back or "")
        assert not list((tmp_path / "dead").iterdir())
        log.advance("q", "s", 1)
        assert log.held_back("s") is None
        assert log.append("s", rows(2)) == range(2, 3)


def test_a_quarantined_reader_holds_data_up_to_the_bound_and_its_losses_are_recorded(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", NO_HISTORY)
        for reader in ("stuck", "well"):
            log.start_reader(reader, "s")
        log.append("s", rows(0))
        log.declare("s", Retention(0, 0, bound_bytes=3 * segment_bytes(log)))
        log.set_need("stuck", False)
        for value in range(1, 10):
            log.append("s", rows(value))
            log.advance("well", "s", value + 1)
        done = log.collect()
        assert (log.oldest("s"), done.lost, files(log)) == (7, 7, 3)
        assert (log.cursor("stuck"), log.cursor("well")) == (7, 10)
        (loss,) = log.ledger()
        assert (loss.edge, loss.stream, loss.first, loss.end) == ("stuck", "s", 0, 7)
        assert loss.reason == "quarantined, and it fell behind the bound"
    with Log.open(tmp_path) as log:
        assert log.cursor("stuck") == 7
        assert log.readers()["stuck"].needed is False
        log.set_need("stuck", True)
        assert log.held_back("s") is not None
        assert log.collect().lost == 0
        assert len(log.ledger()) == 1


def test_a_parked_reader_holds_nothing_and_keeps_its_place(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", NO_HISTORY)
        for reader in ("out", "well"):
            log.start_reader(reader, "s")
        for value in range(4):
            log.append("s", rows(value))
        log.advance("out", "s", 1, {"fingerprint": "f"})
        log.park(["out"])
        assert log.meters().streams["s"].waiting_bytes > 0, "for the other one"
        log.advance("well", "s", 3)
        assert (log.collect().lost, log.oldest("s"), log.cursor("out")) == (0, 3, 1)
    with Log.open(tmp_path) as log:
        found = log.readers()["out"]
        assert (found.parked, found.needed, found.next, found.state) == (True, False, 1, {"fingerprint": "f"})
        assert log.ledger() == [], "it is told when it comes back, not before"
        assert log.start_reader("out", "s", "latest") == 3
        assert [(loss.edge, loss.first, loss.end, loss.reason) for loss in log.ledger()] == [
            ("out", 1, 3, "parked, and retention let it go")
        ]
        assert log.readers()["out"].needed
        log.park(["out"])
        assert log.start_reader("out", "s") == 3
        assert len(log.ledger()) == 1, "it missed nothing"


def test_others_keep_what_a_quarantined_reader_would_lose(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", Retention(0, 0, bound_bytes=None))
        for reader in ("stuck", "slow"):
            log.start_reader(reader, "s")
        log.set_need("stuck", False)
        for value in range(5):
            log.append("s", rows(value))
        log.declare("s", Retention(0, 0, bound_bytes=1))
        assert log.collect().lost == 0
        assert log.read("s", 0, 5)["v"].to_pylist() == [0, 1, 2, 3, 4]


def test_with_little_disk_left_only_readers_at_work_keep_data(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        for reader in ("stuck", "well"):
            log.start_reader(reader, "s")
        for value in range(5):
            log.append("s", rows(value))
        log.set_need("stuck", False)
        log.advance("well", "s", 4)
    with Log.open(tmp_path, limits=Limits(min_free_bytes=2**62)) as log:
        done = log.collect()
        assert (log.oldest("s"), done.lost) == (4, 4)
        assert log.ledger()[0].reason == "quarantined, and the disk was nearly full"


def test_orphans_go_by_age(tmp_path: Path) -> None:
    with Log.open(tmp_path, limits=Limits(orphan_age=600)) as log:
        log.declare("s")
        log.append("s", rows(1))
        for name in ("young", "old"):
            with SegmentWriter(log.folder, name) as writer:
                writer.add("s", rows(2))
                writer.finish()
        for path in log.folder.iterdir():
            if path.stem != "young":
                os.utime(path, (time.time() - 700,) * 2)
        assert log.collect().orphans == ["old.arrows"]
        assert log.read("s", 0, 1)["v"].to_pylist() == [1]
        assert (log.folder / "young.arrows").exists()


def test_files_left_by_a_crash_while_deleting_are_orphans(tmp_path: Path) -> None:
    with Log.open(tmp_path, limits=Limits(orphan_age=0)) as log:
        log.declare("s", NO_HISTORY)
        log.append("s", rows(1))
        (path,) = log.folder.iterdir()
        content = path.read_bytes()
        log.collect()
        path.write_bytes(content)
        os.utime(path, (1, 1))
        assert log.collect().orphans == [path.name]


def test_a_mapped_train_outlives_its_files(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", NO_HISTORY)
        log.append("s", rows(*range(1000)))
        train, table = log.train("s", 0, 1000), log.read("s", 0, 1000)
        log.collect()
        assert not (log.folder / train.segments[0].file).exists()
        assert table["v"].to_pylist() == list(range(1000))
