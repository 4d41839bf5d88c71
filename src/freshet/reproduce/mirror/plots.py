"""Plots that mirror the figures of CAR chapter 2 and §6.2."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from freshet.mirror.curve import budget_curve, budget_for_share
from freshet.mirror.simulator import Alignment
from freshet.reproduce.mirror.claims import heuristics, ideals, seeded, shares
from freshet.reproduce.mirror.runs import (
    BIG_GROUPS,
    GROUPS,
    ITERATIONS,
    PARTITIONINGS,
    SINCE,
    THETAS,
    AllocationRun,
    IdealRun,
    WayBackRun,
    big,
    by_allocation,
    ideal,
    small,
    way_back,
)
from freshet.reproduce.plotting import PlotTable, draw_all, draw_lines, mark
from freshet.reproduce.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PERCEIVED: Final = "perceived freshness"
SHARE: Final = "share of the optimum"
FACTORS: Final = (0.04, 0.1, 0.2, 0.4, 1.0, 2.0, 4.0, 10.0)
"""Budgets, as multiples of that of Table 2.2."""


def plot(trial: Trial, folder: Path) -> None:
    """Writes ``mirror_fig2.3a.png`` to ``mirror_fig6.1.png``."""
    figures: PlotTable = {
        "fig2.3a": ("Fig. 2.3(a): shuffled change rates", partial(_by_skew, rates="shuffled")),
        "fig2.3b": ("Fig. 2.3(b): aligned change rates", partial(_by_skew, rates="aligned")),
        "fig2.3c": ("Fig. 2.3(c): reversed change rates", partial(_by_skew, rates="reverse")),
        "fig2.5": ("Fig. 2.5(a): four partitionings, shuffled", _by_partitions),
        "fig2.7": ("Fig. 2.7: four partitionings, the big case", _big),
        "fig2.8": ("Fig. 2.8: PF-partitioning cleaned up by k-means, the big case", _by_iterations),
        "fig2.11": ("Fig. 2.11: equal frequencies (FFA) or equal bandwidth (FBA)", _by_allocation),
        "faster": ("The way back: 5 % of the elements change 50 times faster", partial(_way_back, drift="faster")),
        "slower": ("The way back: elements that nobody polls slow down", partial(_way_back, drift="slower")),
        "fig6.1": ("Fig. 6.1: how much budget buys how much freshness", _by_budget),
    }
    draw_all(trial, folder, "mirror", figures)


def _by_skew(axes: Axes, trial: Trial, rates: Alignment) -> None:
    axes.set(xlabel="skew of the worth (theta)", ylabel=PERCEIVED)
    lines = {
        "plan for perceived\nfreshness": [ideals(trial, theta, rates) for theta in THETAS],
        "plan for general\nfreshness": [ideals(trial, theta, rates, "GF") for theta in THETAS],
    }
    draw_lines(axes, THETAS, lines)


def _by_partitions(axes: Axes, trial: Trial) -> None:
    beds = seeded(trial, lambda seed: small(1.0, "shuffled", seed))
    best = ideals(trial, 1.0)
    axes.set(xlabel="partitions", ylabel=SHARE, xscale="log")
    lines = {key: [shares(heuristics(trial, beds, key, n), best) for n in GROUPS] for key in PARTITIONINGS}
    draw_lines(axes, GROUPS, lines)


def _big(axes: Axes, trial: Trial) -> None:
    beds = seeded(trial, lambda seed: big(trial, seed))
    best = trial.map(ideal, [IdealRun(bed) for bed in beds])
    axes.set(xlabel="partitions", ylabel=SHARE, xscale="log")
    lines = {key: [shares(heuristics(trial, beds, key, n), best) for n in BIG_GROUPS] for key in PARTITIONINGS}
    draw_lines(axes, BIG_GROUPS, lines)


def _by_iterations(axes: Axes, trial: Trial) -> None:
    beds = seeded(trial, lambda seed: big(trial, seed))
    best = trial.map(ideal, [IdealRun(bed) for bed in beds])
    axes.set(xlabel="iterations of k-means", ylabel=SHARE)
    lines = {
        f"{groups} partitions": [shares(heuristics(trial, beds, "PF", groups, n), best) for n in ITERATIONS]
        for groups in BIG_GROUPS[:3]
    }
    draw_lines(axes, ITERATIONS, lines)


def _by_allocation(axes: Axes, trial: Trial) -> None:
    axes.set(xlabel="partitions", ylabel=SHARE, xscale="log")
    lines = {
        share: [trial.map(by_allocation, [AllocationRun(share, n, seed) for seed in trial.seeds]) for n in GROUPS]
        for share in ("FBA", "FFA")
    }
    draw_lines(axes, GROUPS, lines)


def _way_back(axes: Axes, trial: Trial, drift: Literal["faster", "slower"]) -> None:
    """The course of perceived freshness after some rates have changed."""
    axes.set(xlabel="polls per element since the change", ylabel="share of what known rates reach")
    cases = {
        "learned": WayBackRun(drift),
        "changes over time": WayBackRun(drift, naive=True),
        "no exploration": WayBackRun(drift, exploration=0.0),
    }
    lines = {}
    for name, case in cases.items():
        found = trial.map(way_back, [replace(case, seed=seed) for seed in trial.seeds])
        lines[name] = [list(values) for values in zip(*found, strict=True)]
    draw_lines(axes, SINCE, lines)


def _by_budget(axes: Axes, trial: Trial) -> None:
    """The curve for Table 2.2, theta 1, and the least budget that buys 95 % of what the table's budget buys."""
    beds = seeded(trial, lambda seed: small(1.0, "shuffled", seed))
    budgets = [factor * beds[0].syncs for factor in FACTORS]
    curves = [budget_curve(bed.elements(), budgets) for bed in beds]
    axes.set(xlabel="budget (polls per period, 500 elements, 1,000 changes)", ylabel=PERCEIVED, xscale="log")
    little = budget_for_share(beds[0].elements(), beds[0].syncs)
    fresh = budget_curve(beds[0].elements(), [little])[0].perceived
    mark(axes, little, fresh, f"{little:.0f} polls buy 95 % of what 250 buy", side="left")
    draw_lines(axes, budgets, {"optimal plan": [[point.perceived for point in at] for at in zip(*curves, strict=True)]})
