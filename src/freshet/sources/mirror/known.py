"""What is known of each element between polls; JSON-ready, because it is committed with the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from freshet.sources.mirror.polling.answer import Validator
from freshet.sources.mirror.status import ElementRate

_UNKNOWN_SIZE: Final = 2048.0
"""Bytes that the first poll of an element is expected to move."""


@dataclass(slots=True)
class KnownElement:
    """An element.

    Args:
        name: Its name.
        host: Whose limits it counts for.
        worth: What its freshness is worth; 0 for one that is gone.
        given: What it is worth by what names it; the worth may also depend on who reads it.
        accesses: How often it was looked at, older accesses counted less, up to ``accessed``.
        accessed: When it was last looked at, in seconds since the epoch.
        least_freshness: Its floor of freshness; 0: none.
        greatest_age: Its floor of age in seconds; None: none.
        rate: Assumed changes a second, if they were given.
        validator: What the next poll asks with.
        fingerprint: Of the values that were found last; None: it was never polled.
        polled: When it was last polled with an answer, in seconds since the epoch.
        polls: Number of polls that were answered.
        changes: Number of those that found a change.
        size: Bytes that a poll of it moves, smoothed.
        failures: Number of failures in a row.
        reason: Why the last poll failed.
        not_before: It is not polled before this time, because it failed.
        intended: Whether it is polled although it is not due, to explore or to audit. After a crash such an element is
            polled first, because a poll may have met a change that was not committed.
        saved_due: When it is due by what is committed; not part of the record.
        saved_intent: Whether it is committed that it is polled; not part of the record.
        gone: Whether it is no element any more.

    >>> known = KnownElement("a", "localhost", worth=2.0, polled=7.0, validator={"etag": "x"})
    >>> back = KnownElement.of("a", "localhost", {**known.record(), "due": 9.0})
    >>> back.record() == known.record(), back.may_be_polled(now=8.0), back.may_be_polled(now=9.0)
    (True, False, True)
    """

    name: str
    host: str = ""
    worth: float = 1.0
    rate: float | None = None
    given: float = 1.0
    accesses: float = 0.0
    accessed: float = 0.0
    least_freshness: float = 0.0
    greatest_age: float | None = None
    validator: Validator = field(default_factory=dict)
    fingerprint: str | None = None
    polled: float | None = None
    polls: int = 0
    changes: int = 0
    size: float | None = None
    failures: int = 0
    reason: str | None = None
    not_before: float = 0.0
    intended: bool = False
    saved_due: float = -math.inf
    saved_intent: bool = False
    gone: bool = False

    @property
    def expected_size(self) -> float:
        """Bytes that the next poll will probably move."""
        return max(1.0, _UNKNOWN_SIZE if self.size is None else self.size)

    def record(self) -> dict[str, Any]:
        """What is committed."""
        return {
            "worth": self.worth, "rate": self.rate, "validator": self.validator, "fingerprint": self.fingerprint,
            "polled": self.polled, "polls": self.polls, "changes": self.changes, "size": self.size,
            "failures": self.failures, "reason": self.reason, "not_before": self.not_before,
            "intended": self.intended, "given": self.given, "accesses": self.accesses, "accessed": self.accessed,
            "least_freshness": self.least_freshness, "greatest_age": self.greatest_age,
        }  # fmt: skip

    @classmethod
    def of(cls, name: str, host: str, record: Mapping[str, Any]) -> KnownElement:
        """The element of a record."""
        told = {key: value for key, value in record.items() if key not in ("learned", "due")}
        # Earlier versions knew no other worth than the one that was given.
        known = cls(name, host, **{"given": record["worth"], **told})
        known.saved(record)
        return known

    def told(self, rate: float, planned: float, now: float) -> ElementRate:
        """What a person may know of it."""
        age = None if self.polled is None else max(0.0, now - self.polled)
        return ElementRate(
            self.name, self.worth, rate, planned, self.polls, self.changes, age, self.failures, self.reason
        )

    def may_be_polled(self, now: float) -> bool:
        """Whether a crash would leave a trace of a poll: what is committed says that it is due, or intended."""
        return self.saved_intent or self.saved_due <= now

    def saved(self, record: Mapping[str, Any]) -> None:
        """A record of it is durable."""
        self.saved_due = math.inf if record["due"] is None else record["due"]
        self.saved_intent = record["intended"]

    def moved(self, size: int) -> None:
        """A poll moved this many bytes."""
        self.size = float(size) if self.size is None else 0.7 * self.size + 0.3 * size
