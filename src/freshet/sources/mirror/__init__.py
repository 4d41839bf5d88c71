"""Mirrors: copies of what others change, polled as often as it pays."""

from freshet.sources.mirror.options import MirrorOptions
from freshet.sources.mirror.source import KINDS, MirrorSource
from freshet.sources.mirror.status import ElementRate, MirrorStatus

__all__ = ["KINDS", "ElementRate", "MirrorOptions", "MirrorSource", "MirrorStatus"]
