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

from freshet.log.segments.hidden import AnswerMark, show_hidden
from freshet.log.segments.segment import Mapped, read_train
from freshet.log.segments.sums import missing
from freshet.model import Segment, Train

_GROUP_ROWS: Final = 131_072
_GROUP_BYTES: Final = 64 << 20
_MOST_MAPPED: Final = 2048
"""Maximum number of segments in a row group, and of files kept for later groups: a process may not map many more."""


@dataclass(frozen=True, slots=True)
class Export:
    """A range that is to become a file.

    Args:
        train: The range, with its segments.
        path: The final name of the file, in an existing folder.
        dispatch: Numbers that no other writer of this file has.
        arrival: Whether to include hidden columns.
        marks: What they say of answers of a periodic query; None: it is no output of one.
    """

    train: Train
    path: Path
    dispatch: tuple[int, ...]
    arrival: bool
    marks: tuple[AnswerMark, ...] | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """A hidden file that is complete and durable, and only lacks its final name."""

    path: Path
    schema: pa.Schema


def hidden_path(path: Path, dispatch: tuple[int, ...] = ()) -> Path:
    """Where a file is written before it gets its name. The dispatch makes the hidden name unique to this writer: a late
    writer that was given up long ago never touches the file of another.

    >>> hidden_path(Path("out/a-0-5.parquet"), (3, 17)).name
    '.a-0-5.parquet.3.17.open'
    """
    return path.with_name(".".join(["", path.name, *map(str, dispatch), "open"]))


def write_export(segments: Path, export: Export, mapped: Mapped | None = None) -> Exported:
    """Writes the file of a range from a folder of segments; a file that cannot be completed leaves nothing behind.

    Args:
        segments: Where segment files live.
        export: What to write.
        mapped: Segment files that are already mapped, for exports that are written together.

    Raises:
        Damaged: A segment is missing or is not what was written.
    """
    groups = (_read(segments, group, export, mapped) for group in row_groups(export.train))
    return write_parquet(hidden_path(export.path, export.dispatch), groups)


def write_parquet(path: Path, groups: Iterable[pa.Table]) -> Exported:
    """Writes at least one table as the row groups of a file, and makes its content durable."""
    rest = iter(groups)
    group = next(rest)
    try:
        with pa.OSFile(str(path), "wb") as file:
            with pyarrow.parquet.ParquetWriter(file, group.schema, compression="zstd") as writer:
                writer.write_table(group, row_group_size=group.num_rows)
                for each in rest:
                    writer.write_table(each, row_group_size=each.num_rows)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise
    return Exported(path, group.schema)


def row_groups(train: Train) -> Iterator[Train]:
    """Splits a train into parts, each worth a row group, so that a long train is never in memory at once."""
    held: list[Segment] = []
    first, size = train.first, 0
    for segment in train.segments:
        held.append(segment)
        end, size = min(segment.end, train.end), size + segment.length
        if end - first >= _GROUP_ROWS or size >= _GROUP_BYTES or len(held) >= _MOST_MAPPED:
            yield Train(train.stream, first, end, tuple(held))
            held, first, size = [], end, 0
    if held:
        yield Train(train.stream, first, train.end, tuple(held))


def _read(segments: Path, train: Train, export: Export, mapped: Mapped | None) -> pa.Table:
    if mapped is not None and len(mapped) > _MOST_MAPPED:
        mapped.clear()
    try:
        table = read_train(segments, train, mapped=mapped)
    except FileNotFoundError:
        gone = (each for each in train.segments if not (segments / each.file).exists())
        raise missing(next(gone, train.segments[0])) from None
    return show_hidden(table, export.arrival, export.marks)
