"""Plots that mirror figures of CAR ch. 3 and 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from freshet.reproduce.aurora.measures import BUCKETS, FIXED, PUSHED, ROBIN, SLOPE, least
from freshet.reproduce.aurora.overlap import DEPTH, OVERLAPS, PLOTTED, SELECTIONS, by_overlap
from freshet.reproduce.aurora.overload import HEAVIES, LOADS, in_storms, leads
from freshet.reproduce.aurora.runs import (
    CAPACITIES,
    CHAPTER_3,
    COSTS,
    LARGE_RATES,
    PARTITIONS,
    RATES,
    SHARES,
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
from freshet.reproduce.aurora.superboxes import average_overhead, tree_runs
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
        "fig3.9": ("Fig. 3.9: average overhead by the size of trains", _by_trains),
        "fig4.4": ("Fig. 4.4 and 4.14(a): average QoS by rate, 20 queries of 5 boxes", _small),
        "fig4.6": ("Fig. 4.6: average QoS by schedule size, 1,200 tuples/s", _sizes),
        "fig4.12": ("Fig. 4.12: average QoS by partitions", _partitions),
        "fig4.14b": ("Fig. 4.14(b): average QoS by rate, 20 queries of 20 boxes", _deep),
        "fig4.15": ("Fig. 4.15: average QoS by rate, 10,000 boxes", _large),
        "table4.6": ("Table 4.6: where both published orders come out", _sustained_overload),
        "fig4.19": ("Fig. 4.19: QoS of each 1,000 tuples, load 60 % and 130 % in turn", _storms),
        "sec6.3.5": ("§6.3.5: overhead by the degree of overlap, ten queries of five boxes", _overlap),
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
    axes.set(xlabel="share of the ideal capacity")
    _latency(axes, trial, CAPACITIES, {label: tree_runs(trial, name) for label, name in policies.items()})


def _latency_by_cost(axes: Axes, trial: Trial) -> None:
    beds = [trees(trial, 1, 0.5, cost_range=None, cost=cost, process="even") for cost in COSTS]
    names = ("min-cost", "min-latency")
    lines = {name: [AuroraRun(bed, f"aaat-{name}", prices=CHAPTER_3) for bed in beds] for name in names}
    axes.set(xlabel="cost of a box (µs per tuple)", xscale="log")
    _latency(axes, trial, [1e6 * cost for cost in COSTS], lines)


def _by_trains(axes: Axes, trial: Trial) -> None:
    lines = {
        f"bursts of {burst}": [[1e3 * value for value in average_overhead(trial, burst, share)] for share in SHARES]
        for burst in (1, 2, 4)
    }
    axes.set(xlabel="train, as a share of the queue", ylabel="latency beyond processing (ms)")
    draw_lines(axes, SHARES, lines)


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


def _sustained_overload(axes: Axes, trial: Trial) -> None:
    """A line for each share of the overloaded application: the smaller one of both leads; above 0 both orders hold."""
    lines = {
        f"share {heavy:g}": [least(leads(trial, load, heavy)) for load in LOADS] for heavy in HEAVIES
    }  # fmt: skip
    leading = "the smaller lead\n(slope-slack's in average QoS,\nfixed-priority's per tuple)"
    axes.set(xlabel="load, as a share of the ideal capacity", ylabel=leading)
    axes.axhline(0.0, color="#888888", linewidth=0.8)
    draw_lines(axes, LOADS, lines)


def _storms(axes: Axes, trial: Trial) -> None:
    found = {policy: [each.recent for each in in_storms(trial, policy)] for policy in PUSHED[:2]}
    count = min(len(each) for every in found.values() for each in every)
    lines = {policy: [[each[place][1] for each in every] for place in range(count)] for policy, every in found.items()}
    axes.set(xlabel="tuples put out (thousands)", ylabel="QoS of 1,000 tuples")
    draw_lines(axes, range(1, count + 1), lines)


def _overlap(axes: Axes, trial: Trial) -> None:
    lines = {
        label: [[1e3 * each.overhead for each in found] for found in by_overlap(trial, label)]
        for label in list(SELECTIONS)[:PLOTTED]
    }
    axes.set(xlabel="common boxes, as a share of all", ylabel="overhead per output tuple (ms)")
    draw_lines(axes, [count / DEPTH for count in OVERLAPS], lines)
