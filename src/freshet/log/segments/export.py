"""Ranges of a log as Parquet files, written by the driver or by a Spark task, and named by the driver alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet

from freshet.log.segments.segment import read_segment
from freshet.log.segments.sums import missing
from freshet.model import ARRIVAL, Train

_GROUP_ROWS: Final = 131_072
_GROUP_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Export:
    """A range that is to be a file.

    Args:
        train: The range, with its segments.
        path: What the file is to be called at last, in a folder that is there.
        dispatch: Numbers that no other writer of this file has.
        arrival: Whether the column of arrivals goes along.
    """

    train: Train
    path: Path
    dispatch: tuple[int, ...]
    arrival: bool


@dataclass(frozen=True, slots=True)
class Exported:
    """A hidden file that is complete and durable, but for its name."""

    path: Path
    schema: pa.Schema


def hidden_path(path: Path, dispatch: tuple[int, ...] = ()) -> Path:
    """Where a file is written before it gets its name. The dispatch makes the hidden name this writer's alone: one that
    is late, and was given up long ago, never touches the file of another.

    >>> hidden_path(Path("out/a-0-5.parquet"), (3, 17)).name
    '.a-0-5.parquet.3.17.open'
    """
    return path.with_name(".".join(["", path.name, *map(str, dispatch), "open"]))


def write_export(segments: Path, export: Export) -> Exported:
    """Writes the file of a range out of a folder of segments; nothing is left of one that cannot be completed.

    Raises:
        Damaged: A segment is missing or is not what was written.
    """
    return write_parquet(hidden_path(export.path, export.dispatch), _pieces(segments, export))


def write_parquet(path: Path, pieces: Iterable[pa.Table]) -> Exported:
    """Writes tables, of which one at least has rows, to a file and makes its content durable."""
    groups = _groups(pieces)
    group = next(groups)
    try:
        with pa.OSFile(str(path), "wb") as file:
            with pyarrow.parquet.ParquetWriter(file, group.schema, compression="zstd") as writer:
                writer.write_table(group, row_group_size=group.num_rows)
                for each in groups:
                    writer.write_table(each, row_group_size=each.num_rows)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise
    return Exported(path, group.schema)


def _pieces(segments: Path, export: Export) -> Iterator[pa.Table]:
    """Segment by segment, so that a long range is never in memory at once."""
    train = export.train
    for segment in train.segments:
        try:
            table = read_segment(segments, segment, train.first, train.end)
        except FileNotFoundError:
            raise missing(segment) from None
        yield table if export.arrival else table.drop_columns([ARRIVAL])


def _groups(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables that are worth a row group of their own."""
    held: list[pa.Table] = []
    rows = size = 0
    for piece in pieces:
        held.append(piece)
        rows, size = rows + piece.num_rows, size + piece.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.concat_tables(held)
