"""The content of a file with segments of other files: in pieces, so that nothing is copied to join them."""

from __future__ import annotations

import pyarrow as pa

from freshet.log.segments.blocks import ALIGNMENT


class Pieces:
    """Segments one after the other. Each begins where vectorised code wants memory-mapped buffers to begin.

    >>> pieces = Pieces()
    >>> pieces.add(pa.py_buffer(b"one"), b"!"), pieces.add(pa.py_buffer(b"two")), pieces.size
    (0, 64, 67)
    """

    def __init__(self) -> None:
        self.buffers: list[pa.Buffer | bytes] = []
        self.size = 0
        """Bytes of all of them."""

    def add(self, *buffers: pa.Buffer | bytes) -> int:
        """Adds a segment; returns its place."""
        padding = -self.size % ALIGNMENT
        place = self.size + padding
        self.buffers += (bytes(padding), *buffers)
        self.size = place + sum(map(len, buffers))
        return place
