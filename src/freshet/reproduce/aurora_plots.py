"""Plots that mirror figures of CAR ch. 3 and 4."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from freshet.reproduce.aurora_measures import FIXED, LARGE_SIZE, PUSHED, ROBIN, SLOPE
from freshet.reproduce.aurora_runs import (
    CAPACITIES,
    COSTS,
    LARGE_RATES,
    PARTITIONS,
    RATES,
    SIZES,
    Run,
    deep,
    large,
    latency,
    qos,
    runs,
    small,
    trees,
    varied,
)
from freshet.reproduce.plotting import Figures, draw_all, line
from freshet.reproduce.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE: Final[dict[str, Any]] = {"marker": "o", "markersize": 4}


def plot(trial: Trial, folder: Path) -> None:
    """Writes ``aurora_fig3.6.png`` and so on."""
    figures: Figures = {
        "fig3.6": ("Fig. 3.6: latency by load, five application trees", _latency_by_load),
        "fig3.7": ("Fig. 3.7: latency by the cost of a box", _latency_by_cost),
        "fig4.4": ("Fig. 4.4 and 4.14(a): average QoS by rate, 20 queries of 5 boxes", _small),
        "fig4.6": ("Fig. 4.6: average QoS by schedule size, 1,200 tuples/s", _sizes),
        "fig4.12": ("Fig. 4.12: average QoS by partitions", _partitions),
        "fig4.14b": ("Fig. 4.14(b): average QoS by rate, 20 queries of 20 boxes", _deep),
        "fig4.15": ("Fig. 4.15: average QoS by rate, 10,000 boxes", _large),
    }
    draw_all(trial, folder, "aurora", figures)


def _latency_by_load(axes: Axes, trial: Trial) -> None:
    for policy, label in ((ROBIN, "a box at a time"), ("aaat-min-cost", "application trees")):
        found = [runs(trial, Run(trees(trial, 5, capacity), policy)) for capacity in CAPACITIES]
        line(axes, CAPACITIES, [[1e3 * value for value in latency(each)] for each in found], label, **STYLE)
    axes.set(xlabel="share of the ideal capacity", ylabel="mean latency (ms)", yscale="log")


def _latency_by_cost(axes: Axes, trial: Trial) -> None:
    for name in ("min-cost", "min-latency"):
        beds = [trees(trial, 1, 0.5, cost_range=None, cost=cost, process="even") for cost in COSTS]
        found = [latency(runs(trial, Run(bed, f"aaat-{name}"))) for bed in beds]
        line(axes, [1e6 * cost for cost in COSTS], [[1e3 * value for value in each] for each in found], name, **STYLE)
    axes.set(xlabel="cost of a box (µs per tuple)", ylabel="mean latency (ms)", xscale="log", yscale="log")


def _small(axes: Axes, trial: Trial) -> None:
    for policy in (ROBIN, FIXED, SLOPE, *PUSHED[:2]):
        size = None if policy == ROBIN else 10
        line(axes, RATES, [qos(runs(trial, Run(small(trial, rate), policy, size))) for rate in RATES], policy, **STYLE)
    axes.set(xlabel="tuples/s", ylabel="average QoS")


def _deep(axes: Axes, trial: Trial) -> None:
    for policy in (FIXED, SLOPE, *PUSHED[:2]):
        line(axes, RATES, [qos(runs(trial, Run(deep(trial, rate), policy, 10))) for rate in RATES], policy, **STYLE)
    axes.set(xlabel="tuples/s", ylabel="average QoS")


def _sizes(axes: Axes, trial: Trial) -> None:
    for policy in (FIXED, SLOPE):
        line(axes, SIZES, [qos(runs(trial, Run(small(trial), policy, size))) for size in SIZES], policy, **STYLE)
    axes.set(xlabel="schedule size", ylabel="average QoS", xscale="log")


def _partitions(axes: Axes, trial: Trial) -> None:
    found = [qos(runs(trial, Run(varied(trial), "bucketing", 100, partitions=count))) for count in PARTITIONS]
    line(axes, PARTITIONS, found, "bucketing", **STYLE)
    slope = qos(runs(trial, Run(varied(trial), SLOPE, 100)))
    line(axes, PARTITIONS, [slope] * len(PARTITIONS), SLOPE, **STYLE)
    axes.set(xlabel="partitions of slope and of slack", ylabel="average QoS", xscale="log")


def _large(axes: Axes, trial: Trial) -> None:
    for policy in PUSHED:
        every = [Run(large(trial, rate), policy, LARGE_SIZE, partitions=7) for rate in LARGE_RATES]
        line(axes, LARGE_RATES, [qos(runs(trial, run)) for run in every], policy, **STYLE)
    axes.set(xlabel="tuples/s", ylabel="average QoS")
