"""Versions of tables in the log: their arrivals order them among all tuples, and they survive a crash."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.log import Limits, Log, LogFull, StoredVersion, TableVersions, kept_versions
from freshet.model import ARRIVAL, FreshetError, version_stream


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with open_log(tmp_path) as log:
        log.declare("s")
        yield log


def open_log(folder: Path, free: int = 0) -> Log:
    return Log.open(folder, limits=Limits(min_free_bytes=free))


def tuples(*arrivals: int) -> pa.Table:
    return pa.table({"v": list(range(len(arrivals))), ARRIVAL: list(arrivals)})


def rows(*names: str) -> pa.Table:
    return pa.table({"name": pa.array(names, pa.string())})


def test_a_version_arrives_after_all_that_is_there_and_before_all_that_comes(log: Log) -> None:
    ahead = 4_000_000_000_000_000  # of a source whose clock is far ahead
    log.append("s", tuples(5, ahead))
    versions = TableVersions(log, "t")
    versions.put(rows("a"))
    assert versions.kept.segments[0].arrival > ahead
    log.declare("later")
    for stream in ("s", "later"):
        offsets = log.append(stream, tuples(7))
        assert log.arrival(stream, offsets.start) >= versions.kept.segments[0].arrival


def test_that_holds_over_restarts(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.declare("s")
        TableVersions(log, "t").put(rows("a"))
    with open_log(tmp_path) as log:
        versions = TableVersions(log, "t")
        log.append("s", tuples(1))
        assert log.arrival("s", 0) >= versions.kept.segments[0].arrival
        assert not versions.put(rows("a"))
        found = versions.newest()
        assert found is not None
        assert found.to_pylist() == [{"name": "a"}]


def test_appends_at_the_same_time_are_on_one_side_of_a_version(log: Log) -> None:
    versions = TableVersions(log, "t")
    stop = threading.Event()

    def feed() -> None:
        while not stop.is_set():
            log.append("s", tuples(1, 2))

    threads = [threading.Thread(target=feed) for _ in range(2)]
    for thread in threads:
        thread.start()
    places = []
    for number in range(10):
        versions.put(rows(str(number)))
        places.append(log.end("s"))
    stop.set()
    for thread in threads:
        thread.join()
    arrivals = log.read("s", 0, log.end("s"))[ARRIVAL].to_pylist()
    for segment, place in zip(versions.kept.segments, places, strict=True):
        # What was there when the version had been put may be on either side, what comes behind it is not.
        assert all(arrival >= segment.arrival for arrival in arrivals[place:])
        before = [arrival for arrival in arrivals if arrival < segment.arrival]
        assert before == arrivals[: len(before)]


def test_an_empty_table_is_a_version(log: Log) -> None:
    versions = TableVersions(log, "t")
    assert versions.put(rows())
    found = versions.newest()
    assert found is not None
    assert (found.num_rows, found.schema.names) == (0, ["name"])


def test_versions_can_be_read_without_the_log(log: Log) -> None:
    versions = TableVersions(log, "t")
    versions.put(rows("a"))
    versions.put(rows("b", "c"))
    kept = [StoredVersion(log.folder, segment) for segment in kept_versions(log, version_stream("t")).segments]
    assert [version.read().num_rows for version in kept] == [1, 2]
    assert len({version.key for version in kept}) == 2


def test_the_newest_version_is_never_let_go(log: Log) -> None:
    versions = TableVersions(log, "t")
    for name in "abc":
        versions.put(rows(name))
    assert versions.release(["s"]) == 2
    log.collect()
    assert (versions.number, versions.kept.rows) == (3, 1)
    assert versions.release(["s"], ["nowhere"]) == 0


def test_a_version_stays_for_tuples_of_any_order(log: Log) -> None:
    versions = TableVersions(log, "t")
    versions.put(rows("a"))
    first = versions.kept.segments[0].arrival
    versions.put(rows("b"))
    # An output in which the oldest tuple is neither the first nor the last.
    log.declare("q")
    log._state.streams["q"].arrival = 0
    writer = log._write("q", tuples(first + 10**9, first, first + 10**9))
    assert writer is not None
    log._store.write(lambda tx: log._take_files(tx, [writer]))
    assert versions.release(["s"], ["q"]) == 0
    assert versions.release(["s"]) == 1


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    with open_log(tmp_path, free=2**60) as log, pytest.raises(LogFull):
        TableVersions(log, "t").put(rows("a"))


def test_a_table_that_is_not_there(log: Log) -> None:
    with pytest.raises(FreshetError, match="table:t has no version"):
        kept_versions(log, version_stream("t"))
