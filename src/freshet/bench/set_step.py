"""``freshet bench set-step``: one query per step, everything at once, or a set, in a simulated steady state."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.policies import BusyPrice, Everything, FreshnessAware, Policy, SetStep
from freshet.simulation.fast import FastWorld
from freshet.simulation.workloads.fas import FasWorkload
from freshet.simulation.world import World

OVERHEADS: Final = (0.0, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 4.0)
LOADS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
SMALL: Final = 0.1
SPAN: Final = 50.0
"""Number of rounds of arrivals over which the price learns how busy the worker is."""


@bench(
    "Staleness of one query per step, everything at once and the set step, by overhead and load (simulated).",
    takes="about three minutes",
    name="set-step",
)
def set_step(
    stage: Stage,
    queries: Annotated[int, typer.Option(min=2, help="Queries, as in FAS §6.")] = 50,
    tuples: Annotated[int, typer.Option(min=10, help="Tuples of each of 10 streams.")] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Steps that run at once; more than one takes much longer.")] = 1,
) -> Result:
    """The overhead of a step is in rounds of work: 1 is the time to process one tuple for every query. The load is the
    work that arrives, without overhead, over what all workers can do. The set step learns overhead and load from the
    run. Each cell has the figures `staleness_MODE_OVERHEAD_LOAD`. `worst_vs_best_extreme` is the greatest staleness of
    the set step over the lower one of both extremes. `gain_small_overhead` is the share by which it is below everything
    at once if the overhead is at most a tenth of a round: the mean over these cells. `gain_small_overhead_least` is the
    same in the worst of them.
    """
    figures: dict[str, float] = {}
    versus, small = [], []
    with stage.steps("simulating", len(OVERHEADS) * len(LOADS)) as advance:
        for overhead in OVERHEADS:
            for load in LOADS:
                bed = FasWorkload(queries=queries, tuples=tuples, utilization=load * workers, seed=seed)
                cell = _cell(bed, overhead, workers)
                for mode, staleness in cell.items():
                    figures[f"staleness_{mode}_{overhead:g}_{load:g}"] = staleness
                versus.append(cell["set"] / min(cell["one"], cell["all"]))
                if overhead <= SMALL:
                    small.append(1.0 - cell["set"] / cell["all"])
                advance()
    summary = {
        "worst_vs_best_extreme": max(versus),
        "gain_small_overhead": sum(small) / len(small),
        "gain_small_overhead_least": min(small),
    }
    return Result(summary | figures, conditions={"span_rounds": SPAN, "seed": seed, "workers": workers})


def _cell(workload: FasWorkload, rounds: float, workers: int) -> dict[str, float]:
    """Mean staleness by mode."""
    round_seconds = workload.round_seconds()
    # A round of work arrives every round_seconds / utilization; with much overhead a step lasts for many rounds.
    span = SPAN * max(1.0, rounds) * round_seconds / workload.utilization
    policies: dict[str, Policy] = {
        "one": FreshnessAware(),
        "all": Everything(),
        "set": FreshnessAware(steps=SetStep(BusyPrice(span))),
    }
    return {mode: _staleness(workload, policy, rounds * round_seconds, workers) for mode, policy in policies.items()}


def _staleness(workload: FasWorkload, policy: Policy, overhead: float, workers: int) -> float:
    streams = workload.streams_of()
    queries = workload.queries_of(streams)
    # After the last tuple only a backlog is left, and it says nothing about a steady state.
    end = min(float(times[-1]) for times in streams.values())
    world = (
        FastWorld(streams, queries, policy, overhead=overhead, seed=workload.seed)
        if workers == 1
        else World(streams, queries, policy, overhead=overhead, slots=workers, seed=workload.seed)
    )
    world.run()
    return world.outcome(until=end).staleness
