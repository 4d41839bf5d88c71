"""Capacities of operator paths, and path segments by the memory that they release (MAV §3.1). Functions over a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from freshet.model import View

LEAST_SECONDS: Final = 1e-12
"""Least time of a path: operators that have cost nothing so far still have a capacity."""
NONE_SEEN: Final[Mapping[int, float]] = {}


class PathSegment(NamedTuple):
    """A slice of a path that is scheduled as one.

    Args:
        nodes: Its operators, in the order in which a tuple passes them.
        release: Bytes that it releases per second of work; negative if its output takes more than its input.
    """

    nodes: tuple[int, ...]
    release: float


def capacity(view: View, path: Sequence[int]) -> float:
    """Tuples per second that a path takes: 1 over the expected seconds of a tuple, the sum of each operator's cost
    times the selectivity of those before it (MAV §3.1, 3).

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); path = view.add("q", [(1.0, 0.2), (5.0, 0.9), (1.0, 1.0)])
    >>> round(1 / capacity(view, path), 9)
    2.18
    """
    seconds, reach = 0.0, 1.0
    for each in map(view.operators.__getitem__, path):
        seconds += reach * each.cost
        reach *= each.selectivity
    return 1.0 / max(seconds, LEAST_SECONDS)


def bytes_left(view: View, path: Sequence[int], seen: Mapping[int, float] = NONE_SEEN) -> list[tuple[float, float]]:
    """(seconds, bytes) of one tuple in front of a path: first as it waits there, then what is left of it behind each
    operator, and how long that took.

    What a query puts out takes no memory any more. If an operator has several readers, its output waits for each of
    them; what waits beside the path stays until the end. Sizes are those that were ``seen`` in front of operators.
    Where none waited, the types of the columns say how much wider or narrower a tuple becomes.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); path = view.add("q", [(1.0, 0.2), (5.0, 0.9), (1.0, 1.0)])
    >>> [(round(seconds, 9), round(size, 9)) for seconds, size in bytes_left(view, path)]
    [(0.0, 1.0), (1.0, 0.2), (2.0, 0.18), (2.18, 0.0)]
    """
    operators = view.operators
    first = operators[path[0]]
    size = seen.get(path[0], first.size_in)
    scale = size / first.size_in
    seconds, reach, beside = 0.0, 1.0, 0.0
    points = [(0.0, size)]
    for number, after in zip(path, (*path[1:], None), strict=True):
        each = operators[number]
        seconds += reach * each.cost
        reach *= each.selectivity
        size = each.size_out * scale
        # In front of several inputs, tuples of different sizes wait.
        if after is not None and operators[after].ports == 1 and after in seen:
            size = seen[after]
            scale = size / each.size_out
        points.append((seconds, beside + reach * size * len(each.readers)))
        beside += reach * size * (len(each.readers) - 1)
    return points


def path_segments(view: View, path: Sequence[int], seen: Mapping[int, float] = NONE_SEEN) -> list[PathSegment]:
    """A path, cut at the corners of the lower envelope of :func:`bytes_left`: each segment goes to where most bytes per
    second have been released, so no segment behind it releases more (MAV §3.1, 4; §4.6 names the Chain strategy).

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); path = view.add("q", [(1.0, 0.2), (5.0, 0.9), (1.0, 1.0)])
    >>> [(segment.nodes, round(segment.release, 6)) for segment in path_segments(view, path)]
    [((0,), 0.8), ((1, 2), 0.169492)]
    """
    points, found, first = bytes_left(view, path, seen), [], 0
    while first < len(path):
        end, release = _steepest(points, first)
        found.append(PathSegment(tuple(path[first:end]), release))
        first = end
    return found


def simplified_segments(view: View, path: Sequence[int], seen: Mapping[int, float] = NONE_SEEN) -> list[PathSegment]:
    """A path, cut into its first segment and the rest (MAV §3.1, 5).

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); path = view.add("q", [(1.0, 0.2), (1.0, 0.5), (9.0, 0.9), (1.0, 1.0)])
    >>> [[segment.nodes for segment in cut(view, path)] for cut in (path_segments, simplified_segments)]
    [[(0,), (1,), (2, 3)], [(0,), (1, 2, 3)]]
    """
    points = bytes_left(view, path, seen)
    end, release = _steepest(points, 0)
    segments = [PathSegment(tuple(path[:end]), release)]
    if end < len(path):
        segments.append(PathSegment(tuple(path[end:]), _release(points, end, len(path))))
    return segments


def first_segment(view: View, path: Sequence[int], seen: Mapping[int, float] = NONE_SEEN) -> PathSegment:
    """The first of :func:`path_segments`."""
    end, release = _steepest(bytes_left(view, path, seen), 0)
    return PathSegment(tuple(path[:end]), release)


def whole_segment(view: View, path: Sequence[int], seen: Mapping[int, float] = NONE_SEEN) -> PathSegment:
    """A path as one segment."""
    return PathSegment(tuple(path), _release(bytes_left(view, path, seen), 0, len(path)))


def _steepest(points: Sequence[tuple[float, float]], first: int) -> tuple[int, float]:
    """The point to which most bytes per second are released, the last among equals, and that release."""
    release, end = max((_release(points, first, end), end) for end in range(first + 1, len(points)))
    return end, release


def _release(points: Sequence[tuple[float, float]], first: int, end: int) -> float:
    (began, before), (ended, after) = points[first], points[end]
    return (before - after) / max(ended - began, LEAST_SECONDS)
