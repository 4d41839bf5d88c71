"""States in many small segments: when it pays to write them anew."""

from __future__ import annotations

from typing import Final

MOST_PIECES: Final = 64
"""Number of segments that a state may always have, however small they are."""
_SMALL_PIECE: Final = 2**18
_LARGEST: Final = 2**28


def is_scattered(pieces: int, size: int, times: int = 1) -> bool:
    """Whether a state has so many small segments that it is worth rewriting.

    Each unit adds at least one segment. A larger state may have more segments, so that on average a unit rewrites no
    more bytes than a small segment has. A state that hardly fits into one worker is never rewritten.

    Args:
        pieces: Number of its segments.
        size: Their bytes.
        times: How many times as many segments are still good.

    >>> is_scattered(65, 10_000), is_scattered(64, 10_000), is_scattered(65, 10_000, times=2)
    (True, False, False)
    """
    return pieces > times * max(MOST_PIECES, size // _SMALL_PIECE) and size <= _LARGEST
