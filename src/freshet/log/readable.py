"""The reading half of a log, the same for its owner and for every other process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa

from freshet.log.errors import Damaged, Lagged
from freshet.log.kinds import StreamKind
from freshet.log.segments.segment import read_segment, read_train
from freshet.log.segments.storage import Storage
from freshet.log.segments.sums import missing
from freshet.log.store.state import LogState, StreamState
from freshet.model import ARRIVAL, FreshetError, Segment, Train
from freshet.quality.disorder.budget import GRID


class Readable:
    """Ranges of streams: where they are, how large they are, what they hold."""

    _state: LogState
    _storage: Storage
    _lock: threading.RLock

    @contextmanager
    def _stream(self, stream: str) -> Iterator[StreamState]:
        with self._lock:
            yield self._state.stream(stream)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Freezes what is known of the log, so that several questions get consistent answers. Nothing is
        committed or removed meanwhile, and nothing may be written, either."""
        with self._lock:
            yield

    def named(self, prefix: str) -> set[str]:
        """The streams whose names begin in this way."""
        with self._lock:
            return {name for name in self._state.streams if name.startswith(prefix)}

    def kind(self, stream: str) -> StreamKind:
        """What a stream holds."""
        with self._stream(stream) as found:
            return found.kind

    def oldest(self, stream: str) -> int:
        """The oldest offset that is kept."""
        with self._stream(stream) as found:
            return found.index.oldest

    def end(self, stream: str) -> int:
        """The offset after the newest tuple."""
        with self._stream(stream) as found:
            return found.index.end

    def source_position(self, stream: str) -> dict[str, Any] | None:
        """Where the source of a stream continues."""
        with self._stream(stream) as found:
            return found.position

    def disorder(self, stream: str) -> bytes | None:
        """What is known of the disorder of a stream by its ordered key, packed; None: it has none, or no tuple came."""
        with self._stream(stream) as found:
            return found.disorder

    def bytes(self, stream: str, first: int, end: int) -> int:
        """Bytes of the range [first, end)."""
        with self._stream(stream) as found:
            return found.index.bytes(first, end)

    def newest_within(self, stream: str, limit: int) -> int:
        """The lowest boundary of a segment with at most so many bytes between it and the end."""
        with self._stream(stream) as found:
            return found.index.newest_within(limit)

    def watermark(self, stream: str, offset: int | None = None) -> int | None:
        """A time in microseconds: no tuple at or behind an offset (by default the end) is older. None if unknown."""
        with self._stream(stream) as found:
            return found.marks.at(found.index.end if offset is None else offset)

    def key_mark(self, stream: str, offset: int | None = None, join: str = "") -> int | None:
        """An ordered key: no tuple at or behind an offset (by default the end) has one at or below it, but those that
        are past the mark or, for a join with a bound, let go. None if unknown."""
        with self._stream(stream) as found:
            at = found.index.end if offset is None else offset
            mark, raised = found.key_marks.at(at), found.let_go.get(join)
            level = None if raised is None else raised.marks.at(at)
            return max((each for each in (mark, level) if each is not None), default=None)

    def key_marks(self, stream: str) -> list[tuple[int, int]]:
        """From which offsets on the key mark of a stream holds, and which: the entries that are kept."""
        with self._stream(stream) as found:
            return found.key_marks.entries()

    def newest_key(self, stream: str) -> int | None:
        """The greatest ordered key of the tuples of a stream; None: it has none."""
        with self._stream(stream) as found:
            return found.known_order().heights.newest

    def reached(self, stream: str, key: int, join: str = "") -> int | None:
        """The first offset that is known at which the key mark (for a join with a bound: raised by that) is not below a
        key; None: there is none."""
        with self._stream(stream) as found:
            raised = found.let_go.get(join)
            marks = [found.key_marks, *([] if raised is None else [raised.marks])]
            return min((at for each in marks if (at := each.reached(key)) is not None), default=None)

    def let_go(self, stream: str, first: int, end: int, join: str) -> tuple[int, ...]:
        """Offsets in the range [first, end) of the tuples that a join let go because of its bound."""
        with self._stream(stream) as found:
            known = found.let_go.get(join)
            return () if known is None else known.past.between(first, end)

    def levels(self, stream: str, join: str) -> list[tuple[int, int]]:
        """From which offsets on the bound of a join has raised the mark of a stream, and how far."""
        with self._stream(stream) as found:
            known = found.let_go.get(join)
            return [] if known is None else known.marks.entries()

    def place(self, stream: str, offset: int) -> int | None:
        """The place of a tuple in the append sequence, the same for all tuples of a segment; None: it is not there."""
        with self._stream(stream) as found:
            index = found.index
            inside = index.oldest <= offset < index.end
            return index.train(offset, offset + 1).segments[0].sequence if inside else None

    def marked(self, stream: str, first: int, end: int) -> int:
        """Where a train that begins at an offset may end so that the key mark there is known to the tuple: the last
        such place up to ``end`` or, if there is none, the next one."""
        if first >= end:
            return end
        with self._stream(stream) as found:
            index, rows = found.index, found.known_order().heights.rows
            before = rows - index.end
            inside = max(index.whole(end), end - (end + before) % GRID)
            return inside if inside > first else min(index.at(first).end, first + GRID - (first + before) % GRID)

    def past(self, stream: str, first: int, end: int) -> tuple[int, ...]:
        """Offsets in the range [first, end) of the tuples that came past the key mark."""
        with self._stream(stream) as found:
            return found.past_rows.between(first, end)

    def train(self, stream: str, first: int, end: int) -> Train:
        """The range [first, end) with its segments.

        Raises:
            Lagged: Retention has removed its beginning.
        """
        with self._stream(stream) as found:
            index = found.index
            if first < index.oldest:
                raise Lagged(stream, first, index.oldest)
            if not first <= end <= index.end:
                raise ValueError(f"[{first}, {end}) is not a range of {stream}, which ends at {index.end}")
            return index.train(first, end)

    def read(self, stream: str, first: int, end: int, schema: pa.Schema | None = None) -> pa.Table:
        """The rows of the range [first, end), arrival last, memory-mapped.

        Raises:
            Lagged: Retention has removed its beginning.
        """
        train = self.train(stream, first, end)
        if not train.segments:
            schema = schema or self.schema(stream)
            if schema is None:
                raise FreshetError(f"{stream} has no tuples yet, so its columns are not known")
        try:
            return read_train(self._storage, train, schema)
        except FileNotFoundError:
            raise self._lost(train) from None

    def schema(self, stream: str) -> pa.Schema | None:
        """The schema of its newest undamaged segment (arrival last); None if there is none."""
        with self._stream(stream) as found:
            segments = list(reversed(found.index.segments))
        for segment in segments:
            with suppress(Damaged):
                return self._read(segment, segment.first, segment.first).schema
        return None

    def arrival(self, stream: str, offset: int) -> int:
        """When a tuple arrived, in microseconds since the epoch. For a tuple in a damaged segment, it is the arrival of
        the segment's first tuple: a reader that needs more hears of the damage when it reads."""
        (segment,) = self.train(stream, offset, offset + 1).segments
        if offset == segment.first or segment.arrival == segment.last_arrival:
            return segment.arrival
        if offset == segment.end - 1:
            return segment.last_arrival
        try:
            value: int = self._read(segment, offset, offset + 1).column(ARRIVAL)[0].as_py()
        except Damaged:
            return segment.arrival
        return value

    def first_at(self, stream: str, time_us: int, since: int) -> int:
        """The offset, from ``since`` on, of the first tuple that arrived at a time or later; the end if there is none.

        Raises:
            Lagged: Retention has removed the tuple at ``since``.
        """
        with self._stream(stream) as found:
            first, end = since, found.index.end
            if found.kind == "stream":  # there arrivals never go back
                segment = found.index.reaching(time_us)
                first, end = (end, end) if segment is None else (max(first, segment.first), segment.end)
        if first >= end:
            return max(first, end)
        arrivals = self.read(stream, first, end).column(ARRIVAL).to_numpy()
        late = arrivals >= time_us
        return first + int(np.argmax(late)) if late.any() else end

    def _read(self, segment: Segment, first: int, end: int) -> pa.Table:
        try:
            return read_segment(self._storage, segment, first, end)
        except FileNotFoundError:
            raise self._lost(Train(segment.stream, first, end, (segment,))) from None

    def _lost(self, train: Train) -> FreshetError:
        """What a missing file means: retention was faster, or somebody else deleted it."""
        oldest = self.oldest(train.stream)
        if train.first < oldest:
            return Lagged(train.stream, train.first, oldest)
        gone = (each for each in train.segments if self._storage.size(each.file) is None)
        return missing(next(gone, train.segments[0]))
