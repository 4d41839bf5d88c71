from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from freshet.log import Limits, Log, LogReader, Retention, SegmentWriter, read_train
from freshet.model import ARRIVAL, Commit

QUERIES = [f"q{number}" for number in range(10)]


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


def rows(value: int) -> pa.Table:
    return pa.table({"v": pa.array([value] * 50, pa.int64()), ARRIVAL: pa.array([1] * 50, pa.int64())})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock):
    """Ten outputs share five files; only the sink of q3 has not read them."""
    with Log.open(tmp_path, now=clock, limits=Limits(orphan_age=600, sparse_age=60)) as log:
        for query in QUERIES:
            log.declare(query, Retention(history_age=0, history_bytes=0))
        log.start_reader("sink", "q3")
        for number in range(5):
            with SegmentWriter(log.folder, f"unit-{number}") as writer:
                for place, query in enumerate(QUERIES):
                    writer.add(query, rows(100 * number + place))
                log.commit([Commit(files=(writer.finish(),))])
        yield log


def expected() -> list[int]:
    return [100 * number + 3 for number in range(5) for _ in range(50)]


def test_one_slow_sink_does_not_keep_the_files_of_everybody(log: Log, clock: Clock, tmp_path: Path) -> None:
    reader = LogReader(tmp_path)
    assert reader.end("q3") == 250
    before, sequences = log.train("q3", 0, 250), [part.sequence for part in log.train("q3", 0, 250).segments]
    assert log.collect().rewritten == []  # too young
    clock.time += 61
    assert len(log.collect().rewritten) == 5
    after = log.train("q3", 0, 250)
    assert len({part.file for part in after.segments}) == 1
    assert [part.sequence for part in after.segments] == sequences
    for side in (log, reader):
        assert side.read("q3", 0, 250)["v"].to_pylist() == expected()
    # A unit that was given the old files may still be reading them; they go later.
    assert read_train(log.folder, before)["v"].to_pylist() == expected()
    clock.time += 601
    assert log.collect().rewritten == []
    assert [path.name for path in log.folder.iterdir()] == [after.segments[0].file]
    assert reader.read("q3", 10, 60)["v"].to_pylist() == expected()[10:60]
    log.advance("sink", "q3", 250)
    assert log.collect().files == [after.segments[0].file]
    reader.close()


def test_moved_members_survive_reopening_and_go_one_by_one(log: Log, clock: Clock, tmp_path: Path) -> None:
    clock.time += 61
    log.collect()
    log.close()
    with Log.open(tmp_path, now=clock, limits=Limits(orphan_age=-1e12)) as log:
        assert len(log.collect().orphans) == 5
        assert log.collect().rewritten == []
        log.advance("sink", "q3", 120)
        log.collect()
        assert (log.oldest("q3"), log.meters().files) == (100, 1)
        assert log.read("q3", 100, 250)["v"].to_pylist() == expected()[100:]
        log.append("q3", rows(7))
        assert log.end("q3") == 300
