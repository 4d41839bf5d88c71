"""Patience: how long a resident may take for what it was handed."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

_LEAST: Final = 60.0
_TIMES: Final = 20.0
_MOST_DOUBLINGS: Final = 20
_MOST_KINDS: Final = 1000
_FEW_TUPLES: Final = 100_000
"""With fewer tuples than this, a dispatch that takes long does so for another reason."""


@dataclass(slots=True)
class _Kind:
    """Dispatches of one kind: the longest that was answered, and how many were waited for in vain since."""

    seconds: float = 0.0
    tuples: int = 0
    doublings: int = 0

    def predicted(self, tuples: int) -> float:
        """Seconds that one may take if time grows with tuples; fewer of them may take as long, because of a pause."""
        return self.seconds * max(1.0, tuples / max(self.tuples, _FEW_TUPLES))


class Patience:
    """Gives out deadlines: generous ones, because a resident that is ended loses what it has kept.

    A deadline is a minute, or twenty times what earlier dispatches of the same kind let expect. It doubles with each
    dispatch of this kind that was waited for in vain, so that even one that must read a very large state will end.

    Args:
        limit: Maximum number of seconds; None: there is none.

    >>> patience = Patience(None)
    >>> patience.deadline(0.0, "q", 200_000)
    60.0
    >>> patience.in_vain("q")
    >>> patience.took("other", 10, 0.1)
    >>> patience.deadline(0.0, "q", 200_000), patience.deadline(0.0, "other", 10)
    (120.0, 60.0)
    >>> patience.took("q", 200_000, 9.0)
    >>> patience.deadline(0.0, "q", 1000), patience.deadline(0.0, "q", 800_000)
    (180.0, 720.0)
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = math.inf if limit is None else limit
        self._kinds: OrderedDict[str, _Kind] = OrderedDict()

    def deadline(self, now: float, kind: str, tuples: int) -> float:
        """The deadline of a dispatch that begins now.

        Args:
            now: In seconds.
            kind: What it runs.
            tuples: Number of tuples that it reads, with those that it may have to read to rebuild states.
        """
        known = self._kinds.get(kind, _Kind())
        return now + min(max(_LEAST, _TIMES * known.predicted(tuples)) * 2.0**known.doublings, self._limit)

    def took(self, kind: str, tuples: int, seconds: float) -> None:
        """A dispatch was answered after some seconds."""
        known = self._known(kind)
        known.doublings = 0
        if seconds >= known.predicted(tuples):
            known.seconds, known.tuples = seconds, tuples

    def in_vain(self, kind: str) -> None:
        """A dispatch was not answered before its deadline."""
        known = self._known(kind)
        known.doublings = min(known.doublings + 1, _MOST_DOUBLINGS)

    def _known(self, kind: str) -> _Kind:
        found = self._kinds.setdefault(kind, _Kind())
        self._kinds.move_to_end(kind)
        if len(self._kinds) > _MOST_KINDS:
            self._kinds.popitem(last=False)
        return found
