"""What happens when there is no room: nothing is acknowledged, nothing half-written stays, the log goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.log import Limits, Log, LogFull, Retention, SegmentWriter
from freshet.model import ARRIVAL, Commit

ROWS = 4000


def rows(first: int) -> pa.Table:
    numbers = pa.array(range(first, first + ROWS), pa.int64())
    return pa.table({"v": numbers, ARRIVAL: numbers})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"mounting a small disk is not permitted here: {error}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_disk_that_fills_up_and_is_freed_again(small_disk: Path) -> None:
    acknowledged = 0
    with Log.open(small_disk, limits=Limits(min_free_bytes=0)) as log:
        log.declare("s", Retention(history_age=0, history_bytes=0))
        log.start_reader("q", "s")
        with suppress(LogFull):
            for number in range(1000):
                log.append("s", rows(acknowledged), dead=[{"n": number}], source_position={"at": number})
                acknowledged += ROWS
        with pytest.raises(LogFull):
            log.append("s", rows(acknowledged), dead=[{"n": -1}])
        assert 0 < acknowledged == log.end("s")
        batches = acknowledged // ROWS
        # Nothing half-written stays: no file that the log does not know, no line of a refused batch.
        assert len(list(log.folder.iterdir())) == batches
        assert len((small_disk / "dead" / "s.jsonl").read_text().splitlines()) == batches
        assert log.source_position("s") == {"at": batches - 1}
        assert log.read("s", 0, acknowledged)["v"].to_pylist() == list(range(acknowledged))
        refuse_a_unit(log)
        log.advance("q", "s", acknowledged - ROWS)
        log.collect()
        log.append("s", rows(acknowledged))
    with Log.open(small_disk) as log:
        assert log.end("s") == acknowledged + ROWS
        assert log.cursor("q") == acknowledged - ROWS


def refuse_a_unit(log: Log) -> None:
    """The file of a worker that finds no room is not there afterwards."""
    writer = SegmentWriter(log.folder, "unit")
    for number in range(40):
        writer.add("s", rows(number))
    before = set(log.folder.iterdir())
    with pytest.raises(OSError, match="No space left"):
        writer.finish()
    assert set(log.folder.iterdir()) == before


def test_room_is_left_for_commits(small_disk: Path) -> None:
    with Log.open(small_disk, limits=Limits(min_free_bytes=700_000)) as log:
        for stream in ("s", "out"):
            log.declare(stream, Retention(history_age=0, history_bytes=0))
        log.start_reader("q", "s")
        end = 0
        while log.held_back("s") is None:
            end = log.append("s", rows(end)).stop
        with pytest.raises(LogFull, match="bytes of disk are free, 700,000 must be"):
            log.append("s", rows(end))
        cursor = 0
        while cursor < end:
            with SegmentWriter(log.folder, f"unit-{cursor}") as writer:
                writer.add("out", log.read("s", cursor, cursor + ROWS).slice(0, 10))
                log.commit([Commit((("q", "s", cursor, cursor + ROWS),), (writer.finish(),))])
            cursor += ROWS
            log.collect()
        assert log.held_back("s") is None
        log.append("s", rows(end))


CHILD = """
import resource, sys, pathlib
import pyarrow as pa
from freshet.log import Log, LogFull
log = Log.open(pathlib.Path(sys.argv[1]))
log.declare("s")
small = pa.table({"v": [1], "__arrival": [1]})
large = pa.table({"v": list(range(100_000)), "__arrival": [1] * 100_000})
log.append("s", small)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
try:
    log.append("s", large, dead=[{"x": 1}], source_position={"at": 1})
except LogFull as error:
    print("full:", error)
print(log.append("s", small), log.source_position("s"), len(list(log.folder.iterdir())))
print((pathlib.Path(sys.argv[1]) / "dead" / "s.jsonl").read_text() == "")
"""


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, tmp_path], capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert told[0] == "full: s is held back: no room for it on disk (File too large)"
    assert told[1:] == ["range(1, 2) None 2", "True"]


def test_little_free_disk_holds_everything_back(tmp_path: Path) -> None:
    with Log.open(tmp_path, limits=Limits(min_free_bytes=2**62)) as log:
        log.declare("s")
        with pytest.raises(LogFull, match="bytes of disk are free"):
            log.append("s", rows(0))
        assert list(log.folder.iterdir()) == []


def test_a_store_that_may_not_grow(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.append("s", rows(0))
        (pages,) = log._store.rows("PRAGMA page_count")[0]
        log._store.rows(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LogFull, match="the disk of the state folder is full"):
            log.append("s", rows(ROWS), source_position={"at": "x" * 200_000}, dead=[{"n": 1}])
        assert (log.end("s"), log.source_position("s"), log.meters().streams["s"].dead) == (ROWS, None, 0)
        assert len(list(log.folder.iterdir())) == 1
        assert (tmp_path / "dead" / "s.jsonl").read_text() == ""
        assert log.append("s", rows(ROWS), source_position={"at": 1}) == range(ROWS, 2 * ROWS)
