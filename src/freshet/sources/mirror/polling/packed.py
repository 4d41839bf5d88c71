"""Unpacks gzip up to a limit: a few bytes may unpack to many."""

from __future__ import annotations

import zlib

from freshet.sources.mirror.polling.answer import PollFailed


def unpacked(content: bytes, most: int, moved: int) -> bytes:
    """What gzip content holds.

    Args:
        content: The packed bytes.
        most: Maximum number of bytes when unpacked.
        moved: Bytes that the poll has moved, for the failure.

    Raises:
        PollFailed: It is not gzip, it is cut off, or it holds more.

    >>> import gzip
    >>> unpacked(gzip.compress(b"abc"), most=10, moved=0)
    b'abc'
    >>> unpacked(gzip.compress(bytes(100)), most=10, moved=0)
    Traceback (most recent call last):
    freshet.sources.mirror.polling.answer.PollFailed: more than 10 bytes when unpacked
    """
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(content, most + 1)
    except zlib.error as error:
        raise PollFailed(f"not gzip: {error}", moved=moved) from None
    if len(found) > most:
        raise PollFailed(f"more than {most:,} bytes when unpacked", moved=moved)
    if not unpacker.eof:
        raise PollFailed("its gzip ends too early", moved=moved)
    return found
