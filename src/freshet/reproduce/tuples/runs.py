"""The simulations behind the claims of WU ch. 4: which testbed, which strategy, which batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from freshet.policies import Policy, RoundRobin, RowLimit, Trains
from freshet.policies.tuples.auto import TupleAuto
from freshet.policies.tuples.base import TuplePolicy
from freshet.policies.tuples.batching import IntelligentBatches, IntervalBatches
from freshet.policies.tuples.deadline_aware import POLICIES as DEADLINE_AWARE
from freshet.policies.tuples.deadline_aware import LastDitchPolicy
from freshet.policies.tuples.greedy import POLICIES as GREEDY
from freshet.quality.timeliness import TimelyCounts, competitive_bound, score
from freshet.reproduce.aurora.runs import PRICES
from freshet.reproduce.trial import Trial
from freshet.simulation.fast import FastWorld
from freshet.simulation.outcome import Work
from freshet.simulation.workloads.traces import trace_folder
from freshet.simulation.workloads.tuples import TupleWorkload

STRATEGIES: Final = ("basic", "opt-profit", "basic-dd", "opt-profit-dd", "basic-pd", "opt-profit-pd")
"""The six that the thesis compares."""
_BY_NAME: Final[Mapping[str, Callable[..., TuplePolicy]]] = {
    policy.name: policy for policy in (*GREEDY, *DEADLINE_AWARE, TupleAuto)
}
Batching = Literal["intelligent", "none", "fixed length", "fixed interval"]
QUICK_SECONDS: Final = 48.0
FULL_SECONDS: Final = 240.0


@dataclass(frozen=True, slots=True)
class TupleRun:
    """One simulation.

    Args:
        bed: The testbed.
        strategy: Name of the policy; "rr" for round robin.
        u: The factor of the last ditch; None: the one that the thesis chooses.
        batching: How tuples are batched.
        batch: Of fixed batches, their number of tuples, or their seconds.
    """

    bed: TupleWorkload
    strategy: str
    u: float | None = None
    batching: Batching = "intelligent"
    batch: float = 0.0


@dataclass(frozen=True, slots=True)
class TupleResult:
    """What a simulation gave.

    Args:
        score: The utility over all queries (WU Eq. 4.3).
        by_query: That of each query (Eq. 4.2).
        work: What the run did.
        tuples: Number of tuples that came.
        batch_rows: Mean number of tuples of a batch; 0 if nobody counted.
        batch_seconds: Mean seconds between the first and the last of them.
        bound: What share of a clairvoyant schedule's earnings no online scheduler can promise (WU §4.7).
    """

    score: float
    by_query: Mapping[str, float]
    work: Work
    tuples: int
    batch_rows: float = 0.0
    batch_seconds: float = 0.0
    bound: float = 0.0


def simulate(run: TupleRun) -> TupleResult:
    """Runs one simulation until tuples stop coming, and counts the answers that were due by then."""
    bed, policy = run.bed, policy_of(run)
    streams, queries, due = bed.streams_of(), bed.queries_of(), bed.due()
    world = FastWorld(
        streams, queries, policy, call=PRICES.call, operation=PRICES.operation, seed=bed.seed,
        validity=bed.validity_of(), created=bed.created_of(),
    )  # fmt: skip
    world.run(bed.seconds)
    counts = {}
    for name, (expiries, departures) in world.due().items():
        in_time = (departures <= expiries) & (expiries <= bed.seconds)
        counts[name] = TimelyCounts(due[name], int(np.count_nonzero(in_time)))
    weights = {query.name: query.promises.weight for query in queries}
    shares = {name: each.share or 0.0 for name, each in counts.items()}
    found = TupleResult(score(counts, weights) or 0.0, shares, world.work, sum(map(len, streams.values())))
    if isinstance(policy, TuplePolicy):
        counts_of_batches, bound = policy.batches, competitive_bound(policy.jobs.spread)
        found = replace(
            found,
            batch_rows=counts_of_batches.mean_rows,
            batch_seconds=counts_of_batches.mean_seconds,
            bound=bound,
        )
    return found


def policy_of(run: TupleRun) -> Policy:
    """The policy of a run."""
    if run.strategy == "rr":
        return RoundRobin()
    policy = _BY_NAME[run.strategy](trains=trains_of(run))
    if run.u is not None:
        assert isinstance(policy, LastDitchPolicy), f"{run.strategy} has no last ditch"
        policy.u = run.u
    return policy


def trains_of(run: TupleRun) -> Trains:
    """How a run batches tuples."""
    if run.batching == "none":
        return RowLimit(1)
    if run.batching == "fixed length":
        return RowLimit(max(1, round(run.batch)))
    if run.batching == "fixed interval":
        return IntervalBatches(run.batch)
    return IntelligentBatches()


def bed(trial: Trial, **changes: object) -> TupleWorkload:
    """The testbed at the trial's size. Without the traces, tuples come by the b-model."""
    process = "trace" if trace_folder() is not None else "b-model"
    made = TupleWorkload(seconds=QUICK_SECONDS if trial.quick else FULL_SECONDS, process=process)  # type: ignore[arg-type]
    return replace(made, **changes)  # type: ignore[arg-type]


def runs(trial: Trial, run: TupleRun) -> list[TupleResult]:
    """A run for each seed."""
    return trial.map(simulate, [replace(run, bed=replace(run.bed, seed=seed)) for seed in trial.seeds])


def scores(trial: Trial, run: TupleRun) -> list[float]:
    """The score of each seed."""
    return [each.score for each in runs(trial, run)]
