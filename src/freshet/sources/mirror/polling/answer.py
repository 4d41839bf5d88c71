"""What a poll of one element brought."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

Validator = dict[str, Any]
"""What tells at the next poll whether an element is still the same: an ETag, a modification time, a change key.
JSON-ready, because it is committed with the rows."""


@dataclass(frozen=True, slots=True)
class PollAnswer:
    """An answer.

    Args:
        content: What the element holds; None if it is still the same.
        validator: What the next poll asks with.
        modified: When the element itself says that it changed, in seconds since the epoch.
        bytes: What the poll moved, headers included.
        media: Media type of the content, if it has one.

    >>> PollAnswer(None, {"etag": "7"}).same
    True
    """

    content: bytes | list[dict[str, Any]] | None
    validator: Validator = field(default_factory=dict)
    modified: float | None = None
    bytes: int = 0
    media: str = ""

    @property
    def same(self) -> bool:
        """Whether the element says that it has not changed."""
        return self.content is None


class PollFailed(Exception):
    """A poll brought no answer. The element keeps its last values, and is polled again later.

    Args:
        reason: Why, in a sentence.
        moved: Bytes that the poll moved all the same.
        retry_after: Seconds that the other side asked to wait.
        whole_host: Whether that holds for all elements of the host (it said that it has too much to do).
    """

    def __init__(
        self, reason: str, *, moved: int = 0, retry_after: float | None = None, whole_host: bool = False
    ) -> None:
        super().__init__(reason)
        self.moved, self.retry_after, self.whole_host = moved, retry_after, whole_host


class Spend(Protocol):
    """Waits until the budget has room for one more request, and takes it: a redirect costs what a poll costs."""

    async def __call__(self) -> None:
        """Takes one request from the budget."""


class Fetcher(Protocol):
    """How elements of one kind are polled."""

    def host(self, element: str) -> str:
        """Whose limits an element counts for; empty if it has none."""

    def check(self, element: str) -> None:
        """Refuses an element that may not be polled.

        Raises:
            UserError: With the reason.
        """

    async def fetch(self, element: str, validator: Validator, spend: Spend) -> PollAnswer:
        """Polls an element; the first request is paid for already.

        Raises:
            PollFailed: There was no answer.
        """

    async def close(self) -> None:
        """Ends connections."""
