"""What it costs to make schedules: Aurora's schedulers over networks of boxes, by the clock of this machine."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from freshet.arrivals import Poisson
from freshet.bench.figures import Spread, extremes
from freshet.bench.stage import Stage
from freshet.model import Decision, View
from freshet.policies import create
from freshet.policies.around import Around
from freshet.reproduce.aurora.runs import PRICES
from freshet.simulation.fast import FastWorld
from freshet.simulation.workloads.aurora import AuroraWorkload

SCHEDULERS: Final = (
    "fixed-priority", "fixed-priority-push", "slope-slack", "slope-slack-push", "bucketing", "bucketing-push",
)  # fmt: skip
BOXES: Final = (100, 1_000, 10_000, 100_000)
BOXES_PER_QUERY: Final = 10
SIZE: Final = 300
"""Schedule size (CAR §4.5.1)."""
RATE: Final = 4_000.0
"""Tuples per second, all queries together."""


class Timed(Around):
    """A scheduler that adds up the processor time that it takes, once it has warmed up.

    Args:
        name: Name of the scheduler.
        begin: Simulated seconds from which on to count: what is built once is not what a decision costs.
    """

    name = "timed"

    def __init__(self, name: str, begin: float) -> None:
        super().__init__(create(name))
        self._begin = begin
        # The clock of a thread is a system call; its own time would be half of a short decision.
        self._clock = min(-(time.thread_time() - time.thread_time()) for _ in range(2000))
        self.decisions = 0
        self.seconds = 0.0

    def arrived(self, view: View, operators: Iterable[int]) -> None:
        """Passes the notice on."""
        began = time.thread_time()
        self.inner.arrived(view, operators)
        self._count(view, began)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """Passes the notice on."""
        began = time.thread_time()
        self.inner.completed(view, operators)
        self._count(view, began)

    def decide(self, view: View) -> Decision:
        """Passes the question on."""
        began = time.thread_time()
        decision = self.inner.decide(view)
        self._count(view, began)
        self.decisions += view.now >= self._begin
        return decision

    def _count(self, view: View, began: float) -> None:
        if view.now >= self._begin:
            self.seconds += max(0.0, time.thread_time() - began - self._clock)


def schedule_figures(
    stage: Stage, boxes: Sequence[int] = BOXES, *, seconds: float = 6.0, repeats: int = 3, seed: int = 0
) -> dict[str, Spread]:
    """Real microseconds per decision and per tuple, and the share of run time spent deciding, of every scheduler.

    Queries of ten boxes cost 5 us a tuple and have four deadlines; Poisson arrivals bring 4,000 tuples/s in simulated
    time (CAR Table 4.4). The first third is not counted. The scheduler's own time is that of this machine. The
    share is its seconds over the simulated seconds.
    """
    figures: dict[str, Spread] = {}
    for name in SCHEDULERS:
        for count in boxes:
            stage.say(f"{name}, {count:,} boxes ...")
            runs = [_run(name, count, seconds, seed) for _ in range(repeats)]
            figures[f"decide_us_{name}_{count}_boxes"] = extremes([run.us_per_decision for run in runs])
            figures[f"decide_us_per_tuple_{name}_{count}_boxes"] = extremes([run.us_per_tuple for run in runs])
            if name == "bucketing-push":
                figures[f"decide_share_bucketing_{count}"] = extremes([run.share for run in runs])
    return figures


class Decisions(NamedTuple):
    """What a run says about the scheduler."""

    us_per_decision: float
    us_per_tuple: float
    share: float
    qos: float


def _run(name: str, boxes: int, seconds: float, seed: int) -> Decisions:
    applications = boxes // BOXES_PER_QUERY
    bed = AuroraWorkload(
        applications=applications, depth=BOXES_PER_QUERY, cost=5e-6, deadlines=(0.075, 0.150, 0.225, 0.300)
    )
    times = Poisson(RATE, seed=seed).first(int(RATE * seconds))
    targets = np.random.default_rng(seed).integers(0, applications, len(times))
    streams = {f"a{number}.0.in": times[targets == number] for number in range(applications)}
    begin = seconds / 3.0
    policy = Timed(f"{name}({SIZE}, 7)" if name.startswith("bucketing") else f"{name}({SIZE})", begin)
    # A call costs as much as in CAR Fig. 4.15, so that the network is as busy; the cost of scheduling is measured.
    world = FastWorld(streams, bed.queries_of(), policy, call=PRICES.call, departs="box")
    world.run()
    tuples = int((times >= begin).sum())
    return Decisions(
        policy.seconds / max(1, policy.decisions) * 1e6,
        policy.seconds / tuples * 1e6,
        policy.seconds / (world.now - begin),
        world.outcome().qos.average,
    )
