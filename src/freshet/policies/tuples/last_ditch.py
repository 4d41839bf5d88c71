"""The last ditch: what comes of pre-empting a job for one that cannot wait any longer (WU Alg. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs.

    Args:
        profit: What it earns if it ends in time.
        cost: Seconds that it takes in all.
        due: When it is due.
        begun: When it began.
    """

    profit: float
    cost: float
    due: float
    begun: float

    def rest(self, now: float) -> float:
        """Seconds that it still takes."""
        return max(0.0, self.begun + self.cost - now)


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that must begin now or will be late."""

    profit: float
    cost: float
    due: float


class Consequences(NamedTuple):
    """What both jobs earn together.

    Args:
        finished: The running job ends first, then the other runs.
        resumed: The other runs now; then the first goes on where it was.
        restarted: The other runs now; then the first begins again, because what it had done is lost.
    """

    finished: float
    resumed: float
    restarted: float


def consequences(running: RunningJob, waiting: WaitingJob, now: float, overhead: float = 0.0) -> Consequences:
    """What comes of each choice, before one is made. ``overhead`` is what beginning again costs besides.

    >>> consequences(RunningJob(4.0, 10.0, due=20.0, begun=0.0), WaitingJob(3.0, 5.0, due=11.0), now=5.0, overhead=1.0)
    Consequences(finished=4.0, resumed=7.0, restarted=3.0)
    """

    def earned(end: float, due: float, profit: float) -> float:
        return profit if end <= due else 0.0

    rest, after = running.rest(now), now + waiting.cost
    finished = earned(now + rest, running.due, running.profit)
    finished += earned(now + rest + waiting.cost, waiting.due, waiting.profit)
    other = earned(after, waiting.due, waiting.profit)
    resumed = other + earned(after + rest, running.due, running.profit)
    restarted = other + earned(after + overhead + running.cost, running.due, running.profit)
    return Consequences(finished, resumed, restarted)


def gives_up(running: RunningJob, waiting: WaitingJob, now: float, overhead: float) -> bool:
    """Whether the running job gives way, where it would have to begin again: only if both together earn more then.

    >>> gives_up(RunningJob(4.0, 10.0, due=20.0, begun=0.0), WaitingJob(3.0, 5.0, due=11.0), now=5.0, overhead=1.0)
    False
    """
    found = consequences(running, waiting, now, overhead)
    return found.restarted > found.finished
