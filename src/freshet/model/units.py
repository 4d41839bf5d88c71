"""Durations and sizes as people write them."""

from __future__ import annotations

import re
from typing import Final

from freshet.model.errors import UserError

_SECONDS: Final = {
    "us": 1e-6, "microsecond": 1e-6, "ms": 1e-3, "millisecond": 1e-3,
    "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0,
    "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0,
}  # fmt: skip
_BYTES: Final = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
MOST_SECONDS: Final = 36_500 * 86_400.0
"""The longest duration: a hundred years, whose microseconds are exact in every type that carries them."""
MOST_BYTES: Final = 2**60
"""The largest size: 1 EiB."""
_ROUNDS_UP: Final = 0.9995
"""Share of a unit that is shown as one of it: three digits are shown."""
_QUANTITY: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse_duration(text: str | float) -> float:
    """Seconds of a duration such as ``"10 s"``, ``"1 minute"``, ``"250ms"``; a bare number is seconds.

    >>> parse_duration("10 seconds"), parse_duration("250ms"), parse_duration(3)
    (10.0, 0.25, 3.0)
    >>> parse_duration("10 parsecs")
    Traceback (most recent call last):
    freshet.model.errors.UserError: '10 parsecs' is not a duration: use for example '250 ms', '10 s', '1 minute'
    """
    if isinstance(text, int | float):
        if not text >= 0:
            raise UserError(f"{text} is not a duration: it is {'negative' if text < 0 else 'no number'}")
        number, scale = text, 1.0
    else:
        match = _QUANTITY.fullmatch(text)
        unit = match.group(2).lower() if match else ""
        found = _SECONDS.get(unit) or _SECONDS.get(unit.removesuffix("s"))
        if match is None or found is None:
            raise UserError(f"{text!r} is not a duration: use for example '250 ms', '10 s', '1 minute'")
        number, scale = float(match.group(1)), found
    # Compared before it is multiplied: a whole number may be too large for a float.
    if number > MOST_SECONDS / scale:
        raise UserError(f"{_short(text)} is too long for a duration: at most 36500 days are allowed")
    seconds = float(number) * scale
    if 0.0 < seconds < 1e-6:
        raise UserError(f"{_short(text)} is too short for a duration: at least 1 us is needed")
    return seconds


def _short(text: str | float) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def parse_bytes(text: str | int) -> int:
    """Bytes of a size such as ``"512 MB"`` or ``"1GiB"``; a bare number is bytes.

    >>> parse_bytes("1.5 KB"), parse_bytes("1GiB"), parse_bytes(7)
    (1500, 1073741824, 7)
    """
    if isinstance(text, int):
        if text < 0:
            raise UserError(f"{_short(text)} is not a size: it is negative")
        size: float = text
    else:
        match = _QUANTITY.fullmatch(text)
        scale = _BYTES.get(match.group(2).lower()) if match else None
        if match is None or scale is None:
            raise UserError(f"{text!r} is not a size: use for example '512 MB', '1 GiB'")
        size = float(match.group(1)) * scale
    if size > MOST_BYTES:
        raise UserError(f"{_short(text)} is too large for a size: at most 1152921504 GB are allowed")
    return int(size)


def duration_text(seconds: float) -> str:
    """A duration for people, in the unit that reads best.

    >>> duration_text(0.0042), duration_text(0.9999), duration_text(1.5), duration_text(90)
    ('4.2 ms', '1 s', '1.5 s', '1.5 min')
    """
    for scale, unit in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= _ROUNDS_UP * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us" if seconds else "0 s"


def bytes_text(size: float) -> str:
    """A size for people, in the unit that reads best.

    >>> bytes_text(800), bytes_text(999_999), bytes_text(1.5e6)
    ('800 B', '1 MB', '1.5 MB')
    """
    for scale, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size >= _ROUNDS_UP * scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.3g} B"
