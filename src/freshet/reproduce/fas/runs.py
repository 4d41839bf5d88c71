"""The simulations behind the claims of FAS: which workload, which policy, which reading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from freshet.policies import FirstComeFirstServed, FreshnessAware, Policy, RateBased, RatioPolicy, RoundRobin
from freshet.reproduce.trial import Trial
from freshet.simulation.fast import FastWorld
from freshet.simulation.outcome import SimulationOutcome
from freshet.simulation.workloads.fas import FasWorkload

UTILIZATIONS: Final = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
BETAS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
SKEWS: Final = (0.0, 0.5, 1.0, 1.5, 2.0)
BURSTY: Final = (0, 2, 3, 4, 5, 6, 8, 10)
TRACE_UTILIZATIONS: Final = (0.1, 0.5, 0.8, 0.95)
HIGH: Final = 0.95
"""The utilization at which the paper makes most comparisons."""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """One way to understand what the paper leaves open (FAS §4.5, §6).

    Args:
        take: A scheduled query drains its queue, or takes one tuple. (FCFS goes by the arrival of each tuple, so it
            takes one in either case.)
        charge: Which operations of the calendar queue cost as much as the cheapest operator.
        rate_free: Whether RB-MCQ does without a calendar queue, since its priorities do not change.
    """

    take: Literal["drain", "one"] = "drain"
    charge: Literal["nothing", "extracts", "extracts and inserts"] = "nothing"
    rate_free: bool = False

    def counted(self, policy: Policy) -> int:
        """Number of operations that cost something; 0 for policies without a calendar queue."""
        if not isinstance(policy, RatioPolicy) or self.charge == "nothing":
            return 0
        return policy.queue.extracts + (policy.queue.inserts if self.charge == "extracts and inserts" else 0)

    def __str__(self) -> str:
        return f"{self.take}, charge {self.charge}" + (" but not RB-MCQ" if self.rate_free else "")


PLAIN: Final = Interpretation()
READINGS: Final = (
    PLAIN,
    Interpretation("drain", "extracts"),
    Interpretation("drain", "extracts and inserts"),
    Interpretation("drain", "extracts", rate_free=True),
    Interpretation("drain", "extracts and inserts", rate_free=True),
    Interpretation("one"),
    Interpretation("one", "extracts"),
    Interpretation("one", "extracts and inserts"),
)


FasPolicy = Literal["fas", "rb", "rr", "fcfs"]
POLICIES: Final[tuple[FasPolicy, ...]] = ("fas", "rb", "rr", "fcfs")


@dataclass(frozen=True, slots=True)
class FasRun:
    """One simulation."""

    workload: FasWorkload
    policy: FasPolicy
    beta: float = 1.0
    weighted: bool = True
    reading: Interpretation = PLAIN


def simulate(run: FasRun) -> SimulationOutcome:
    """Runs one simulation."""
    workload, reading = run.workload, run.reading
    streams = workload.streams_of()
    free = reading.charge == "nothing" or (run.policy == "rb" and reading.rate_free)
    world = FastWorld(
        streams,
        workload.queries_of(streams),
        _policy(run),
        operation=0.0 if free else workload.cheapest(streams),
        counted=reading.counted,
        seed=workload.seed,
    )
    world.run()
    return world.outcome()


def _policy(run: FasRun) -> Policy:
    rows = None if run.reading.take == "drain" else 1
    match run.policy:
        case "rr":
            return RoundRobin(rows)
        case "fcfs":
            return FirstComeFirstServed(1)
        case "rb":
            return RateBased(rows, weighted=run.weighted)
        case "fas":
            return FreshnessAware(run.beta, rows, weighted=run.weighted)


def base(trial: Trial) -> FasWorkload:
    """The default setting: the paper's, or the same with streams of 160 tuples instead of 10,000.

    The number of queries stays: with fewer of them per stream there is less to choose from, and gains are smaller.
    """
    return FasWorkload(tuples=160) if trial.quick else FasWorkload()


def on_traces(trial: Trial) -> FasWorkload:
    """The real streams: 60 s of both traces for 250 queries, or 6 s for 50."""
    if trial.quick:
        return FasWorkload(queries=50, streams=2, trace_seconds=6.0)
    return FasWorkload(streams=2, trace_seconds=60.0)


def for_seeds(trial: Trial, run: FasRun) -> list[SimulationOutcome]:
    """The outcomes of a run, one for each seed."""
    return trial.map(simulate, seeded(trial, [run]))


def seeded(trial: Trial, runs: Iterable[FasRun]) -> list[FasRun]:
    """Each run for each seed."""
    return [replace(run, workload=replace(run.workload, seed=seed)) for run in runs for seed in trial.seeds]
