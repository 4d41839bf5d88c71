"""Rows with an arrival, written to a log and read from it."""

from __future__ import annotations

import pyarrow as pa

from freshet.log import Log, SegmentWriter
from freshet.model import ARRIVAL, SegmentFile


def rows(*values: int, arrival: int = 1) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([arrival] * len(values), pa.int64())})


def write(log: Log, name: str, **members: pa.Table) -> SegmentFile:
    with SegmentWriter(log.folder, name) as writer:
        for stream, table in members.items():
            writer.add(stream, table)
        return writer.finish()


def values(log: Log, stream: str) -> list[int]:
    first, end = log.oldest(stream), log.end(stream)
    return [] if first == end else log.read(stream, first, end)["v"].to_pylist()
