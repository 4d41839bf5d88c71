"""Streams in memory that is used again."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.log.segments import blocks
from freshet.log.segments.blocks import ALIGNMENT, MOST_SPARE, SIZE, Blocks
from freshet.log.segments.sums import sum_of


@pytest.fixture(autouse=True)
def spare(monkeypatch: pytest.MonkeyPatch) -> list[pa.Buffer]:
    """The blocks that are left for later files."""
    kept: list[pa.Buffer] = []
    monkeypatch.setattr(blocks, "_spare", kept)
    return kept


def table(rows: int, first: int = 0) -> pa.Table:
    return pa.table({"v": range(first, first + rows), "name": [str(each % 7) for each in range(rows)]})


def bytes_of(made: Blocks) -> bytes:
    return b"".join([bytes(memoryview(each)) for each in made.buffers])


def read(made: Blocks, *places: tuple[int, int]) -> list[pa.Table]:
    """The rows at some places of a file, whose checksums must fit."""
    content = pa.py_buffer(bytes_of(made))
    assert content.size == made.size
    found = []
    for position, length in places:
        assert position % ALIGNMENT == 0
        stream = content.slice(position, length - len(sum_of(content)))
        assert content.slice(position + stream.size, length - stream.size).to_pybytes() == sum_of(stream)
        found.append(pa.ipc.open_stream(stream).read_all())
    return found


def address(made: Blocks) -> int:
    place: int = pa.py_buffer(made.buffers[0]).address
    return place


@given(st.lists(st.lists(st.integers(0, 120_000), max_size=6), max_size=4))
def test_streams_hold_their_rows_until_they_are_released(files: list[list[int]]) -> None:
    for sizes in files:
        made = Blocks()
        tables = [table(rows, first) for first, rows in enumerate(sizes)]
        places = [made.add(each) for each in tables]
        assert read(made, *places) == tables
        assert all(sum(place) <= after for place, (after, _) in pairwise(places))
        made.release()


def test_rows_of_several_batches_are_one_stream() -> None:
    whole = pa.concat_tables([table(10), table(5, 10)])
    assert whole.column("v").num_chunks == 2
    made = Blocks()
    places = made.add(whole), made.add(table(3).to_batches()[0].slice(1))
    assert [each.column("v").to_pylist() for each in read(made, *places)] == [list(range(15)), [1, 2]]


def test_memory_is_used_again(spare: list[pa.Buffer]) -> None:
    first = Blocks()
    first.add(table(10))
    place = address(first)
    first.release()
    assert len(spare) == 1
    second, third = Blocks(), Blocks()
    second.add(table(10))
    third.add(table(10))
    assert address(second) == place
    assert address(third) != place  # the block is not free yet
    second.release()
    second.release()
    assert len(spare) == 1


def test_only_so_many_blocks_are_kept(spare: list[pa.Buffer]) -> None:
    made = Blocks()
    large = pa.table({"v": range(SIZE // 16)})
    for _ in range(2 * MOST_SPARE + 6):
        made.add(large)
    made.release()
    assert len(spare) == MOST_SPARE


@pytest.mark.parametrize("first", [0, 10])
def test_a_stream_that_no_block_can_hold_has_memory_of_its_own(spare: list[pa.Buffer], first: int) -> None:
    made = Blocks()
    tables = [table(first), pa.table({"v": range(SIZE // 8)}), table(3)]
    places = [made.add(each) for each in tables]
    assert read(made, *places) == tables
    assert len(made.buffers) == 5
    made.release()
    assert len(spare) == 2


def test_a_stream_with_few_rows_and_more_bytes_than_a_block_is_whole() -> None:
    made = Blocks()
    tables = [table(10), pa.table({"n" * 3 * SIZE: [1]}), table(3), pa.table({"v": ["x" * SIZE]}), table(1)]
    places = [made.add(each) for each in tables]
    assert read(made, *places) == tables


def test_bytes_between_streams_are_zero(spare: list[pa.Buffer]) -> None:
    """Memory that is used again holds what others wrote."""
    spare += [pa.py_buffer(bytearray(b"x" * SIZE)), pa.py_buffer(bytearray(b"x" * SIZE))]
    made = Blocks()
    places = [made.add(table(rows)) for rows in (5, 200_000, 150_000, 7)]
    content = bytearray(bytes_of(made))
    for position, length in places:
        content[position : position + length] = bytes(length)
    assert not any(content)
    assert len(made.buffers) == 2
