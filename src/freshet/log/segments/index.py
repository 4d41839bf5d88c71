"""The segments of one stream, in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from freshet.model import Segment, Train


class StreamIndex:
    """Finds segments by offset, and sums their bytes, in logarithmic time.

    >>> index = StreamIndex("s")
    >>> for first in (0, 10):
    ...     index.add(Segment("s", first, 10, first, 0, 0, f"f{first}", 0, 500), appended=first, row=first)
    >>> index.end, index.bytes(5, 20), [segment.file for segment in index.train(5, 12).segments]
    (20, 750, ['f0', 'f10'])
    """

    def __init__(self, stream: str, oldest: int = 0) -> None:
        self.stream = stream
        self.oldest = oldest
        self.end = oldest
        self.segments: list[Segment] = []
        self.rows: list[int] = []
        """For each segment the row of the store that holds it."""
        self._ends: list[int] = []
        self._sizes: list[int] = []  # bytes of all segments ever added, up to and including this one
        self._appended: list[int] = []
        self._dropped = 0  # bytes of the segments before the first

    def add(self, segment: Segment, appended: int, row: int) -> None:
        """Adds the next segment."""
        total = self._sizes[-1] if self._sizes else self._dropped
        self.segments.append(segment)
        self.rows.append(row)
        self._ends.append(segment.end)
        self._sizes.append(total + segment.length)
        # Wall clocks sometimes go back; the order of appends does not.
        self._appended.append(max(appended, self._appended[-1]) if self._appended else appended)
        self.end = segment.end

    def replace(self, segment: Segment) -> None:
        """Records that a segment now lies elsewhere."""
        self.segments[bisect_right(self._ends, segment.first)] = segment

    def train(self, first: int, end: int) -> Train:
        """The range [first, end) with the segments that overlap it."""
        if first >= end:
            return Train(self.stream, first, end)
        low, high = bisect_right(self._ends, first), bisect_left(self._ends, end) + 1
        return Train(self.stream, first, end, tuple(self.segments[low:high]))

    def at(self, offset: int) -> Segment:
        """The segment that holds an offset."""
        return self.segments[bisect_right(self._ends, offset)]

    def bytes(self, first: int, end: int) -> int:
        """Bytes of a range; a part of a segment counts in proportion to its rows."""
        return self._bytes_before(end) - self._bytes_before(first) if first < end else 0

    def newest_within(self, limit: int) -> int:
        """Lowest segment boundary with at most ``limit`` bytes between it and the end."""
        total = self._sizes[-1] if self._sizes else self._dropped
        if total - self._dropped <= limit:
            return self.oldest
        return self._ends[bisect_left(self._sizes, total - limit)]

    def younger_than(self, time_us: int) -> int:
        """Lowest segment boundary from which on every segment was appended at or after a time."""
        place = bisect_left(self._appended, time_us)
        return self._ends[place - 1] if place else self.oldest

    def appended_at(self, offset: int) -> int | None:
        """When the segment that holds an offset was appended; None: there is none yet."""
        place = bisect_right(self._ends, offset)
        return self._appended[place] if place < len(self._appended) else None

    def reaching(self, time_us: int) -> Segment | None:
        """The first segment with a tuple that arrived at a time or later, if arrivals never go back."""
        place = bisect_left(self.segments, time_us, key=lambda segment: segment.last_arrival)
        return self.segments[place] if place < len(self.segments) else None

    def whole(self, offset: int) -> int:
        """The last segment boundary at or below an offset."""
        if offset >= self.end:
            return self.end
        place = bisect_right(self._ends, offset)
        return self._ends[place - 1] if place else self.oldest

    def drop_below(self, offset: int) -> list[tuple[int, int]]:
        """Forgets the segments that end at or below an offset; returns their rows of the store and lengths."""
        count = bisect_right(self._ends, offset)
        dropped = [(self.rows[place], self.segments[place].length) for place in range(count)]
        if count:
            self._dropped = self._sizes[count - 1]
        for column in (self.segments, self.rows, self._ends, self._sizes, self._appended):
            del column[:count]
        self.oldest = max(self.oldest, offset)
        self.end = max(self.end, offset)
        return dropped

    def _bytes_before(self, offset: int) -> int:
        place = bisect_right(self._ends, offset)
        before = self._sizes[place - 1] if place else self._dropped
        if place == len(self.segments):
            return before
        segment = self.segments[place]
        return before + segment.length * max(offset - segment.first, 0) // segment.rows
