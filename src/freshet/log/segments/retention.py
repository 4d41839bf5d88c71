"""How long a log keeps its segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Retention:
    """What a stream keeps. What a registered reader has not consumed is always kept, up to the bound.

    Args:
        history_age: Seconds for which consumed segments stay readable; None: as long as the bytes allow.
        history_bytes: Consumed segments stay while they are within this number of newest bytes; None: no limit.
        bound_bytes: When this many bytes wait for a reader, the stream takes nothing more in, and a quarantined
            reader begins to lose its oldest segments; None: no limit but the disk.
    """

    history_age: float | None = 600.0
    history_bytes: int | None = 256 * 2**20
    bound_bytes: int | None = 2**30


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a whole log.

    Args:
        min_free_bytes: With less free disk than this, nothing is taken in; what is free is left to commits.
        orphan_age: Seconds after which a file that the store does not know is deleted. It is long enough for the
            files of a losing attempt, and for a file that is written and not yet committed.
        sparse_age: Seconds after which a file with few needed bytes is rewritten without the rest.
    """

    min_free_bytes: int = 128 * 2**20
    orphan_age: float = 600.0
    sparse_age: float = 60.0


class Sizes(Protocol):
    """What the rules ask of a stream's index."""

    @property
    def oldest(self) -> int:
        """Oldest offset kept."""

    @property
    def end(self) -> int:
        """Offset after the newest."""

    def newest_within(self, limit: int) -> int:
        """Lowest segment boundary with at most ``limit`` bytes between it and the end."""

    def younger_than(self, time_us: int) -> int:
        """Lowest segment boundary from which on every segment was appended at or after a time."""


def keep_from(
    index: Sizes,
    retention: Retention,
    needed: Iterable[int],
    quarantined: Iterable[int],
    now_us: int,
    pressure: bool,
) -> int:
    """The offset from which on a stream is kept.

    Args:
        index: Segments of the stream.
        retention: Its rules.
        needed: Cursors of readers that are at work.
        quarantined: Cursors of readers that hold data only as far as the bound allows.
        now_us: The time.
        pressure: Whether the disk is nearly full: then only what readers at work need is kept.
    """
    floors = [index.end, *needed]
    if not pressure:
        floors.append(_history_floor(index, retention, now_us))
        held = min(quarantined, default=index.end)
        if retention.bound_bytes is not None:
            held = max(held, index.newest_within(retention.bound_bytes))
        floors.append(held)
    return max(min(floors), index.oldest)


def _history_floor(index: Sizes, retention: Retention, now_us: int) -> int:
    floor = index.oldest
    if retention.history_bytes is not None:
        floor = max(floor, index.newest_within(retention.history_bytes))
    if retention.history_age is not None:
        floor = max(floor, index.younger_than(now_us - round(retention.history_age * 1e6)))
    return floor
