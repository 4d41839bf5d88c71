"""The simulator of mirrors: analytic and by events (CAR §2.4)."""

from freshet.mirror.simulator.changing import ChangingElements
from freshet.mirror.simulator.events import WatchedMirror, poll_times, watch
from freshet.mirror.simulator.refreshing import LearnedPoint, RefreshingWorld
from freshet.mirror.simulator.workload import Alignment, MirrorWorkload

__all__ = [
    "Alignment",
    "ChangingElements",
    "LearnedPoint",
    "MirrorWorkload",
    "RefreshingWorld",
    "WatchedMirror",
    "poll_times",
    "watch",
]
