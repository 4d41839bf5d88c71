"""Streams in memory that is used again."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.log.segments import blocks
from freshet.log.segments.blocks import ALIGNMENT, MOST_SPARE, SIZE, Blocks


@pytest.fixture(autouse=True)
def spare(monkeypatch: pytest.MonkeyPatch) -> list[pa.Buffer]:
    """The blocks that are left for later files."""
    kept: list[pa.Buffer] = []
    monkeypatch.setattr(blocks, "_spare", kept)
    return kept


def table(rows: int, first: int = 0) -> pa.Table:
    return pa.table({"v": range(first, first + rows), "name": [str(each % 7) for each in range(rows)]})


def read(stream: pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()


@given(st.lists(st.lists(st.integers(0, 120_000), max_size=6), max_size=4))
def test_streams_hold_their_rows_until_they_are_released(files: list[list[int]]) -> None:
    for sizes in files:
        made = Blocks()
        tables = [table(rows, first) for first, rows in enumerate(sizes)]
        streams = [made.stream(each) for each in tables]
        assert [read(each) for each in streams] == tables
        made.release()


def test_rows_of_several_batches_are_one_stream() -> None:
    whole = pa.concat_tables([table(10), table(5, 10)])
    assert whole.column("v").num_chunks == 2
    made = Blocks()
    assert read(made.stream(whole)).column("v").to_pylist() == list(range(15))
    assert read(made.stream(table(3).to_batches()[0].slice(1))).column("v").to_pylist() == [1, 2]


def test_memory_is_used_again(spare: list[pa.Buffer]) -> None:
    first = Blocks()
    place = first.stream(table(10)).address
    first.release()
    assert len(spare) == 1
    second, third = Blocks(), Blocks()
    assert second.stream(table(10)).address == place
    assert third.stream(table(10)).address != place  # the block is not free yet
    assert second.stream(table(10)).address % ALIGNMENT == 0
    second.release()
    second.release()
    assert len(spare) == 1


def test_only_so_many_blocks_are_kept(spare: list[pa.Buffer]) -> None:
    made = Blocks()
    large = pa.table({"v": range(SIZE // 16)})
    for _ in range(2 * MOST_SPARE + 6):
        made.stream(large)
    made.release()
    assert len(spare) == MOST_SPARE


def test_a_stream_that_no_block_can_hold_has_memory_of_its_own(spare: list[pa.Buffer]) -> None:
    made = Blocks()
    long = pa.table({"v": range(SIZE // 8)})
    assert read(made.stream(long)) == long
    made.release()
    assert not spare


def test_a_stream_with_more_around_its_rows_than_was_thought_is_whole() -> None:
    made = Blocks()
    wide = pa.table({"n" * 3 * SIZE: [1]})
    small = made.stream(table(10))
    assert read(made.stream(wide)) == wide
    assert read(made.stream(table(3))) == table(3)
    assert read(small) == table(10)
