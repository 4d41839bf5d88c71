from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freshet.log.segments.index import StreamIndex
from freshet.model import Segment

SIZES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 300), st.integers(0, 50)), max_size=12)


@given(SIZES, st.integers(0, 20), st.integers(0, 60), st.integers(0, 60), st.integers(0, 900), st.integers(0, 60))
def test_look_ups_agree_with_looking_at_every_segment(
    sizes: list[tuple[int, int, int]], drop: int, first: int, end: int, limit: int, time: int
) -> None:
    index = StreamIndex("s")
    segments: list[tuple[Segment, int]] = []
    offset = appended = 0
    for row, (rows, length, pause) in enumerate(sizes):
        appended += pause
        segment = Segment("s", offset, rows, row, 0, 0, f"f{row}", 0, length)
        index.add(segment, appended, row)
        segments.append((segment, appended))
        offset += rows
    boundary = index.whole(drop)
    assert boundary == max((s.end for s, _ in segments if s.end <= drop), default=0)
    assert index.drop_below(boundary) == [(s.sequence, s.length) for s, _ in segments if s.end <= boundary]
    segments = [(s, t) for s, t in segments if s.end > boundary]
    assert (index.oldest, index.end) == (boundary, offset)

    first, end = max(first, boundary), min(end, offset)
    overlapping = [s for s, _ in segments if s.first < end and s.end > first and first < end]
    assert list(index.train(first, end).segments) == overlapping
    exact = sum(s.length * (min(end, s.end) - max(first, s.first)) / s.rows for s in overlapping)
    assert abs(index.bytes(first, end) - exact) <= 2

    def after(place: int) -> int:
        return sum(s.length for s, _ in segments if s.first >= place)

    starts = [s.first for s, _ in segments] + [offset]
    assert index.newest_within(limit) == min(place for place in starts if after(place) <= limit)
    young = [s.first for s, t in segments if t >= time]
    assert index.younger_than(time) == (young[0] if young else offset)
    for s, _ in segments:
        assert index.at(s.first) is s
        assert index.at(s.end - 1) is s
