"""What the panes of a window kept: an answer is made of all of them, and each has a share of its own (RT §5.2.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from freshet.model import Instance


class KeptPane(NamedTuple):
    """The tuples that an instance read, and the share of them that it kept.

    Args:
        release: Of the instance, in microseconds.
        rows: Number of tuples that it read.
        kept: Share of them.
    """

    release: int
    rows: int
    kept: float


class KeptPanes:
    """The panes that later windows of an edge still hold.

    Args:
        size: Microseconds of a window.

    >>> panes = KeptPanes(3)
    >>> for release, kept in ((1, 0.5), (2, 1.0), (3, 0.25)):
    ...     panes.add(KeptPane(release, 10, kept))
    >>> panes.before(4), panes.before(3)
    ((20, 0.625), (20, 0.75))
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._panes: deque[KeptPane] = deque()

    def add(self, pane: KeptPane) -> None:
        """Takes in the pane of an instance that was answered; those that no later window holds are forgotten."""
        self._panes.append(pane)
        while self._panes[0].release <= pane.release - self._size:
            self._panes.popleft()

    def before(self, release: int) -> tuple[int, float]:
        """Number of tuples in the earlier panes of the window that ends with a release, and the share kept of them."""
        held = [pane for pane in self._panes if release - self._size < pane.release < release]
        rows = sum(pane.rows for pane in held)
        return rows, sum(pane.rows * pane.kept for pane in held) / rows if rows else 1.0

    def recall(self, reader: str, answered: Iterable[Instance]) -> None:
        """Takes in what the log knows of answered instances, by release, at the edge of a reader.

        >>> panes = KeptPanes(2)
        >>> panes.recall("q.edge", [Instance("q", at, at, {"q.edge": 10 * at}, kept={"q.edge": 0.5}) for at in (1, 2)])
        >>> panes.before(3)
        (10, 0.5)
        """
        there = [one for one in answered if reader in one.ends]
        for before, one in pairwise(there):
            self.add(KeptPane(one.release, one.ends[reader] - before.ends[reader], one.kept.get(reader, 1.0)))
