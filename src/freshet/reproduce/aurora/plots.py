"""Plots that mirror figures of CAR ch. 3 and 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from freshet.reproduce.aurora.measures import BUCKETS, FIXED, PUSHED, ROBIN, SLOPE
from freshet.reproduce.aurora.runs import (
    CAPACITIES,
    COSTS,
    LARGE_RATES,
    PARTITIONS,
    RATES,
    SIZES,
    AuroraRun,
    deep,
    latency,
    qos,
    runs,
    small,
    trees,
    varied,
)
from freshet.reproduce.aurora.scale import large_runs
from freshet.reproduce.plotting import PlotTable, draw_all, draw_lines
from freshet.reproduce.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RunLines = Mapping[str, Sequence[AuroraRun]]
"""The runs of each line, by its label."""


def plot(trial: Trial, folder: Path) -> None:
    """Writes ``aurora_fig3.6.png`` and so on."""
    figures: PlotTable = {
        "fig3.6": ("Fig. 3.6: latency by load, five application trees", _latency_by_load),
        "fig3.7": ("Fig. 3.7: latency by the cost of a box", _latency_by_cost),
        "fig4.4": ("Fig. 4.4 and 4.14(a): average QoS by rate, 20 queries of 5 boxes", _small),
        "fig4.6": ("Fig. 4.6: average QoS by schedule size, 1,200 tuples/s", _sizes),
        "fig4.12": ("Fig. 4.12: average QoS by partitions", _partitions),
        "fig4.14b": ("Fig. 4.14(b): average QoS by rate, 20 queries of 20 boxes", _deep),
        "fig4.15": ("Fig. 4.15: average QoS by rate, 10,000 boxes", _large),
    }
    draw_all(trial, folder, "aurora", figures)


def _latency(axes: Axes, trial: Trial, places: Sequence[float], lines: RunLines) -> None:
    def milliseconds(run: AuroraRun) -> list[float]:
        return [1e3 * value for value in latency(runs(trial, run))]

    axes.set(ylabel="mean latency (ms)", yscale="log")
    draw_lines(axes, places, {label: [milliseconds(run) for run in every] for label, every in lines.items()})


def _qos(axes: Axes, trial: Trial, places: Sequence[float], lines: RunLines) -> None:
    axes.set(ylabel="average QoS")
    draw_lines(axes, places, {label: [qos(runs(trial, run)) for run in every] for label, every in lines.items()})


def _latency_by_load(axes: Axes, trial: Trial) -> None:
    policies = {"a box at a time": ROBIN, "application trees": "aaat-min-cost"}
    beds = [trees(trial, 5, capacity) for capacity in CAPACITIES]
    axes.set(xlabel="share of the ideal capacity")
    _latency(
        axes, trial, CAPACITIES, {label: [AuroraRun(bed, name) for bed in beds] for label, name in policies.items()}
    )


def _latency_by_cost(axes: Axes, trial: Trial) -> None:
    beds = [trees(trial, 1, 0.5, cost_range=None, cost=cost, process="even") for cost in COSTS]
    lines = {name: [AuroraRun(bed, f"aaat-{name}") for bed in beds] for name in ("min-cost", "min-latency")}
    axes.set(xlabel="cost of a box (µs per tuple)", xscale="log")
    _latency(axes, trial, [1e6 * cost for cost in COSTS], lines)


def _small(axes: Axes, trial: Trial) -> None:
    sizes = {ROBIN: None, FIXED: 10, SLOPE: 10, PUSHED[0]: 10, PUSHED[1]: 10}
    lines = {policy: [AuroraRun(small(trial, rate), policy, size) for rate in RATES] for policy, size in sizes.items()}
    axes.set(xlabel="tuples/s")
    _qos(axes, trial, RATES, lines)


def _deep(axes: Axes, trial: Trial) -> None:
    policies = (FIXED, SLOPE, *PUSHED[:2])
    axes.set(xlabel="tuples/s")
    _qos(axes, trial, RATES, {each: [AuroraRun(deep(trial, rate), each, 10) for rate in RATES] for each in policies})


def _sizes(axes: Axes, trial: Trial) -> None:
    lines = {policy: [AuroraRun(small(trial), policy, size) for size in SIZES] for policy in (FIXED, SLOPE)}
    axes.set(xlabel="schedule size", xscale="log")
    _qos(axes, trial, SIZES, lines)


def _partitions(axes: Axes, trial: Trial) -> None:
    bed = varied(trial)
    lines = {
        BUCKETS: [AuroraRun(bed, BUCKETS, 100, partitions=count) for count in PARTITIONS],
        SLOPE: [AuroraRun(bed, SLOPE, 100)] * len(PARTITIONS),
    }
    axes.set(xlabel="partitions of slope and of slack", xscale="log")
    _qos(axes, trial, PARTITIONS, lines)


def _large(axes: Axes, trial: Trial) -> None:
    axes.set(xlabel="tuples/s")
    _qos(axes, trial, LARGE_RATES, {policy: large_runs(trial, policy) for policy in PUSHED})
