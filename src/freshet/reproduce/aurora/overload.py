"""Claims of CAR §4.6: sustained overload and fluctuating load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from freshet.reproduce.aurora.measures import PUSHED, minus, over
from freshet.reproduce.aurora.runs import PRICES, AuroraResult, AuroraRun, fluctuating, overloaded, qos, runs
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.simulation.workloads.aurora import Process

LOADS: Final = (0.8, 0.9, 1.0, 1.2, 1.5)


def in_overload(trial: Trial, policy: str, load: float = 1.2, idle_only: bool = False) -> list[AuroraResult]:
    """One application gets half of all tuples."""
    return runs(trial, AuroraRun(overloaded(trial, load), policy, 10, idle_only=idle_only))


def per_tuple(found: Sequence[AuroraResult]) -> list[float]:
    """QoS over all tuples, for each seed."""
    return [each.outcome.qos.per_tuple for each in found]


@claim(
    "aurora.table4.6.average-qos",
    source="CAR §4.6.1, Table 4.6",
    published=0.25,
    how="average QoS of slope-slack minus fixed-priority, both push-through (0.90, 0.65), one application overloaded: "
    "half of all tuples, 1.2 times the ideal capacity; readings: other loads, and late tuples that wait for idle time",
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


def in_storms(
    trial: Trial, policy: str, *, capacity: float | None = None, process: Process = "even", idle_only: bool = False
) -> list[AuroraResult]:
    """The load fluctuates between 60 % and 130 % of the capacity."""
    bed = replace(fluctuating(trial, capacity), process=process)
    return runs(trial, AuroraRun(bed, policy, 10, idle_only=idle_only))


STORM_READINGS: Final[dict[str, tuple[float | None, Process]]] = {
    "of the ideal capacity": (None, "even"),
    "of the capacity with call overhead": (1.0 / (5 * (1e-4 + PRICES.call)), "even"),
    "Poisson arrivals": (None, "poisson"),
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
    for text, (capacity, process) in STORM_READINGS.items():
        for policy in PUSHED:
            readings[f"{policy}, {text}"] = qos(in_storms(trial, policy, capacity=capacity, process=process))
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
    how="share of loose applications' tuples that came in storms and were late under slope-slack push-through (nearly "
    "all of them under fixed-priority)",
    low=0.0,
    high=0.1,
)
def _(trial: Trial) -> Measured:
    found = {policy: in_storms(trial, policy) for policy in PUSHED[:2]}
    shares = {name: [each.share_missed(storm=True, tight=False) for each in all_] for name, all_ in found.items()}
    return Measured(shares[PUSHED[1]], shares)
