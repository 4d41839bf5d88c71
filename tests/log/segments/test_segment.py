from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.log.segments.segment import SegmentWriter, read_segment, read_train
from freshet.log.segments.storage import PosixStorage
from freshet.model import ARRIVAL, Segment, SegmentFile, Train


def table(first: int, rows: int) -> pa.Table:
    numbers = pa.array(range(first, first + rows), pa.int64())
    return pa.table({"v": numbers, "s": numbers.cast(pa.string()), ARRIVAL: numbers})


def segments(file: SegmentFile) -> list[Segment]:
    found: list[Segment] = []
    ends: dict[str, int] = {}
    for number, (stream, rows, position, length, arrival, last) in enumerate(file.members):
        first = ends.get(stream, 0)
        ends[stream] = first + rows
        found.append(Segment(stream, first, rows, number, arrival, last, file.name, position, length))
    return found


def test_members_come_back_whole_and_in_parts(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "f") as writer:
        writer.add("a", table(0, 10))
        writer.add("b", table(100, 3).select(["s", ARRIVAL]).to_batches()[0])
        writer.add("empty", table(0, 0))
        writer.add("a", table(10, 5))
        file = writer.finish()
    assert [member[0] for member in file.members] == ["a", "b", "a"]
    assert file.bytes == (tmp_path / file.name).stat().st_size
    first, other, second = segments(file)
    assert read_segment(tmp_path, first, 0, 10) == table(0, 10)
    assert read_segment(tmp_path, first, 3, 5) == table(3, 2)
    assert read_segment(tmp_path, other, 0, 3).to_pydict() == {
        "s": ["100", "101", "102"],
        ARRIVAL: [100, 101, 102],
    }
    train = Train("a", 8, 12, (first, second))
    assert read_train(tmp_path, train) == table(8, 4)


def test_chunked_tables_and_slices_are_segments(tmp_path: Path) -> None:
    chunked = pa.concat_tables([table(0, 4), table(4, 4)]).slice(2, 5)
    writer = SegmentWriter(tmp_path, "f")
    writer.add("a", chunked)
    (segment,) = segments(writer.finish())
    assert (segment.rows, segment.arrival, segment.last_arrival) == (5, 2, 6)
    assert read_segment(tmp_path, segment, 0, 5) == table(2, 5)


def test_reading_does_not_copy(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, "f")
    writer.add("pad", table(0, 1))
    writer.add("a", table(0, 100_000))
    segment = segments(writer.finish())[1]
    before = pa.total_allocated_bytes()
    read = read_segment(tmp_path, segment, 0, segment.rows)
    assert pa.total_allocated_bytes() - before < 10_000
    # A train outlives its file: retention may delete what a worker still has mapped.
    (tmp_path / "f.arrows").unlink()
    assert read == table(0, 100_000)


def test_nothing_is_written_before_finish_nor_without_rows(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, "f")
    writer.add("a", table(0, 3))
    writer.abort()
    assert SegmentWriter(tmp_path, "g").finish() == SegmentFile("g.arrows", 0, ())
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_never_written_twice(tmp_path: Path) -> None:
    for rows in (1, 2):
        writer = SegmentWriter(tmp_path, "f")
        writer.add("a", table(0, rows))
        if rows == 1:
            (segment,) = segments(writer.finish())
        else:
            with pytest.raises(FileExistsError):
                writer.finish()
    assert read_segment(tmp_path, segment, 0, 1) == table(0, 1)


@pytest.mark.parametrize(
    "bad",
    [
        pa.table({"v": [1]}),
        pa.table({ARRIVAL: [1], "v": [1]}),
        pa.table({ARRIVAL: ["1"]}),
        pa.table({ARRIVAL: pa.array([None], pa.int64())}),
    ],
)
def test_the_last_column_is_the_arrival(tmp_path: Path, bad: pa.Table) -> None:
    with pytest.raises(ValueError, match=ARRIVAL):
        SegmentWriter(tmp_path, "f").add("a", bad)


def test_an_empty_train_needs_a_schema(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="schema"):
        read_train(tmp_path, Train("a", 3, 3))
    assert read_train(tmp_path, Train("a", 3, 3), table(0, 1).schema) == table(0, 0)


def test_names_of_files_are_not_interned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interned: list[str] = []

    def noted(text: str) -> str:
        interned.append(text)
        return text

    monkeypatch.setattr(sys, "intern", noted)
    with SegmentWriter(tmp_path, "used-once") as writer:
        writer.add("a", table(0, 10))
        file = writer.finish()
    [segment] = segments(file)
    assert read_train(tmp_path, Train("a", 0, 10, (segment,))).num_rows == 10
    storage = PosixStorage(tmp_path)
    storage.sync([file.name])
    assert storage.size(file.name) == file.bytes
    storage.delete(file.name)
    assert storage.size(file.name) is None
    assert not [text for text in interned if "used-once" in text]
