"""Plots that mirror the figures of FAS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from freshet.plots import plain_numbers
from freshet.reproduce.fas.measures import Measure, at, gains, ratios, response
from freshet.reproduce.fas.runs import (
    BETAS,
    BURSTY,
    POLICIES,
    SKEWS,
    TRACE_UTILIZATIONS,
    UTILIZATIONS,
    FasPolicy,
    FasRun,
    for_seeds,
    on_traces,
)
from freshet.reproduce.fas.streams import skewed
from freshet.reproduce.plotting import PlotTable, draw_all, draw_lines, mark
from freshet.reproduce.trial import Trial
from freshet.simulation.workloads.fas import FasWorkload
from freshet.simulation.workloads.traces import trace_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES: Final[dict[FasPolicy, str]] = {"fas": "FAS-MCQ", "rb": "RB-MCQ", "rr": "RR", "fcfs": "FCFS"}
STALENESS: Final = "mean staleness of outputs (%)"
RESPONSE: Final = "mean response time (time units)"
MEASURES: Final[dict[str, Measure]] = {
    STALENESS: lambda outcome: 100.0 * outcome.staleness,
    RESPONSE: lambda outcome: 1000.0 * outcome.response,
}
"""What is measured, by its label."""
RELATIVE: Final = "staleness relative to RB-MCQ"


def plot(trial: Trial, folder: Path) -> None:
    """Writes ``fas_fig3.png`` to ``fas_fig10.png``."""
    figures: PlotTable = {
        "fig3": ("Fig. 3: staleness by utilization", partial(_by_utilization, measure=STALENESS)),
        "fig4": ("Fig. 4: response time by utilization", partial(_by_utilization, measure=RESPONSE)),
        "fig5": ("Fig. 5: response time by beta, utilization 0.95", partial(_by_beta, measure=RESPONSE)),
        "fig6": ("Fig. 6: staleness by beta, utilization 0.95", partial(_by_beta, measure=STALENESS)),
        "fig7": ("Fig. 7: staleness against response time, utilization 0.95", _trade_off),
        "fig8": ("Fig. 8: staleness by skew of selectivity, equal costs", _by_skew),
        "fig9": ("Fig. 9: staleness by number of bursty streams", _by_bursts),
    }
    if trace_folder() is not None:
        figures = {**figures, "fig10": ("Fig. 10: staleness on real traces", _on_traces)}
    draw_all(trial, folder, "fas", figures)


def _measured(trial: Trial, run: FasRun, measure: str) -> list[float]:
    return [MEASURES[measure](outcome) for outcome in for_seeds(trial, run)]


def _by_policy(
    axes: Axes, trial: Trial, places: Sequence[float], bed: Callable[[float], FasWorkload], measure: str = STALENESS
) -> None:
    lines = {
        NAMES[policy]: [_measured(trial, FasRun(bed(place), policy), measure) for place in places]
        for policy in POLICIES
    }  # fmt: skip
    axes.set_ylabel(measure)
    draw_lines(axes, places, lines)


def _by_utilization(axes: Axes, trial: Trial, measure: str) -> None:
    axes.set(xlabel="utilization", yscale="log" if measure == RESPONSE else "linear")
    _by_policy(axes, trial, UTILIZATIONS, partial(at, trial), measure)


def _by_skew(axes: Axes, trial: Trial) -> None:
    axes.set_xlabel("Zipf parameter (skew toward selectivity 1)")
    _by_policy(axes, trial, SKEWS, partial(skewed, trial))


def _on_traces(axes: Axes, trial: Trial) -> None:
    axes.set_xlabel("utilization")
    _by_policy(axes, trial, TRACE_UTILIZATIONS, lambda place: replace(on_traces(trial), utilization=place))


def _by_beta(axes: Axes, trial: Trial, measure: str) -> None:
    tuned = [_measured(trial, FasRun(at(trial), "fas", beta), measure) for beta in BETAS]
    rate = _measured(trial, FasRun(at(trial), "rb"), measure)
    axes.set(xlabel="beta", ylabel=measure)
    draw_lines(axes, BETAS, {"FAS-MCQ(beta)": tuned, "RB-MCQ": [rate] * len(BETAS)})


def _trade_off(axes: Axes, trial: Trial) -> None:
    rate = FasRun(at(trial), "rb")
    for beta in BETAS:
        run = FasRun(at(trial), "fas", beta) if beta else rate
        place, value = (
            sum(each) / len(each) for each in (ratios(trial, run, rate, response), ratios(trial, run, rate))
        )
        mark(axes, place, value, f"beta {beta:g}" if beta else "RB-MCQ", 0 if beta else 1)
    mark(axes, 1.14, 0.8, "published: beta 0.25")
    mark(axes, 1.23, 0.6, "published: beta 1")
    axes.set(xlabel="response time relative to RB-MCQ", ylabel=RELATIVE)
    plain_numbers(axes)


def _by_bursts(axes: Axes, trial: Trial) -> None:
    # The second mark lies on our line, where its label could not be read.
    for count, value, label in ((5, 0.60, "published"), (10, 0.78, "")):
        mark(axes, count, value, label)
    axes.set(xlabel="bursty streams of 10", ylabel=RELATIVE)
    ours = [[1.0 - gain for gain in gains(trial, replace(at(trial), bursty=count))] for count in BURSTY]
    draw_lines(axes, BURSTY, {"FAS-MCQ": ours})
