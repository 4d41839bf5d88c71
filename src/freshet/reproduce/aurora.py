"""The claims of CAR ch. 3 and 4: superboxes, trains, and QoS-aware scheduling in Aurora."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from freshet.policies.superbox import application_trees
from freshet.policies.traversal import TRAVERSALS, Box, Walk, walk
from freshet.reproduce.aurora_runs import (
    CAPACITIES,
    COSTS,
    LARGE_RATES,
    PARTITIONS,
    PRICES,
    RATES,
    SHARES,
    SIZES,
    Found,
    Run,
    ahead,
    branching,
    deep,
    fluctuating,
    large,
    latency,
    overloaded,
    qos,
    runs,
    small,
    sustained,
    trees,
    unbranched,
    varied,
)
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.simulation.boxes import Prices
from freshet.simulation.workloads.aurora import AuroraWorkload

FIXED, SLOPE, BUCKETS, ROBIN = "fixed-priority", "slope-slack", "bucketing", "baat"
PUSHED = (f"{FIXED}-push", f"{SLOPE}-push", f"{BUCKETS}-push")
LARGE_SIZE = 300
"""Schedule size of CAR §4.5.1; its 50 buckets are 7 x 7 here."""


def minus(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Differences, seed by seed."""
    return [a - b for a, b in zip(one, other, strict=True)]


def over(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Ratios, seed by seed."""
    return [a / b for a, b in zip(one, other, strict=True)]


def mean(each: Iterable[Sequence[float]]) -> list[float]:
    """The mean over settings, for each seed."""
    return [float(np.mean(values)) for values in zip(*each, strict=True)]


def least(each: Iterable[Sequence[float]]) -> list[float]:
    """The least over settings, for each seed."""
    return [min(values) for values in zip(*each, strict=True)]


# Chapter 3


def tree_runs(trial: Trial, policy: str, prices: Prices = PRICES) -> list[Run]:
    """Five application trees at rising rates (Fig. 3.6)."""
    return [Run(trees(trial, 5, capacity), policy, prices=prices) for capacity in CAPACITIES]


@claim(
    "aurora.fig3.6.baat-slower",
    source="CAR §3.4.2, Fig. 3.6",
    published="far above 1 near saturation",
    how="mean latency a box at a time over that of application trees (min-cost), five trees at 0.95 of the ideal "
    "capacity; readings: at ten times our prices of a call and of scheduling, and at lower rates",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    tenfold = Prices(10 * PRICES.call, 10 * PRICES.operation)
    by_price = {"": PRICES, ", tenfold prices": tenfold}
    readings = {}
    for text, prices in by_price.items():
        pairs = zip(tree_runs(trial, ROBIN, prices), tree_runs(trial, "aaat-min-cost", prices), strict=True)
        for capacity, (boxes, applications) in zip(CAPACITIES, pairs, strict=True):
            ratio = over(latency(runs(trial, boxes)), latency(runs(trial, applications)))
            readings[f"at {capacity:g}{text}"] = ratio
    return Measured(readings[f"at {CAPACITIES[-1]:g}"], readings)


def saturation(trial: Trial, policy: str, prices: Prices) -> list[float]:
    """The highest share of the ideal capacity at which the latency is at most ten times that at the lowest."""
    every = [latency(runs(trial, run)) for run in tree_runs(trial, policy, prices)]
    return [
        max(capacity for capacity, value in zip(CAPACITIES, values, strict=True) if value <= 10.0 * values[0])
        for values in zip(*every, strict=True)
    ]


@claim(
    "aurora.fig3.6.baat-saturates-earlier",
    source="CAR §3.4.2, Fig. 3.6",
    published="application trees hold on above 0.9, boxes saturate much earlier",
    how="share of the ideal capacity that application trees sustain minus that of a box at a time (latency at most ten "
    "times that at 0.3), at ten times our prices: at these costs of boxes our prices are a few per cent",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    tenfold = Prices(10 * PRICES.call, 10 * PRICES.operation)
    found = {
        f"{policy}{text}": saturation(trial, policy, prices)
        for policy in ("aaat-min-cost", ROBIN)
        for text, prices in (("", PRICES), (", tenfold prices", tenfold))
    }
    values = minus(found["aaat-min-cost, tenfold prices"], found[f"{ROBIN}, tenfold prices"])
    return Measured(values, found)


def by_cost(trial: Trial, cost: float) -> list[float]:
    """Latency of min-latency over that of min-cost, one tree at half of the ideal capacity, all boxes of one cost."""
    bed = trees(trial, 1, 0.5, cost_range=None, cost=cost, process="even")
    fast, cheap = (latency(runs(trial, Run(bed, f"aaat-{name}"))) for name in ("min-latency", "min-cost"))
    return over(fast, cheap)


@claim(
    "aurora.fig3.7.min-cost-wins-cheap-boxes",
    source="CAR §3.4.3, Fig. 3.7",
    published="above 1",
    how="latency of min-latency over that of min-cost where a box costs 2 us per tuple (a call costs 21 us)",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(by_cost(trial, COSTS[0]), {f"{cost * 1e6:g} us": by_cost(trial, cost) for cost in COSTS})


@claim(
    "aurora.fig3.7.min-latency-wins-dear-boxes",
    source="CAR §3.4.3, Fig. 3.7",
    published="below 1",
    how="latency of min-latency over that of min-cost where a box costs 1 ms per tuple",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(by_cost(trial, COSTS[-1]))


def memories(trial: Trial) -> list[dict[str, Walk]]:
    """One superbox with waiting tuples by each traversal, for each seed: costs and selectivities drawn."""
    found = []
    for seed in trial.seeds:
        rng = np.random.default_rng([seed, 0x38])
        tree = trees(trial, 1, 0.5, seed=seed).trees()[0]
        pairs = zip(tree.profiles, tree.after, strict=True)
        boxes = {place: Box(after, profile.cost, float(rng.uniform())) for place, (profile, after) in enumerate(pairs)}
        (superbox,) = application_trees(
            {place: () if box.after is None else (box.after,) for place, box in boxes.items()}
        )
        waiting = dict.fromkeys(boxes, 10.0)
        found.append(
            {name: walk(order(superbox, boxes), boxes, waiting, PRICES.call) for name, order in TRAVERSALS.items()}
        )
    return found


def memory_over(trial: Trial, one: str, other: str) -> list[float]:
    """Byte-seconds of one traversal over those of another, until the last one is done."""
    ratios = []
    for walks in memories(trial):
        end = max(each.seconds for each in walks.values())
        ratios.append(walks[one].memory_until(end) / walks[other].memory_until(end))
    return ratios


@claim(
    "aurora.fig3.8.min-memory-needs-least",
    source="CAR §3.4.3, Fig. 3.8",
    published="above 1 over most of the run",
    how="memory in use over the run by min-cost over that by min-memory; a tree of fan-out 3 and depth 5, 10 tuples at "
    "each box, selectivities drawn from [0, 1]",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(memory_over(trial, "min-cost", "min-memory"))


@claim(
    "aurora.fig3.8.min-latency-needs-most",
    source="CAR §3.4.3, Fig. 3.8",
    published="above 1",
    how="memory in use over the run by min-latency over that by min-cost; the same tree",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(memory_over(trial, "min-latency", "min-cost"))


# Chapter 4: the small network


def curve_of(trial: Trial, policy: str, make: Callable[..., AuroraWorkload] = small, size: int = 10) -> list[float]:
    """Average QoS over all rates, for each seed."""
    every = [Run(make(trial, rate), policy, None if policy == ROBIN else size) for rate in RATES]
    ahead(trial, every)
    return mean(qos(runs(trial, run)) for run in every)


def by_rate(
    trial: Trial, policies: Sequence[str], make: Callable[..., AuroraWorkload] = small
) -> dict[str, list[float]]:
    """QoS at each rate, for the record."""
    return {
        f"{policy} at {rate:g}/s": qos(runs(trial, Run(make(trial, rate), policy, None if policy == ROBIN else 10)))
        for policy in policies
        for rate in RATES
    }


def poisson(trial: Trial, rate: float) -> AuroraWorkload:
    """The small network with Poisson arrivals."""
    return small(trial, rate, process="poisson")


@claim(
    "aurora.fig4.4.rr-lowest",
    source="CAR §4.3.2, Fig. 4.4",
    published="round robin is lowest",
    how="average QoS over rates from 800 to 1,800/s: the lower one of fixed-priority and slope-slack minus round robin",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    def gap(make: Callable[..., AuroraWorkload]) -> list[float]:
        aware = least(curve_of(trial, policy, make) for policy in (FIXED, SLOPE))
        return minus(aware, curve_of(trial, ROBIN, make))

    return Measured(gap(small), {"Poisson arrivals": gap(poisson), **by_rate(trial, (ROBIN, FIXED, SLOPE))})


@claim(
    "aurora.fig4.4.fixed-above-slope-slack",
    source="CAR §4.3.2, Fig. 4.4",
    published="fixed-priority is above slope-slack",
    how="average QoS over the rates: fixed-priority minus slope-slack, both a box at a time",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    values = {text: minus(curve_of(trial, FIXED, make), curve_of(trial, SLOPE, make)) for text, make in MAKES.items()}
    return Measured(values["even arrivals"], values)


MAKES = {"even arrivals": small, "Poisson arrivals": poisson}


@claim(
    "aurora.fig4.14a.push-lifts-slope-slack",
    source="CAR §4.5, Fig. 4.14(a)",
    published="a significant improvement",
    how="average QoS over the rates: slope-slack with push-through minus without",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    values = {
        text: minus(curve_of(trial, f"{SLOPE}-push", make), curve_of(trial, SLOPE, make))
        for text, make in MAKES.items()
    }
    return Measured(values["even arrivals"], values | by_rate(trial, PUSHED[:2]))


@claim(
    "aurora.fig4.14a.push-lifts-fixed-less",
    source="CAR §4.5, Fig. 4.14(a)",
    published="not much of an improvement for fixed-priority",
    how="gain of average QoS by push-through: slope-slack's minus fixed-priority's",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    def gain(policy: str) -> list[float]:
        return minus(curve_of(trial, f"{policy}-push"), curve_of(trial, policy))

    return Measured(minus(gain(SLOPE), gain(FIXED)))


@claim(
    "aurora.fig4.14b.deep-queries-hurt-boxes",
    source="CAR §4.5, Fig. 4.14(b)",
    published="box at a time falls with depth, push-through does not",
    how="average QoS over the rates lost by queries four times as deep: the less of fixed-priority's and slope-slack's a "
    "box at a time, minus the more of theirs with push-through. A call costs the same in a box of a quarter of the cost",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    loss = {
        policy: minus(curve_of(trial, policy), curve_of(trial, policy, deep)) for policy in (FIXED, SLOPE, *PUSHED[:2])
    }
    boxes = least((loss[FIXED], loss[SLOPE]))
    pushed = [max(pair) for pair in zip(loss[PUSHED[0]], loss[PUSHED[1]], strict=True)]
    return Measured(minus(boxes, pushed), {f"loss of {policy}": values for policy, values in loss.items()})


# Chapter 4: the large network


def large_runs(trial: Trial, policy: str) -> list[Run]:
    """10,000 boxes at rising rates."""
    return [Run(large(trial, rate), policy, LARGE_SIZE, partitions=7) for rate in LARGE_RATES]


@claim(
    "aurora.fig4.15.calibration",
    source="CAR §4.5.1, Fig. 4.15",
    published=3500.0,
    how="tuples/s that fixed-priority push-through sustains (average QoS at least 0.95): the price of a call is set by it",
    low=3250.0,
    high=3750.0,
)
def _(trial: Trial) -> Measured:
    return Measured(sustained(trial, large_runs(trial, PUSHED[0])))


@claim(
    "aurora.fig4.15.bucketing-sustains-most",
    source="CAR §4.5.1, Fig. 4.15",
    published=1.29,
    how="tuples/s that bucketing push-through sustains over the more that one of the other two does",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    rates = {policy: sustained(trial, large_runs(trial, policy)) for policy in PUSHED}
    others = [max(pair) for pair in zip(rates[PUSHED[0]], rates[PUSHED[1]], strict=True)]
    return Measured(over(rates[PUSHED[2]], others), {f"{policy} sustains": each for policy, each in rates.items()})


def scheduling_share(trial: Trial, policy: str) -> list[float]:
    """Share of the run time spent scheduling at 4,000 tuples/s."""
    found = runs(trial, Run(large(trial, 4000.0), policy, LARGE_SIZE, partitions=7))
    return [each.outcome.scheduling / each.outcome.seconds for each in found]


@claim(
    "aurora.table4.5.calibration",
    source="CAR §4.5.1, Table 4.5",
    published=0.075,
    how="share of run time that fixed-priority push-through spends scheduling at 4,000/s: the price of an operation is "
    "set by it",
    low=0.07,
    high=0.08,
)
def _(trial: Trial) -> Measured:
    return Measured(scheduling_share(trial, PUSHED[0]))


@claim(
    "aurora.table4.5.slope-slack-above-fixed",
    source="CAR §4.5.1, Table 4.5",
    published=2.13,
    how="scheduling share of slope-slack push-through over that of fixed-priority push-through at 4,000/s (0.16, 0.075)",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    shares = {policy: scheduling_share(trial, policy) for policy in PUSHED}
    return Measured(over(shares[PUSHED[1]], shares[PUSHED[0]]), {f"{name}": each for name, each in shares.items()})


@claim(
    "aurora.table4.5.bucketing-below-fixed",
    source="CAR §4.5.1, Table 4.5",
    published=0.53,
    how="scheduling share of bucketing push-through over that of fixed-priority push-through at 4,000/s (0.04, 0.075)",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(over(scheduling_share(trial, PUSHED[2]), scheduling_share(trial, PUSHED[0])))


# Chapter 4: overload

LOADS = (0.8, 0.9, 1.0, 1.2, 1.5)


def in_overload(trial: Trial, policy: str, load: float = 1.2, idle_only: bool = False) -> list[Found]:
    """One application gets half of all tuples."""
    return runs(trial, Run(overloaded(trial, load), policy, 10, idle_only=idle_only))


def per_tuple(found: Sequence[Found]) -> list[float]:
    """QoS over all tuples, for each seed."""
    return [each.outcome.qos.per_tuple for each in found]


@claim(
    "aurora.table4.6.average-qos",
    source="CAR §4.6.1, Table 4.6",
    published=0.25,
    how="average QoS of slope-slack minus fixed-priority, both push-through (0.90, 0.65), one application overloaded: half of "
    "all tuples, 1.2 times the ideal capacity; readings at other loads, and where late tuples wait for idle time",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    readings = {}
    for load in LOADS:
        for policy in PUSHED[:2]:
            readings[f"{policy}, load {load:g}"] = qos(in_overload(trial, policy, load))
        readings[f"{PUSHED[1]}, idle only, load {load:g}"] = qos(in_overload(trial, PUSHED[1], load, idle_only=True))
    return Measured(minus(readings[f"{PUSHED[1]}, load 1.2"], readings[f"{PUSHED[0]}, load 1.2"]), readings)


@claim(
    "aurora.table4.6.qos-per-tuple",
    source="CAR §4.6.1, Table 4.6",
    published=0.28,
    how="QoS per tuple of fixed-priority minus slope-slack, both push-through (0.74, 0.46), in the same runs",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    readings = {
        f"{policy}, load {load:g}": per_tuple(in_overload(trial, policy, load))
        for load in LOADS
        for policy in PUSHED[:2]
    }
    return Measured(minus(readings[f"{PUSHED[0]}, load 1.2"], readings[f"{PUSHED[1]}, load 1.2"]), readings)


def in_storms(trial: Trial, policy: str, idle_only: bool = False, **changes: object) -> list[Found]:
    """The load fluctuates between 60 % and 130 % of the capacity."""
    return runs(trial, Run(fluctuating(trial, **changes), policy, 10, idle_only=idle_only))  # type: ignore[arg-type]


STORM_READINGS: dict[str, dict[str, object]] = {
    "of the ideal capacity": {},
    "of the capacity with call overhead": {"capacity": 1.0 / (5 * (1e-4 + PRICES.call))},
    "Poisson arrivals": {"process": "poisson"},
}


@claim(
    "aurora.fig4.18.average-qos",
    source="CAR §4.6.2, Fig. 4.18-4.19",
    published=0.11,
    how="average QoS of slope-slack minus fixed-priority, both push-through (0.81, 0.70), load 60 % and 130 % in turn",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    readings = {}
    for text, changes in STORM_READINGS.items():
        for policy in PUSHED:
            readings[f"{policy}, {text}"] = qos(in_storms(trial, policy, **changes))
    readings["slope-slack-push, late tuples wait for idle time"] = qos(in_storms(trial, PUSHED[1], idle_only=True))
    slope, fixed = (readings[f"{policy}, of the ideal capacity"] for policy in (PUSHED[1], PUSHED[0]))
    return Measured(minus(slope, fixed), readings)


@claim(
    "aurora.table4.7.missed-in-storms",
    source="CAR §4.6.2, Table 4.7",
    published=0.61,
    how="tuples that came in storms and were late: slope-slack's over fixed-priority's (25,596, 41,965)",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    slope, fixed = (in_storms(trial, policy) for policy in (PUSHED[1], PUSHED[0]))
    ratio = over([each.missed(storm=True) for each in slope], [each.missed(storm=True) for each in fixed])
    readings = {}
    for policy, found in zip((PUSHED[1], PUSHED[0]), (slope, fixed), strict=True):
        for storm in (True, False):
            for tight in (True, False):
                text = f"{policy}, share missed, {'storm' if storm else 'calm'}, {'tight' if tight else 'loose'}"
                readings[text] = [each.share_missed(storm=storm, tight=tight) for each in found]
    return Measured(ratio, readings)


@claim(
    "aurora.fig4.22.loose-kept-in-storms",
    source="CAR §4.6.2, Fig. 4.21-4.22",
    published=0.0,
    how="share of loose applications' tuples that came in storms and were late under slope-slack push-through (nearly all "
    "of them under fixed-priority)",
    low=0.0,
    high=0.1,
)
def _(trial: Trial) -> Measured:
    found = {policy: in_storms(trial, policy) for policy in PUSHED[:2]}
    shares = {name: [each.share_missed(storm=True, tight=False) for each in all_] for name, all_ in found.items()}
    return Measured(shares[PUSHED[1]], shares)


# Second group


@claim(
    "aurora.fig3.3.state-based",
    source="CAR §3.2.3, Fig. 3.3",
    published="one thread per box degrades exponentially, one scheduler linearly",
    how="what the threads of an operating system cost cannot be simulated without assuming the result",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured((), skipped="a claim about threads of an operating system, which simulated time does not have")


def bursty(trial: Trial, burst: int, share: float, cost: float | None = None) -> list[Found]:
    """One tree of fan-out 2 a box at a time, trains of a share of the queue (Fig. 3.9)."""
    changes: dict[str, object] = {} if cost is None else {"cost": cost, "cost_range": None}
    bed = trees(trial, 1, 0.5, fanout=2, burst=burst, **changes)
    return runs(trial, Run(bed, ROBIN, share=share))


def beyond_work(found: Sequence[Found]) -> list[float]:
    """Seconds of run time that were not processing."""
    return [each.outcome.overhead for each in found]


@claim(
    "aurora.fig3.9.flat-without-bursts",
    source="CAR §3.4.4, Fig. 3.9",
    published=1.0,
    how="overhead with trains of the whole queue over that with trains of 0.2 of it, evenly spaced arrivals",
    low=0.95,
    high=1.05,
)
def _(trial: Trial) -> Measured:
    return Measured(over(beyond_work(bursty(trial, 1, 1.0)), beyond_work(bursty(trial, 1, 0.2))))


@claim(
    "aurora.fig3.9.trains-help-bursts",
    source="CAR §3.4.4, Fig. 3.9",
    published="below 1",
    how="overhead with trains of the whole queue over that with trains of 0.2 of it, bursts of 4",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    whole, fifth = (bursty(trial, 4, share) for share in (1.0, 0.2))
    readings = {
        f"mean latency in ms, bursts of {burst}, trains of {share:g}": [1e3 * value for value in latency(found)]
        for burst in (1, 2, 4)
        for share in SHARES
        for found in [bursty(trial, burst, share)]
    }
    return Measured(over(beyond_work(whole), beyond_work(fifth)), readings)


@claim(
    "aurora.fig3.9.bursts-cost",
    source="CAR §3.4.4, Fig. 3.9",
    published=4.0,
    how="latency beyond the processing of a tuple with bursts of 4 over that without, trains of 0.2 of the queue; "
    "accepted where it is larger",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    def waiting(burst: int) -> list[float]:
        found = bursty(trial, burst, 0.2)
        work = [trees(trial, 1, 0.5, fanout=2, seed=seed).work for seed in trial.seeds]
        return minus(latency(found), work)

    return Measured(over(waiting(4), waiting(1)))


def four_trees(trial: Trial, policy: str, process: str = "even") -> list[float]:
    """Overhead of four application trees at full load."""
    return beyond_work(runs(trial, Run(trees(trial, 4, 1.0, process=process), policy)))


@claim(
    "aurora.fig3.10.superboxes-halve",
    source="CAR §3.4.5, Fig. 3.10",
    published=0.5,
    how="overhead (calls and scheduling) of min-cost superboxes over that of a box at a time with trains, four trees at full "
    "load; the thesis gives total times",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    readings = {
        f"{process} arrivals": over(four_trees(trial, "aaat-min-cost", process), four_trees(trial, ROBIN, process))
        for process in ("even", "staggered", "poisson")
    }
    return Measured(readings["even arrivals"], readings)


@claim(
    "aurora.fig3.10.tuples-worst",
    source="CAR §3.4.5, Fig. 3.10",
    published="a tuple at a time is significantly worse",
    how="overhead of a tuple at a time over that of a box at a time with trains, in the same runs",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(over(four_trees(trial, "taat"), four_trees(trial, ROBIN)))


def ten_boxes(trial: Trial, policy: str) -> list[Found]:
    """CAR §4.3.1: ten applications of one box, 8,000 tuples/s that come together, ten for each application."""
    bed = small(trial, 8000.0, applications=10, depth=1, deadlines=(0.01, 0.02), burst=10)
    return runs(trial, Run(bed, policy, 10))


@claim(
    "aurora.fig4.2.both-meet-deadlines",
    source="CAR §4.3.1, Fig. 4.2-4.3",
    published=0.99,
    how="the lower one of the average QoS of fixed-priority and of slope-slack, ten one-box applications, 8,000/s in rounds "
    "of ten tuples each",
    low=0.95,
)
def _(trial: Trial) -> Measured:
    found = {policy: qos(ten_boxes(trial, policy)) for policy in (FIXED, SLOPE)}
    return Measured(least(found.values()), found)


def by_size(trial: Trial, policy: str, make: Callable[..., AuroraWorkload] = small) -> dict[int, list[Found]]:
    """Schedule sizes from 1 to 100 at 1,200 tuples/s."""
    ahead(trial, [Run(make(trial, 1200.0), policy, size) for size in SIZES])
    return {size: runs(trial, Run(make(trial, 1200.0), policy, size)) for size in SIZES}


@claim(
    "aurora.fig4.5.overhead-falls-with-size",
    source="CAR §4.4.1, Fig. 4.5",
    published="falls",
    how="seconds of scheduling at size 100 over those at size 1, the greater one of fixed-priority and slope-slack",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    ratios = []
    for policy in (FIXED, SLOPE):
        found = by_size(trial, policy)
        ratios.append(
            over([each.outcome.scheduling for each in found[100]], [each.outcome.scheduling for each in found[1]])
        )
    return Measured([max(pair) for pair in zip(*ratios, strict=True)])


@claim(
    "aurora.fig4.6.size-has-an-optimum",
    source="CAR §4.4.1, Fig. 4.6",
    published="best near 10, low at 1 and from 20 on",
    how="best average QoS of sizes 2 to 50 minus the better one of sizes 1 and 100, the less of fixed-priority and slope-slack",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    gaps, readings = [], {}
    for policy in (FIXED, SLOPE):
        by = {size: qos(found) for size, found in by_size(trial, policy).items()}
        inner = [max(values) for values in zip(*(by[size] for size in SIZES[1:-1]), strict=True)]
        gaps.append([a - max(b, c) for a, b, c in zip(inner, by[1], by[100], strict=True)])
        readings |= {f"{policy}({size})": values for size, values in by.items()}
    return Measured(least(gaps), readings)


def by_partitions(trial: Trial) -> dict[int, list[Found]]:
    """Bucketing with more and more buckets, a box at a time, a schedule of a tenth of all boxes as in Table 4.2."""
    ahead(trial, [Run(varied(trial), BUCKETS, 100, partitions=count) for count in PARTITIONS])
    return {count: runs(trial, Run(varied(trial), BUCKETS, 100, partitions=count)) for count in PARTITIONS}


@claim(
    "aurora.fig4.12.one-bucket-is-worst",
    source="CAR §4.4.3, Fig. 4.12",
    published=0.42,
    how="average QoS with 20 partitions minus that with one (0.85, 0.43); 200 applications of 5 boxes",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    found = by_partitions(trial)
    readings = {f"{count} partitions": qos(each) for count, each in found.items()}
    readings["slope-slack"] = qos(runs(trial, Run(varied(trial), SLOPE, 100)))
    return Measured(minus(qos(found[20]), qos(found[1])), readings)


@claim(
    "aurora.fig4.12.too-many-buckets",
    source="CAR §4.4.3, Fig. 4.12",
    published="a maximum near 20 partitions, below slope-slack from 260 on",
    how="best average QoS of 2 to 100 partitions minus that of 260",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    found = {count: qos(each) for count, each in by_partitions(trial).items()}
    best = [max(values) for values in zip(*(found[count] for count in PARTITIONS[1:-1]), strict=True)]
    return Measured(minus(best, found[260]))


@claim(
    "aurora.fig4.12.bucketing-above-slope-slack",
    source="CAR §4.4.3, Fig. 4.12",
    published=0.05,
    how="average QoS of bucketing with 20 partitions minus that of slope-slack (0.85, 0.80)",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    return Measured(minus(qos(by_partitions(trial)[20]), qos(runs(trial, Run(varied(trial), SLOPE, 100)))))


@claim(
    "aurora.fig4.13.overhead-grows-with-buckets",
    source="CAR §4.4.3, Fig. 4.13",
    published="grows beyond about 30 partitions",
    how="seconds of scheduling with 260 partitions over those with 20",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    found = by_partitions(trial)
    many, few = ([each.outcome.scheduling for each in found[count]] for count in (260, 20))
    by = {f"{count} partitions": [each.outcome.scheduling for each in all_] for count, all_ in found.items()}
    return Measured(over(many, few), by)


TOPOLOGY_RATES = (1200.0, 1600.0, 1800.0, 2000.0, 2200.0)


@claim(
    "aurora.fig4.25.fan-out-equals-straight",
    source="CAR §4.7, Fig. 4.25-4.26",
    published=0.0,
    how="greatest difference of the average QoS between 10 trees with 8 inputs each and 80 straight queries, over rates and "
    "the three push-through schedulers; a tree merges tuples on the way, so it needs fewer calls",
    high=0.1,
)
def _(trial: Trial) -> Measured:
    differences, readings = [], {}
    for policy in PUSHED:
        for rate in TOPOLOGY_RATES:
            straight, tree = (qos(runs(trial, Run(make(trial, rate), policy, 10))) for make in (unbranched, branching))
            differences.append([abs(each) for each in minus(straight, tree)])
            readings[f"{policy}, {rate:g}/s, straight"] = straight
            readings[f"{policy}, {rate:g}/s, tree"] = tree
    return Measured([max(values) for values in zip(*differences, strict=True)], readings)
