"""When each query is looked at."""

from __future__ import annotations


class SystemMonitor:
    """Says which queries are due for a look, and when the next look is (MAV Alg. 2, §4.13).

    Two lines of the algorithm are corrected. A query is due when its time has come or has passed: nobody wakes up at
    exactly that time. The next time to wake up is computed anew in each round. As printed it is the least ever seen,
    which lies in the past after the first round.

    >>> monitor = SystemMonitor()
    >>> monitor.watch("big", now=0.0, every=3.0)
    >>> monitor.watch("small", now=0.0, every=5.0)
    >>> monitor.next_look, monitor.due(2.9), monitor.due(3.2)
    (3.0, [], ['big'])
    >>> monitor.looked("big", now=3.2)
    >>> monitor.next_look
    5.0
    """

    def __init__(self) -> None:
        self._every: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def watch(self, query: str, now: float, every: float) -> None:
        """Looks at a query every ``every`` seconds from now on. A query that is watched already keeps its next look,
        unless the new interval ends before it."""
        known = self._due.get(query)
        self._every[query] = every
        self._due[query] = now + every if known is None else min(known, now + every)

    def drop(self, query: str) -> None:
        """Looks at a query no longer; it is no error if it is not watched."""
        self._every.pop(query, None)
        self._due.pop(query, None)

    def due(self, now: float) -> list[str]:
        """The queries whose time has come, the one that has waited for the longest time first."""
        return sorted((query for query, due in self._due.items() if now >= due), key=self._due.__getitem__)

    def looked(self, query: str, now: float) -> None:
        """Notes a look. The next one is at the next full interval, so that a late look does not shift all others."""
        every, due = self._every[query], self._due[query]
        # Beyond the next one if rounding puts that at this very moment.
        intervals = max(1.0, (now - due) // every + 1.0)
        following = due + intervals * every
        self._due[query] = following if following > now else following + every

    @property
    def next_look(self) -> float | None:
        """When to wake up; None: nothing is watched."""
        return min(self._due.values(), default=None)
