"""Segment files: Arrow IPC streams, one after the other, in one file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.log.segments.blocks import Blocks
from freshet.log.segments.storage import PosixStorage, Storage
from freshet.log.segments.sums import Checks, checked, damaged
from freshet.model import ARRIVAL, Segment, SegmentFile, Train

SUFFIX: Final = ".arrows"
ArrivalColumn = npt.NDArray[np.int64]
Mapped = dict[str, pa.Buffer]
"""Contents of segment files by name: ranges that are read together often lie in the same few files."""


class SegmentWriter:
    """Writes one file with segments of any number of streams; nothing touches the disk before :meth:`finish`.

    Args:
        folder: Where segment files live (a path, or any :class:`~freshet.log.segments.storage.Storage`).
        name: Name of the file without its suffix. It must never be used twice, so it carries the attempt.
        sums: Whether each segment ends with its checksum.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = SegmentWriter(Path(folder), "unit-1-0")
    ...     _ = writer.add("a", pa.table({"v": [1, 2], ARRIVAL: [10, 20]}))
    ...     _ = writer.add("b", pa.table({"w": ["x"], ARRIVAL: [20]}))
    ...     file = writer.finish()
    >>> file.name, [(stream, rows, first, last) for stream, rows, _, _, first, last in file.members]
    ('unit-1-0.arrows', [('a', 2, 10, 20), ('b', 1, 20, 20)])
    """

    def __init__(self, folder: Path | Storage, name: str, *, sums: bool = True) -> None:
        self._storage = _storage(folder)
        self._sums = sums
        self._name = name + SUFFIX
        self._blocks = Blocks()
        self._members: list[tuple[str, int, int, int, int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def add(self, stream: str, batch: pa.RecordBatch | pa.Table) -> ArrivalColumn:
        """Adds a segment of a stream; a batch without rows adds none. The last column must be the arrival, which is
        returned."""
        arrivals = _arrivals(stream, batch)
        if len(arrivals):
            place = self._blocks.add(batch, sums=self._sums)
            self._members.append((stream, len(arrivals), *place, int(arrivals[0]), int(arrivals[-1])))
        return arrivals

    def finish(self, synced_from: int = 0) -> SegmentFile:
        """Writes the file. Without segments no file is written.

        Args:
            synced_from: It is durable when this returns if it has at least this number of bytes; a smaller one must be
                synced before it is committed.
        """
        synced = self._blocks.size >= synced_from
        if self._members:
            self._storage.put(self._name, self._blocks.buffers, sync=synced)
        file = SegmentFile(self._name, self._blocks.size, tuple(self._members), synced)
        self.abort()
        return file

    def abort(self) -> None:
        """Discards what was added and not yet finished; it is harmless after :meth:`finish`."""
        self._members = []
        self._blocks.release()


def read_segment(folder: Path | Storage, segment: Segment, first: int, end: int) -> pa.Table:
    """The rows of a segment with offsets in [first, end), memory-mapped, without a copy.

    Raises:
        FileNotFoundError: The file does not exist, or no longer.
        Damaged: It is not what was written.
    """
    storage = _storage(folder)
    return _cut(_map(storage, segment.file), segment, first, end, storage, Checks.ONCE)


def read_train(
    folder: Path | Storage,
    train: Train,
    schema: pa.Schema | None = None,
    checks: Checks = Checks.ONCE,
    mapped: Mapped | None = None,
) -> pa.Table:
    """The rows of a train, without a copy.

    Args:
        folder: Where segment files live.
        train: The range.
        schema: With the arrival column; needed for an empty train.
        checks: When to check checksums.
        mapped: Files that are already mapped; the others are added.

    Raises:
        FileNotFoundError: Retention has removed a file of the train.
        Damaged: A file is not what was written.
    """
    storage = _storage(folder)
    files = {} if mapped is None else mapped
    tables = []
    for segment in train.segments:
        # Other threads may use the same files, and forget them.
        content = files.get(segment.file)
        if content is None:
            content = files[segment.file] = _map(storage, segment.file)
        tables.append(_cut(content, segment, train.first, train.end, storage, checks))
    if tables:
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    if schema is None:
        raise ValueError(f"an empty train of {train.stream} needs a schema")
    return schema.empty_table()


def check_segment(folder: Path | Storage, segment: Segment) -> None:
    """Checks the checksum of a segment, even if it was checked before.

    Raises:
        FileNotFoundError: The file does not exist, or no longer.
        Damaged: It is not what was written.
    """
    storage = _storage(folder)
    checked(_map(storage, segment.file), segment, storage, Checks.ALWAYS)


def _storage(folder: Path | Storage) -> Storage:
    return _posix(folder) if isinstance(folder, Path) else folder


@lru_cache(maxsize=64)
def _posix(folder: Path) -> Storage:
    """One for each folder: thousands of segments that were checked remember where they lie."""
    return PosixStorage(folder)


def _map(storage: Storage, name: str) -> pa.Buffer:
    # The buffer keeps the mapping alive, even after the file has been closed and deleted.
    with storage.open(name) as file:
        return file.read_buffer()


def _cut(content: pa.Buffer, segment: Segment, first: int, end: int, storage: Storage, checks: Checks) -> pa.Table:
    stream = checked(content, segment, storage, checks)
    try:
        with pa.ipc.open_stream(stream) as reader:
            table = reader.read_all()
    except (pa.ArrowException, OSError) as error:
        raise damaged(segment, f"Arrow cannot read it ({error})") from error
    if table.num_rows != segment.rows:
        raise damaged(segment, f"it holds {table.num_rows} rows, not {segment.rows}")
    low, high = max(first - segment.first, 0), min(end - segment.first, segment.rows)
    return table if (low, high) == (0, segment.rows) else table.slice(low, max(high - low, 0))


def _arrivals(stream: str, batch: pa.RecordBatch | pa.Table) -> ArrivalColumn:
    last = batch.schema.field(batch.num_columns - 1) if batch.num_columns else None
    if last is None or last.name != ARRIVAL or last.type != pa.int64():
        raise ValueError(f"segment of {stream}: the last column must be {ARRIVAL} (int64), not {last}")
    arrivals = batch.column(batch.num_columns - 1)
    if arrivals.null_count:
        raise ValueError(f"segment of {stream}: {ARRIVAL} holds NULL")
    found: ArrivalColumn = arrivals.to_numpy()
    return found
