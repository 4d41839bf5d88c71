"""Plots that mirror the figures of RT §4.1 and §5."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from freshet.reproduce.plotting import PlotTable, draw_all, draw_lines
from freshet.reproduce.rtstream.estimates import SHARES, SIZES, WINDOWS, errors, probes, selections
from freshet.reproduce.rtstream.management import LOADS, SWINGS, quality, swung
from freshet.reproduce.rtstream.runs import MANAGERS, Manager, runs
from freshet.reproduce.rtstream.sampling import SamplingRun
from freshet.reproduce.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PERCENT = [100.0 * load for load in LOADS]


def plot(trial: Trial, folder: Path) -> None:
    """Writes ``rtstream_fig3b.png`` and so on."""
    figures: PlotTable = {
        "fig3b": ("Fig. 3b: a selection by its selectivity", _selection),
        "fig4": ("Fig. 4: a join by the size of its windows", _join),
        "fig8": ("Fig. 8: error of a selectivity, 1/10 of 1000 tuples sampled", _selectivity),
        "fig9b": ("Fig. 9b: error of the time of a selection, a join and an aggregate", _time),
        "fig10a": ("Fig. 10a: quality by load", _quality),
        "fig10b": ("Fig. 10b: deviation of the quality by load", _deviation),
        "fig10c": ("Fig. 10c: quality where the load swings around 120 %", _swings),
    }
    draw_all(trial, folder, "rtstream", figures)


def _selection(axes: Axes, trial: Trial) -> None:
    axes.set(xlabel="selectivity", ylabel="us per tuple")
    draw_lines(axes, SHARES, {"compiled kernel": [[each / 0.04 for each in some] for some in selections(trial)]})


def _join(axes: Axes, trial: Trial) -> None:
    axes.set(xlabel="tuples of each window", ylabel="us per tuple", xscale="log")
    draw_lines(axes, SIZES, {"compiled kernel": [[each * 1e6 for each in some] for some in probes(trial)]})


def _selectivity(axes: Axes, trial: Trial) -> None:
    found = [errors(trial, SamplingRun(share=share)) for share in SHARES]
    axes.set(xlabel="selectivity", ylabel="standard deviation of its estimate")
    draw_lines(axes, SHARES, {"absolute": [[each.selectivity for each in some] for some in found]})


def _time(axes: Axes, trial: Trial) -> None:
    axes.set(xlabel="tuples of the window", ylabel="relative error of the time")
    lines = {
        f"selection sampled {text}": [
            [each.time for each in errors(trial, SamplingRun("select-join-sum", rows, sampled=share))]
            for rows in WINDOWS
        ]
        for text, share in (("1/10", 0.1), ("4/13", 4 / 13))
    }
    draw_lines(axes, WINDOWS, lines)


def _quality(axes: Axes, trial: Trial) -> None:
    axes.set(xlabel="load, %", ylabel="mean quality", ylim=(0.0, 1.05))
    draw_lines(axes, PERCENT, {each: [quality(runs(trial, each, load)) for load in LOADS] for each in MANAGERS})


def _deviation(axes: Axes, trial: Trial) -> None:
    axes.set(xlabel="load, %", ylabel="standard deviation of the quality", ylim=(0.0, None))
    lines: dict[str, list[list[float]]] = {
        each: [[one.deviation for one in runs(trial, each, load)] for load in LOADS] for each in MANAGERS
    }
    draw_lines(axes, PERCENT, lines)


def _swings(axes: Axes, trial: Trial) -> None:
    axes.set(xlabel="seconds in which the rate goes up and down once", ylabel="mean quality", ylim=(0.0, 1.05))
    both: tuple[Manager, ...] = ("dynamic", "feedback")
    lines: dict[str, list[list[float]]] = {each: [swung(trial, each, swing) for swing in SWINGS] for each in both}
    draw_lines(axes, SWINGS, lines)
