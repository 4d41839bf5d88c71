"""Capacities and path segments, on examples and at random."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import paths_to
from freshet.policies.mavstream.rest_paths import RestPaths
from freshet.policies.mavstream.segments import (
    bytes_left,
    capacity,
    first_segment,
    path_segments,
    simplified_segments,
    whole_segment,
)
from freshet.simulation.view import RecordView


def example() -> tuple[RecordView, tuple[int, ...]]:
    view = RecordView()
    return view, view.add("q", [(1.0, 0.2), (5.0, 0.9), (1.0, 1.0)])


def test_capacity_counts_what_is_left_of_a_tuple() -> None:
    view, path = example()
    assert capacity(view, path) == pytest.approx(1 / 2.18)
    assert RestPaths().capacity(view, path[0]) == pytest.approx(1 / 2.18)


def test_a_path_is_cut_at_the_lower_envelope() -> None:
    view, path = example()
    first, second = path_segments(view, path)
    assert (first.nodes, second.nodes) == ((0,), (1, 2))
    assert first.release == pytest.approx(0.8)
    assert second.release == pytest.approx(0.2 / 1.18)
    assert simplified_segments(view, path) == [first, second]


def test_a_join_that_gives_out_more_than_it_takes_ends_no_segment() -> None:
    view = RecordView()
    path = view.add("q", [(1.0, 1.0), (1.0, 3.0), (1.0, 0.5)])
    assert min(size for _, size in bytes_left(view, path)[1:-1]) >= 1.0
    assert [segment.nodes for segment in path_segments(view, path)] == [path]


def test_a_narrow_projection_releases_memory_although_all_tuples_pass() -> None:
    view = RecordView()
    path = view.add("q", [(1.0, 1.0), (4.0, 1.0)])
    view.operators[0].size_in, view.operators[0].size_out = 100.0, 10.0
    view.operators[1].size_in = view.operators[1].size_out = 10.0
    first, second = path_segments(view, path)
    assert (first.release, second.release) == (90.0, 2.5)


def test_what_was_seen_replaces_what_the_types_say() -> None:
    view = RecordView()
    path = view.add("q", [(1.0, 0.5)] * 3)
    for number in path:
        view.operators[number].size_in = view.operators[number].size_out = 8.0
    # The tuples of the stream are twice as wide as their types say, and from the second operator on as they say.
    assert [size for _, size in bytes_left(view, path, {0: 16.0})] == [16.0, 8.0, 4.0, 0.0]
    assert [size for _, size in bytes_left(view, path, {0: 16.0, 1: 8.0})] == [16.0, 4.0, 2.0, 0.0]


def test_output_with_several_readers_waits_for_each_of_them() -> None:
    view = RecordView.over({0: (1, 2), 1: (), 2: ()}, {0: (1.0, 0.4)})
    assert [size for _, size in bytes_left(view, (0, 1))] == [1.0, 0.8, 0.4]


def test_a_path_for_each_input_of_a_join() -> None:
    view = RecordView.over({0: (2,), 1: (2,), 2: (3,), 3: ()}, {1: (4.0, 0.5)})
    assert [capacity(view, path) for path in paths_to(view, 3)] == [1 / 3, 1 / 5]


def test_operators_that_cost_nothing_have_a_capacity() -> None:
    view = RecordView()
    path = view.add("q", [(0.0, 1.0), (0.0, 1.0)])
    assert 0.0 < capacity(view, path) < float("inf")
    assert sum(len(segment.nodes) for segment in path_segments(view, path)) == 2


OPERATORS = st.lists(
    st.tuples(st.floats(0.01, 10.0), st.floats(0.0, 2.0), st.floats(0.1, 10.0)), min_size=1, max_size=8
)


@given(OPERATORS)
def test_no_later_segment_releases_more_and_none_can_be_cut_better(operators: list[tuple[float, float, float]]) -> None:
    view = RecordView()
    path = view.add("q", [(cost, selectivity) for cost, selectivity, _ in operators])
    for number, (_, _, size) in zip(path, operators, strict=True):
        view.operators[number].size_out = size
    segments = path_segments(view, path)
    assert tuple(number for segment in segments for number in segment.nodes) == path
    assert all(before.release > after.release - 1e-9 * abs(after.release) for before, after in pairwise(segments))
    assert first_segment(view, path) == segments[0]
    points = bytes_left(view, path)
    place, line = 0, [points[0]]
    for segment in segments:
        place += len(segment.nodes)
        line.append(points[place])
    # All points lie on the line through the corners, or above it.
    for seconds, left in points:
        (began, high), (ended, low) = next(pair for pair in pairwise(line) if pair[0][0] <= seconds <= pair[1][0])
        on_line = high if ended == began else high + (low - high) * (seconds - began) / (ended - began)
        assert left >= on_line - 1e-9 * max(1.0, abs(high), abs(low))
    first, *rest = simplified_segments(view, path)
    assert first == segments[0]
    assert len(rest) == (len(segments) > 1)
    whole = whole_segment(view, path)
    assert whole.release <= first.release or whole.release == pytest.approx(first.release)
