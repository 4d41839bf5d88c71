"""The content of a segment file before it is written, in memory that is used again for the next file.

A unit with many outputs makes some dozen megabytes of streams. If that memory goes back to the allocator after each
unit, the system takes the pages away and clears them again for the next unit. And a thousand small streams in a few
blocks are written by one call of the system.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from freshet.log.segments.sums import sum_of

ALIGNMENT: Final = 64
"""Where vectorised code wants memory-mapped buffers to begin."""
SIZE: Final = 1 << 22
"""Bytes of a block."""
MOST_SPARE: Final = 16
"""Number of blocks that a process keeps for its next files."""
_FEW: Final = 4096
"""Number of rows up to which it takes longer to ask for the bytes of a batch than to see whether a block holds it."""
_OPTIONS: Final = pa.ipc.IpcWriteOptions()
"""Arrow's defaults; without them each new stream looks into the environment twice."""
_spare: Final[list[pa.Buffer]] = []


class Blocks:
    """Arrow streams one after the other, each followed by its checksum, in blocks of memory.

    >>> blocks = Blocks()
    >>> blocks.add(pa.table({"v": [1, 2]}))[0]
    0
    >>> position, length = blocks.add(pa.table({"v": [3]}), sums=False)
    >>> pa.ipc.open_stream(blocks.buffers[0].slice(position, length)).read_all().column("v").to_pylist()
    [3]
    >>> blocks.release()
    """

    def __init__(self) -> None:
        self._taken: list[pa.Buffer] = []
        self._sink: pa.NativeFile | None = None
        self._full: list[pa.Buffer | bytes] = []
        self._before = 0
        """Bytes in front of the last block: a multiple of the alignment."""
        self._end = 0
        """Bytes of the last block that are used."""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._before + self._end

    @property
    def buffers(self) -> list[pa.Buffer | bytes]:
        """The bytes of the file. They are valid until :meth:`release`."""
        return [*self._full, self._taken[-1].slice(0, self._end)] if self._end else self._full

    def add(self, batch: pa.RecordBatch | pa.Table, *, sums: bool = True) -> tuple[int, int]:
        """Adds rows as an Arrow stream; returns its position in the file, and its length with the checksum."""
        if batch.num_rows <= _FEW or batch.nbytes < SIZE:
            for _ in range(2):
                try:
                    return self._in_block(batch, sums)
                except OSError:  # the block cannot hold it
                    self._turn()
        return self._alone(batch, sums)

    def release(self) -> None:
        """Forgets the file, and gives its memory to other files; nobody may look at the bytes any more."""
        _spare.extend(self._taken[: max(0, MOST_SPARE - len(_spare))])
        self._taken, self._sink, self._full = [], None, []
        self._before = self._end = 0

    def _in_block(self, batch: pa.RecordBatch | pa.Table, sums: bool) -> tuple[int, int]:
        sink = self._sink
        if sink is None:
            self._taken.append(_block())
            sink = self._sink = pa.FixedSizeBufferWriter(self._taken[-1])
        padding = -self._end % ALIGNMENT
        if padding:
            sink.write(bytes(padding))
        begin = self._end + padding
        _write(batch, sink)
        end = sink.tell()
        if sums:
            end += sink.write(sum_of(self._taken[-1].slice(begin, end - begin)))
        self._end = end
        return self._before + begin, end - begin

    def _turn(self) -> None:
        """Ends the present block; what was begun behind its last stream means nothing. An empty block stays."""
        if self._end:
            used = self._end + -self._end % ALIGNMENT
            self._full.append(self._taken[-1].slice(0, used))
            self._before += used
            self._sink, self._end = None, 0
        elif self._sink is not None:
            self._sink = pa.FixedSizeBufferWriter(self._taken[-1])

    def _alone(self, batch: pa.RecordBatch | pa.Table, sums: bool) -> tuple[int, int]:
        """Adds a stream with memory of its own."""
        self._turn()
        sink = pa.BufferOutputStream()
        _write(batch, sink)
        content = sink.getvalue()
        told = sum_of(content) if sums else b""
        position, length = self._before, content.size + len(told)
        padding = bytes(-length % ALIGNMENT)
        self._full += (content, told, padding)
        self._before += length + len(padding)
        return position, length


def _block() -> pa.Buffer:
    # Several threads may write files.
    try:
        return _spare.pop()
    except IndexError:
        return pa.allocate_buffer(SIZE)


def _write(batch: pa.RecordBatch | pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write(batch)
