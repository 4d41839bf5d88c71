"""Mirrors: copies of what others change, polled as often as it pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from freshet.model import Stream
from freshet.sources.mirror.options import MirrorOptions

if TYPE_CHECKING:
    from freshet.sources.mirror.source import MirrorSource


def make(options: MirrorOptions, stream: Stream) -> MirrorSource:
    """Polls what others change, as often as it pays.

    What polls need (HTTP above all) is slow to import, and few applications have a mirror.
    """
    from freshet.sources.mirror.source import MirrorSource

    return MirrorSource(options, stream)


KINDS: Final = {"mirror": (MirrorOptions, make)}

__all__ = ["KINDS", "MirrorOptions", "make"]
