"""Claims of CAR ch. 3: superboxes, traversals, trains."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

import numpy as np

from freshet.policies.aurora.superbox import application_trees
from freshet.policies.aurora.traversal import TRAVERSALS, Box, Boxes, Traversal, TraversalName, Walk, walk, ways_of
from freshet.reproduce.aurora.measures import ROBIN, minus, over
from freshet.reproduce.aurora.runs import (
    CAPACITIES,
    CHAPTER_3,
    COSTS,
    SHARES,
    AuroraResult,
    AuroraRun,
    latency,
    runs,
    trees,
)
from freshet.reproduce.aurora.threads import latencies_of
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial

CHEAP: Final = "aaat-min-cost"
HALF: Final = 0.5
"""The load of CAR §3.4.3; we take it for all experiments of the chapter that state none."""


def tree_runs(trial: Trial, policy: str) -> list[AuroraRun]:
    """Five application trees at rising rates (Fig. 3.6); tuples come to all inputs at once, as in Fig. 3.10."""
    return [AuroraRun(trees(trial, 5, share, process="even"), policy, prices=CHAPTER_3) for share in CAPACITIES]


@claim(
    "aurora.fig3.6.baat-slower",
    source="CAR §3.4.2, Fig. 3.6",
    published="far above 1 near saturation",
    how="mean latency a box at a time over that of application trees (min-cost), five trees at 0.95 of the ideal "
    "capacity; readings: at lower rates",
    low=2.0,
)
def _(trial: Trial) -> Measured:
    pairs = zip(tree_runs(trial, ROBIN), tree_runs(trial, CHEAP), strict=True)
    readings = {
        f"at {capacity:g}": over(latency(runs(trial, boxes)), latency(runs(trial, applications)))
        for capacity, (boxes, applications) in zip(CAPACITIES, pairs, strict=True)
    }
    return Measured(readings[f"at {CAPACITIES[-1]:g}"], readings)


def saturation(trial: Trial, policy: str) -> list[float]:
    """The highest share of the ideal capacity at which the latency is at most twice that at the lowest share."""
    every = [latency(runs(trial, run)) for run in tree_runs(trial, policy)]
    return [
        max(capacity for capacity, value in zip(CAPACITIES, values, strict=True) if value <= 2.0 * values[0])
        for values in zip(*every, strict=True)
    ]


@claim(
    "aurora.fig3.6.baat-saturates-earlier",
    source="CAR §3.4.2, Fig. 3.6",
    published="boxes saturate at much earlier points",
    how="share of the ideal capacity that application trees sustain minus that of a box at a time (latency at most "
    "twice that at 0.1); readings: each of them",
    low=0.1,
)
def _(trial: Trial) -> Measured:
    found = {policy: saturation(trial, policy) for policy in (CHEAP, ROBIN)}
    return Measured(minus(found[CHEAP], found[ROBIN]), found, grid=0.1)


@claim(
    "aurora.fig3.6.trees-hold-on",
    source="CAR §3.4.2, Fig. 3.6",
    published="over 0.9",
    how="share of the ideal capacity that application trees sustain (latency at most twice that at 0.1)",
    low=0.9,
)
def _(trial: Trial) -> Measured:
    return Measured(saturation(trial, CHEAP), grid=0.05)


def by_cost(trial: Trial, cost: float) -> list[float]:
    """Latency of min-latency over that of min-cost: one tree at half of the ideal capacity, all boxes of one cost."""
    bed = trees(trial, 1, HALF, cost_range=None, cost=cost, process="even")
    fast, cheap = (
        latency(runs(trial, AuroraRun(bed, f"aaat-{name}", prices=CHAPTER_3))) for name in ("min-latency", "min-cost")
    )
    return over(fast, cheap)


@claim(
    "aurora.fig3.7.min-cost-wins-cheap-boxes",
    source="CAR §3.4.3, Fig. 3.7",
    published="above 1",
    how="latency of min-latency over that of min-cost if a box costs 2 us per tuple",
    low=1.0001,
)
def _(trial: Trial) -> Measured:
    return Measured(by_cost(trial, COSTS[0]), {f"{cost * 1e6:g} us": by_cost(trial, cost) for cost in COSTS})


@claim(
    "aurora.fig3.7.min-latency-wins-dear-boxes",
    source="CAR §3.4.3, Fig. 3.7",
    published="below 1",
    how="latency of min-latency over that of min-cost if a box costs 10 ms per tuple",
    high=0.9999,
)
def _(trial: Trial) -> Measured:
    return Measured(by_cost(trial, COSTS[-1]))


DRAWS: Final = 10
"""Number of trees drawn for each seed (Fig. 3.8): they differ much, and a walk costs nothing."""


def memories(trial: Trial) -> list[list[dict[TraversalName, Walk]]]:
    """One superbox with waiting tuples, by each traversal: some draws of costs and selectivities for each seed."""
    return [[_walks(trial, DRAWS * seed + draw) for draw in range(DRAWS)] for seed in trial.seeds]


def _walks(trial: Trial, seed: int) -> dict[TraversalName, Walk]:
    rng = np.random.default_rng([seed, 0x38])
    bed = trees(trial, 1, HALF, seed=seed)
    (query,) = bed.queries_of()
    boxes = {
        place: Box(() if after is None else (after,), profile.cost, float(rng.uniform()))
        for place, (profile, after) in enumerate(zip(query.operators.values(), bed.after, strict=True))
    }
    (superbox,) = application_trees({place: box.after for place, box in boxes.items()})
    waiting = dict.fromkeys(boxes, 10.0)
    found: dict[TraversalName, Walk] = {}
    for name, order in TRAVERSALS.items():
        calls = order(superbox, boxes)
        begins = {0} if name == "min-cost" else _begins(calls, boxes)
        found[name] = walk(calls, boxes, waiting, CHAPTER_3.call, CHAPTER_3.unit, begins)
    return found


def _begins(calls: Traversal, boxes: Boxes) -> set[int]:
    """The places in a traversal at which a step begins: a step is a way down the tree, as the policies cut it."""
    lengths = [len(way) for way in ways_of(calls, boxes)]
    return set(np.cumsum([0, *lengths[:-1]]).tolist())


def memory_over(trial: Trial, one: TraversalName, other: TraversalName) -> list[float]:
    """Byte-seconds of one traversal over those of another, until the last one is done; means over the draws."""
    means = []
    for draws in memories(trial):
        ratios = []
        for walks in draws:
            end = max(each.seconds for each in walks.values())
            ratios.append(walks[one].memory_until(end) / walks[other].memory_until(end))
        means.append(float(np.mean(ratios)))
    return means


@claim(
    "aurora.fig3.8.min-memory-needs-least",
    source="CAR §3.4.3, Fig. 3.8",
    published="above 1 over most of the run",
    how="memory in use over the run by min-cost over that by min-memory; a tree of fan-out 3 and depth 5, 10 tuples at "
    "each box, selectivities drawn from [0, 1]; mean of ten draws for each seed",
    low=1.0001,
)
def _(trial: Trial) -> Measured:
    return Measured(memory_over(trial, "min-cost", "min-memory"))


@claim(
    "aurora.fig3.8.min-latency-needs-most",
    source="CAR §3.4.3, Fig. 3.8",
    published="above 1",
    how="memory in use over the run by min-latency over that by min-cost; the same trees",
    low=1.0001,
)
def _(trial: Trial) -> Measured:
    return Measured(memory_over(trial, "min-latency", "min-cost"))


@claim(
    "aurora.fig3.8.min-cost-ends-first",
    source="CAR §3.4.3, Fig. 3.8",
    published="min-cost has the smallest total execution time",
    how="seconds of min-cost over those of the faster one of the other two; the same trees",
    high=0.99,
)
def _(trial: Trial) -> Measured:
    def ratio(walks: dict[TraversalName, Walk]) -> float:
        return walks["min-cost"].seconds / min(walks["min-latency"].seconds, walks["min-memory"].seconds)

    return Measured([float(np.mean([ratio(walks) for walks in draws])) for draws in memories(trial)])


@claim(
    "aurora.fig3.3.much-less-with-one-scheduler",
    source="CAR §3.2.3, Fig. 3.3",
    published="performance degrades in both cases, much less with one scheduler",
    how="rise of the mean latency from few to many boxes (100 to 500, in full mode to 2,000) with a thread for each "
    "box over that with one scheduler; queries of five filters; in real time, with threads of this machine",
    low=2.0,
)
def _(trial: Trial) -> Measured:
    few, many = thread_sizes(trial)
    grown = [(latencies_of(few, seed), latencies_of(many, seed)) for seed in trial.seeds]
    return Measured([(many[0] - few[0]) / (many[1] - few[1]) for few, many in grown])


@claim(
    "aurora.fig3.3.exponential-against-linear",
    source="CAR §3.2.3, Fig. 3.3",
    published="one thread per box degrades exponentially, one scheduler almost linearly",
    how="the power of the number of boxes by which the mean latency grows from few to many, with a thread for each box "
    "minus with one scheduler: 0 if both grow linearly; what is exponential outgrows each power, so at least the next "
    "one is asked; the same measurements; readings: both powers",
    low=1.0,
    reason="with the threads of today's systems, what a tuple costs does not depend on how many other threads wait: a "
    "box's thread sleeps until its queue has something. So both models degrade linearly, one of them from a level "
    "many times as high. The thesis names cache misses, lock contention and switching, and no figures of them",
)
def _(trial: Trial) -> Measured:
    few, many = thread_sizes(trial)
    powers = [
        [log(high / low) / log(many / few) for low, high in zip(*pair, strict=True)]
        for pair in ((latencies_of(few, seed), latencies_of(many, seed)) for seed in trial.seeds)
    ]
    threads, scheduler = map(list, zip(*powers, strict=True))
    return Measured(minus(threads, scheduler), {"a thread for each box": threads, "one scheduler": scheduler})


def thread_sizes(trial: Trial) -> tuple[int, int]:
    """Few and many boxes (Fig. 3.3)."""
    return (100, 500) if trial.quick else (100, 2000)


def bursty(trial: Trial, burst: int, share: float) -> list[AuroraResult]:
    """One tree of fan-out 2, a box at a time, with trains of a share of the queue (Fig. 3.9)."""
    bed = trees(trial, 1, BURSTY_LOAD, fanout=2, burst=burst)
    return runs(trial, AuroraRun(bed, ROBIN, share=share, prices=CHAPTER_3))


BURSTY_LOAD: Final = 0.15
"""The load of Fig. 3.9, which the thesis does not state: queues must form "without saturating the system", and a box at
a time of single tuples needs 4.3 times as long as their processing."""


def average_overhead(trial: Trial, burst: int, share: float) -> list[float]:
    """Latency beyond the processing of a tuple: execution time less processing time, with the clock of the tuples."""
    work = [trees(trial, 1, BURSTY_LOAD, fanout=2, seed=seed).work for seed in trial.seeds]
    return minus(latency(bursty(trial, burst, share)), work)


@claim(
    "aurora.fig3.9.flat-without-bursts",
    source="CAR §3.4.4, Fig. 3.9",
    published=1.0,
    how="average overhead with trains of the whole queue over that with trains of 0.2 of it, evenly spaced arrivals; "
    "never two tuples wait, so no scheduler could make a difference",
    low=0.95,
    high=1.05,
    kind="check",
)
def _(trial: Trial) -> Measured:
    return Measured(over(average_overhead(trial, 1, 1.0), average_overhead(trial, 1, 0.2)))


@claim(
    "aurora.fig3.9.bursts-cost",
    source="CAR §3.4.4, Fig. 3.9",
    published=4.0,
    how="average overhead (latency beyond the processing of a tuple) with bursts of 4 over that without, trains of 0.2 "
    "of the queue; accepted within a factor of two",
    low=2.0,
    high=8.0,
    neutral=1.0,
)
def _(trial: Trial) -> Measured:
    readings = {
        f"average overhead in ms, bursts of {burst}, trains of {share:g}": [
            1e3 * value for value in average_overhead(trial, burst, share)
        ]
        for burst in (1, 2, 4)
        for share in SHARES
    }
    return Measured(over(average_overhead(trial, 4, 0.2), average_overhead(trial, 1, 0.2)), readings)


@claim(
    "aurora.fig3.9.trains-help-bursts",
    source="CAR §3.4.4, Fig. 3.9",
    published="markedly below 1",
    how="average overhead with trains of the whole queue over that with trains of 0.2 of it, bursts of 4",
    high=0.8,
)
def _(trial: Trial) -> Measured:
    return Measured(over(average_overhead(trial, 4, 1.0), average_overhead(trial, 4, 0.2)))


@claim(
    "aurora.fig3.9.do-not-converge",
    source="CAR §3.4.4, Fig. 3.9",
    published="above 1",
    how="average overhead with trains of the whole queue, bursts of 4 over no bursts",
    low=1.05,
)
def _(trial: Trial) -> Measured:
    return Measured(over(average_overhead(trial, 4, 1.0), average_overhead(trial, 1, 1.0)))


def four_trees(trial: Trial, policy: str, process: str = "even") -> list[AuroraResult]:
    """Four application trees; tuples come to all inputs at once."""
    return runs(trial, AuroraRun(trees(trial, 4, HALF, process=process), policy, prices=CHAPTER_3))


def total(found: Sequence[AuroraResult]) -> list[float]:
    """Seconds of processing, overhead and scheduling."""
    return [each.outcome.work.processing + each.outcome.work.beyond for each in found]


@claim(
    "aurora.fig3.10.superboxes-halve",
    source="CAR §3.4.5, Fig. 3.10",
    published=0.5,
    how="total time of min-cost superboxes over that of a box at a time with trains, four trees at half of the ideal "
    "capacity: the price of a scheduled unit is set by it; readings: other arrivals",
    low=0.45,
    high=0.55,
    kind="check",
)
def _(trial: Trial) -> Measured:
    readings = {
        f"{process} arrivals": over(total(four_trees(trial, CHEAP, process)), total(four_trees(trial, ROBIN, process)))
        for process in ("even", "staggered", "poisson")
    }
    return Measured(readings["even arrivals"], readings)


@claim(
    "aurora.fig3.10.tuples-worst",
    source="CAR §3.4.5, Fig. 3.10",
    published="a tuple at a time is significantly worse",
    how="total time of a tuple at a time over that of a box at a time with trains, in the same runs",
    low=1.2,
)
def _(trial: Trial) -> Measured:
    return Measured(over(total(four_trees(trial, "taat")), total(four_trees(trial, ROBIN))))


@claim(
    "aurora.fig3.10.scheduler-dominates",
    source="CAR §3.4.5, Fig. 3.10",
    published="the scheduler's share increases and starts to dominate the rest",
    how="the scheduler's share of the overhead with superboxes, 0 if it does not rise from a tuple at a time to trains "
    "to superboxes; as much as the other two components together is asked; in the same runs; readings: each share",
    low=0.5,
    reason="it rises, but to 2 %. The thesis's scheduler plans at every step, and its steps become fewer less fast "
    "than box calls do. Here a superbox is one step of up to 121 calls whose order is known beforehand, so steps "
    "become fewer faster than calls; and storage and workers are paid once for each step (§3.3.1 (2)), at 1.8 ms, "
    "which no price of a look at a box comes near",
)
def _(trial: Trial) -> Measured:
    shares = {
        policy: [each.outcome.work.scheduling / each.outcome.work.beyond for each in four_trees(trial, policy)]
        for policy in ("taat", ROBIN, CHEAP)
    }
    rising = zip(shares["taat"], shares[ROBIN], shares[CHEAP], strict=True)
    return Measured(
        [boxes if tuples < trains < boxes else 0.0 for tuples, trains, boxes in rising],
        {f"{policy}, scheduler's share": each for policy, each in shares.items()},
    )
