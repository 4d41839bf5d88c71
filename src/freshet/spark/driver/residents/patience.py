"""Patience: how long a resident may take for what it was handed."""

from __future__ import annotations

import math
from typing import Final

_LEAST: Final = 60.0
_TIMES: Final = 20.0
_MOST_DOUBLINGS: Final = 20


class Patience:
    """Gives out deadlines: generous ones, because a resident that is ended loses what it has kept.

    A deadline is a minute, or twenty times what the longest dispatch took. It doubles with each dispatch that was
    waited for in vain, so that even one that must read a very large state will end.

    >>> patience = Patience(None)
    >>> patience.deadline(0.0)
    60.0
    >>> patience.in_vain()
    >>> patience.deadline(0.0)
    120.0
    >>> patience.took(90.0)
    >>> patience.deadline(0.0)
    1800.0
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = math.inf if limit is None else limit
        self._longest = 0.0
        self._doublings = 0

    def deadline(self, now: float) -> float:
        """The deadline of a dispatch that begins now."""
        seconds = max(_LEAST, _TIMES * self._longest) * 2.0**self._doublings
        return now + min(seconds, self._limit)

    def took(self, seconds: float) -> None:
        """A dispatch was answered after some seconds."""
        self._longest = max(self._longest, seconds)
        self._doublings = 0

    def in_vain(self) -> None:
        """A dispatch was not answered before its deadline."""
        self._doublings = min(self._doublings + 1, _MOST_DOUBLINGS)
