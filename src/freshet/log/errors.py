"""What can go wrong with a log."""

from __future__ import annotations

from collections.abc import Iterable

from freshet.model import FreshetError


class LogFull(FreshetError):
    """There is no room: a bound is reached or the disk is full. Nothing was written or acknowledged; try later."""


class NotSynced(FreshetError):
    """Files could not be made durable. Nothing was committed, and nobody may trust these files: write others."""


class Deposed(FreshetError):
    """Another owner has opened the state folder since; this one may no longer write."""


class CursorMoved(FreshetError):
    """A commit or an advance does not begin where the reader's cursor is; nothing of it took effect."""


class StoreFailed(FreshetError):
    """The store reported an error; only opening the log again tells what is durable."""


class Lagged(FreshetError):
    """The requested range begins below the oldest offset that retention has kept."""

    def __init__(self, stream: str, asked: int, oldest: int) -> None:
        super().__init__(
            f"{stream}: offset {asked} is gone, retention keeps offsets from {oldest} on; "
            f"read from {oldest}, or give the stream more history"
        )
        self.stream = stream
        self.asked = asked
        self.oldest = oldest

    def __reduce__(self) -> tuple[type[Lagged], tuple[str, int, int]]:
        return Lagged, (self.stream, self.asked, self.oldest)


class NoStream(FreshetError):
    """The log has no such stream. The engine asks for many that come only with their first tuples, so the names of the
    others are put together when somebody reads the message.

    >>> str(NoStream("s", {"u": 1, "t": 2}))
    'the log has no stream s; it has: t, u'
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self._known = known

    def __str__(self) -> str:
        return f"the log has no stream {self.args[0]}; it has: {', '.join(sorted(self._known)) or 'none'}"


class Damaged(FreshetError):
    """A file of the state folder is not what was written: a disk or a person has changed, cut or removed it."""
