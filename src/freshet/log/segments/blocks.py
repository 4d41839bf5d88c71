"""Memory in which Arrow streams are made before they are written to a file. It is used again for the next file.

A unit with many outputs makes some dozen megabytes of streams. If that memory goes back to the allocator after each
unit, the system takes the pages away and clears them again for the next unit.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

ALIGNMENT: Final = 64
"""Where vectorised code wants memory-mapped buffers to begin."""
SIZE: Final = 1 << 22
"""Bytes of a block."""
MOST_SPARE: Final = 16
"""Number of blocks that a process keeps for its next files."""
_AROUND: Final = 1024
"""Bytes that a stream takes for each column, and for itself, around the values; if they are not enough, the stream gets
memory of its own."""
_OPTIONS: Final = pa.ipc.IpcWriteOptions()
"""Arrow's defaults; without them each new stream looks into the environment twice."""
_spare: Final[list[pa.Buffer]] = []


class Blocks:
    """Makes Arrow streams, one after the other, in blocks of memory.

    >>> blocks = Blocks()
    >>> stream = blocks.stream(pa.table({"v": [1, 2]}))
    >>> pa.ipc.open_stream(stream).read_all().column("v").to_pylist()
    [1, 2]
    >>> blocks.release()
    """

    def __init__(self) -> None:
        self._taken: list[pa.Buffer] = []
        self._sink: pa.NativeFile | None = None
        self._used = SIZE

    def stream(self, batch: pa.RecordBatch | pa.Table) -> pa.Buffer:
        """The rows as an Arrow stream. It is valid until :meth:`release`."""
        wanted = batch.nbytes + _AROUND * (batch.num_columns + 1)
        if wanted <= SIZE:
            try:
                return self._in_block(batch, wanted)
            except OSError:  # the estimate was too low
                self._used = SIZE
        sink = pa.BufferOutputStream()
        _write(batch, sink)
        return sink.getvalue()

    def release(self) -> None:
        """Gives the memory back, for other files; nobody may look at the streams any more."""
        _spare.extend(self._taken[: max(0, MOST_SPARE - len(_spare))])
        self._taken, self._sink, self._used = [], None, SIZE

    def _in_block(self, batch: pa.RecordBatch | pa.Table, wanted: int) -> pa.Buffer:
        if self._sink is None or wanted > SIZE - self._used:
            self._taken.append(_block())
            self._sink, self._used = pa.FixedSizeBufferWriter(self._taken[-1]), 0
        begin = self._used
        _write(batch, self._sink)
        end = self._sink.tell()
        padding = min(-end % ALIGNMENT, SIZE - end)
        self._sink.write(bytes(padding))
        self._used = end + padding
        return self._taken[-1].slice(begin, end - begin)


def _block() -> pa.Buffer:
    # Several threads may write files.
    try:
        return _spare.pop()
    except IndexError:
        return pa.allocate_buffer(SIZE)


def _write(batch: pa.RecordBatch | pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write(batch)
