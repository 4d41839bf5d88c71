"""Plots that mirror the figures of FAS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from freshet.reproduce.fas import at, gains, ratios, skewed
from freshet.reproduce.fas_runs import (
    BETAS,
    BURSTY,
    POLICIES,
    SKEWS,
    TRACE_UTILIZATIONS,
    UTILIZATIONS,
    PolicyName,
    Run,
    for_seeds,
    on_traces,
)
from freshet.reproduce.plotting import draw_all, line
from freshet.reproduce.trial import Trial
from freshet.simulation.outcome import Outcome
from freshet.simulation.workloads.traces import trace_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES: Final[dict[PolicyName, str]] = {"fas": "FAS-MCQ", "rb": "RB-MCQ", "rr": "RR", "fcfs": "FCFS"}
STYLES: Final[dict[PolicyName, dict[str, Any]]] = {
    "fas": {"color": "tab:blue", "marker": "o"},
    "rb": {"color": "tab:orange", "marker": "s"},
    "rr": {"color": "tab:green", "marker": "^"},
    "fcfs": {"color": "tab:red", "marker": "v"},
}
Measure = Callable[[Outcome], float]


def plot(trial: Trial, folder: Path) -> None:
    """Writes ``fas_fig3.png`` to ``fas_fig10.png``."""
    figures = {
        "fig3": ("Fig. 3: staleness by utilization", _staleness_by_utilization),
        "fig4": ("Fig. 4: response time by utilization", _response_by_utilization),
        "fig5": ("Fig. 5: response time by beta, utilization 0.95", _response_by_beta),
        "fig6": ("Fig. 6: staleness by beta, utilization 0.95", _staleness_by_beta),
        "fig7": ("Fig. 7: staleness against response time, utilization 0.95", _trade_off),
        "fig8": ("Fig. 8: staleness by skew of selectivity, equal costs", _staleness_by_skew),
        "fig9": ("Fig. 9: staleness by number of bursty streams", _staleness_by_bursts),
    }
    if trace_folder() is not None:
        figures["fig10"] = ("Fig. 10: staleness on real traces", _staleness_on_traces)
    draw_all(trial, folder, "fas", figures)


def _percent(outcome: Outcome) -> float:
    return 100.0 * outcome.staleness


def _milliseconds(outcome: Outcome) -> float:
    return 1000.0 * outcome.response


def _by_utilization(axes: Axes, trial: Trial, measure: Measure) -> None:
    for policy in POLICIES:
        runs = [Run(at(trial, utilization), policy) for utilization in UTILIZATIONS]
        values = [[measure(outcome) for outcome in for_seeds(trial, run)] for run in runs]
        line(axes, UTILIZATIONS, values, NAMES[policy], **STYLES[policy])
    axes.set_xlabel("utilization")


def _staleness_by_utilization(axes: Axes, trial: Trial) -> None:
    _by_utilization(axes, trial, _percent)
    axes.set_ylabel("mean staleness of outputs (%)")


def _response_by_utilization(axes: Axes, trial: Trial) -> None:
    _by_utilization(axes, trial, _milliseconds)
    axes.set_ylabel("mean response time (time units)")
    axes.set_yscale("log")


def _by_beta(axes: Axes, trial: Trial, measure: Measure) -> None:
    values = [[measure(outcome) for outcome in for_seeds(trial, Run(at(trial), "fas", beta))] for beta in BETAS]
    line(axes, BETAS, values, "FAS-MCQ(beta)", **STYLES["fas"])
    rate = [[measure(outcome) for outcome in for_seeds(trial, Run(at(trial), "rb"))]] * len(BETAS)
    line(axes, BETAS, rate, "RB-MCQ", color="tab:orange", linestyle="--")
    axes.set_xlabel("beta")


def _response_by_beta(axes: Axes, trial: Trial) -> None:
    _by_beta(axes, trial, _milliseconds)
    axes.set_ylabel("mean response time (time units)")


def _staleness_by_beta(axes: Axes, trial: Trial) -> None:
    _by_beta(axes, trial, _percent)
    axes.set_ylabel("mean staleness of outputs (%)")


def _trade_off(axes: Axes, trial: Trial) -> None:
    rate = Run(at(trial), "rb")
    points = [("RB-MCQ", rate), *((f"beta {beta:g}", Run(at(trial), "fas", beta)) for beta in BETAS[1:])]
    for label, run in points:
        relative = ratios(trial, run, rate, lambda outcome: outcome.response)
        stale = ratios(trial, run, rate)
        x, y = sum(relative) / len(relative), sum(stale) / len(stale)
        axes.scatter(x, y, color="tab:orange" if run is rate else "tab:blue")
        axes.annotate(label, (x, y), xytext=(6, 4), textcoords="offset points")
    axes.scatter([1.14, 1.23], [0.8, 0.6], color="grey", marker="x", label="published: beta 0.25 and 1")
    axes.set_xlabel("response time relative to RB-MCQ")
    axes.set_ylabel("staleness relative to RB-MCQ")


def _staleness_by_skew(axes: Axes, trial: Trial) -> None:
    for policy in POLICIES:
        runs = [Run(skewed(trial, zipf), policy) for zipf in SKEWS]
        values = [[_percent(outcome) for outcome in for_seeds(trial, run)] for run in runs]
        line(axes, SKEWS, values, NAMES[policy], **STYLES[policy])
    axes.set_xlabel("Zipf parameter (skew toward selectivity 1)")
    axes.set_ylabel("mean staleness of outputs (%)")


def _staleness_by_bursts(axes: Axes, trial: Trial) -> None:
    values = [[1.0 - gain for gain in gains(trial, replace(at(trial), bursty=count))] for count in BURSTY]
    line(axes, BURSTY, values, "FAS-MCQ", **STYLES["fas"])
    axes.scatter([5, 10], [0.60, 0.78], color="grey", marker="x", label="published")
    axes.set_xlabel("bursty streams of 10")
    axes.set_ylabel("staleness relative to RB-MCQ")


def _staleness_on_traces(axes: Axes, trial: Trial) -> None:
    for policy in POLICIES:
        beds = [replace(on_traces(trial), utilization=utilization) for utilization in TRACE_UTILIZATIONS]
        values = [[_percent(outcome) for outcome in for_seeds(trial, Run(bed, policy))] for bed in beds]
        line(axes, TRACE_UTILIZATIONS, values, NAMES[policy], **STYLES[policy])
    axes.set_xlabel("utilization")
    axes.set_ylabel("mean staleness of outputs (%)")
