"""The rows that streams with ordered keys have kept, in the order in which the log took them, for a replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from freshet.log.errors import Damaged
from freshet.log.intake.key_numbers import key_numbers, varying_bytes
from freshet.log.segments.segment import read_segment
from freshet.log.segments.storage import Storage
from freshet.log.store.state import StreamState
from freshet.model import Segment
from freshet.quality.disorder.budget import NO_MARK
from freshet.quality.disorder.replay import ReplayedRows

_STRETCH: Final = 65_536
"""Maximum number of rows that are read at once, a segment aside."""


class KeptStream(NamedTuple):
    """What is known of the kept rows of a stream, as it was at a moment.

    Args:
        column: The ordered key.
        segments: Where the rows are.
        first: Offset of the first one.
        marks: From which offsets on which key mark holds.
        past: Offsets of the rows that came past the mark.
    """

    column: str
    segments: Sequence[Segment]
    first: int
    marks: Sequence[tuple[int, int]]
    past: Sequence[int]

    @classmethod
    def of(cls, stream: StreamState, first: int) -> KeptStream:
        """The rows of a stream from an offset on."""
        assert stream.ordered is not None, f"{stream.name} has no ordered key"
        end = stream.index.end
        segments = stream.index.train(first, end).segments
        return cls(stream.ordered, segments, first, stream.key_marks.entries(), stream.past_rows.between(first, end))


def stretches(storage: Storage, streams: Mapping[str, KeptStream]) -> Iterator[list[ReplayedRows]]:
    """The rows of streams, some thousands at a time, in the order of the append sequence."""
    for part in _parts(merge(*(each.segments for each in streams.values()), key=lambda segment: segment.sequence)):
        runs = (list(run) for _, run in groupby(part, key=lambda segment: segment.stream))
        yield [rows for run in runs if (rows := _read(storage, streams[run[0].stream], run)) is not None]


def _parts(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    part, rows = list[Segment](), 0
    for segment in segments:
        part.append(segment)
        rows += segment.rows
        if rows >= _STRETCH:
            yield part
            part, rows = [], 0
    yield part


def _read(storage: Storage, stream: KeptStream, run: Sequence[Segment]) -> ReplayedRows | None:
    """The rows of segments of one stream that follow each other. The reader of a damaged one is told when it reads it;
    here it has no rows."""
    keys, sizes, offsets = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for segment in run:
        first = max(segment.first, stream.first)
        try:
            table = read_segment(storage, segment, first, segment.end)
        except (Damaged, FileNotFoundError):
            continue
        keys.append(key_numbers(table.column(stream.column)))
        sizes.append(varying_bytes(table.drop_columns([table.column_names[-1]])))
        offsets.append(np.arange(first, segment.end))
    places = np.concatenate(offsets)
    if not len(places):
        return None
    at, marks = np.array(stream.marks, np.int64).reshape(-1, 2).T
    # A mark holds from its offset on: the row before that is the last one that it does not know.
    known = np.concatenate([[NO_MARK], marks])[np.searchsorted(at, places + 1, side="right")]
    is_past = np.isin(places, np.array(stream.past, np.int64))
    return ReplayedRows(run[0].stream, int(places[0]), np.concatenate(keys), np.concatenate(sizes), known, is_past)
