"""Checksums of segments: damage is noticed before Arrow sees the bytes.

Arrow pads its streams to multiples of eight bytes. A segment ends with nine more bytes, its sum. A segment of an
earlier version ends with four more, or with none if no sums were written; its length tells which. A segment without a
sum is accepted as it is.

A CRC of all bytes took a fifth of the time of a simple query. So the words of a segment are laid out in rows of 64,
each row and each column is added up, and the sum is two CRCs: one of the rows' totals and one of the columns'. A single
bit always changes the first: the total of its row changes by a power of two, which inverts a run of its bits, and the
CRC detects any run that short. Changes that leave the total of a row as it was, such as two words that change places,
change the totals of columns.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.log.errors import Damaged
from freshet.model import Segment

_SUM: Final = struct.Struct("<BII")
_KIND: Final = 1
"""The first byte of a sum."""
_EARLIER: Final = struct.Struct("<I")
_WORD: Final = np.dtype("<u8")
_WORDS: Final = 64
"""Words of eight bytes in a row."""
_PADDING: Final = 8
_MOST_REMEMBERED: Final = 4096
"""Number of segments whose sums count as checked: who reads a segment again does so soon. A resident reads a segment or
more in each step, so that a large number looks like a leak for many minutes."""
_seen: set[object] = set()


class Checks(StrEnum):
    """When the sum of a segment is checked. Only measurements ask for anything other than once per process."""

    ONCE = "once"
    ALWAYS = "always"
    NEVER = "never"


def sum_of(content: pa.Buffer) -> bytes:
    """The bytes that follow a segment.

    >>> sum_of(pa.py_buffer(b"12345678")).hex()
    '01afdae09a7875aab2'
    """
    words, rest = _words(content)
    return _SUM.pack(_KIND, zlib.crc32(rest, zlib.crc32(_totals(words, 1))), zlib.crc32(_totals(words, 0)))


def _earlier_sums(content: pa.Buffer) -> Iterator[bytes]:
    """The bytes that stood behind a segment in earlier versions."""
    words, rest = _words(content)
    yield _EARLIER.pack(zlib.crc32(rest, zlib.crc32(_totals(words, 1))))
    yield _EARLIER.pack(zlib.crc32(content))


def _words(content: pa.Buffer) -> tuple[npt.NDArray[np.uint64], memoryview]:
    """All full rows of words, and the bytes behind them."""
    rows = content.size // (8 * _WORDS)
    words = np.frombuffer(content, _WORD, rows * _WORDS).reshape(rows, _WORDS)
    return words, memoryview(content)[rows * 8 * _WORDS :]


def _totals(words: npt.NDArray[np.uint64], axis: int) -> memoryview:
    totals: npt.NDArray[np.uint64] = np.add.reduce(words, axis)
    return totals.astype(_WORD, copy=False).data


def _size(segment: Segment) -> int:
    """Number of bytes of the sum at the end of a segment."""
    over = segment.length % _PADDING
    return next((form.size for form in (_SUM, _EARLIER) if form.size % _PADDING == over), 0)


def has_sum(segment: Segment) -> bool:
    """Whether a segment ends with its sum."""
    return _size(segment) > 0


def checked(content: pa.Buffer, segment: Segment, storage: object, checks: Checks = Checks.ONCE) -> pa.Buffer:
    """The Arrow stream of a segment, from the content of its file.

    Args:
        content: All of the file.
        segment: The segment.
        storage: Where the file lies; together with file and position it identifies the segment.
        checks: When to check the sum.

    Raises:
        Damaged: The file is too short, or the sum differs.
    """
    if segment.position + segment.length > content.size:
        raise damaged(segment, f"the file ends at byte {content.size:,}, the segment at byte "
                               f"{segment.position + segment.length:,}")  # fmt: skip
    whole = content.slice(segment.position, segment.length)
    if not has_sum(segment):
        return whole
    stream, told = whole.slice(0, segment.length - _size(segment)), whole.slice(segment.length - _size(segment))
    place = (storage, segment.file, segment.position)
    if checks is Checks.ALWAYS or (checks is Checks.ONCE and place not in _seen):
        sums = [sum_of(stream)] if told.size == _SUM.size else _earlier_sums(stream)
        if told.to_pybytes() not in sums:
            raise damaged(segment, "its bytes do not give its checksum")
        if len(_seen) >= _MOST_REMEMBERED:
            _seen.clear()
        _seen.add(place)
    return stream


def damaged(segment: Segment, why: str) -> Damaged:
    """Says which range of which stream cannot be read.

    >>> print(damaged(Segment("s", 10, 5, 0, 0, 0, "f.arrows", 64, 132), "it is too short"))
    stream s, offsets 10 to 14: segment file f.arrows is damaged at byte 64: it is too short
    """
    return Damaged(f"{_place(segment)} is damaged at byte {segment.position}: {why}")


def missing(segment: Segment) -> Damaged:
    """Says which range of which stream is gone with its file.

    >>> print(missing(Segment("s", 10, 5, 0, 0, 0, "f.arrows", 64, 132)))
    stream s, offsets 10 to 14: segment file f.arrows is missing from the state folder
    """
    return Damaged(f"{_place(segment)} is missing from the state folder")


def _place(segment: Segment) -> str:
    return f"stream {segment.stream}, offsets {segment.first} to {segment.end - 1}: segment file {segment.file}"
