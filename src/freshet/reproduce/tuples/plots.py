"""Plots that mirror the figures of WU §4.9.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from freshet.reproduce.plotting import PlotTable, draw_all, draw_lines
from freshet.reproduce.trial import Trial
from freshet.reproduce.tuples.claims import DD_FACTORS, PD_FACTORS, SHARING, VARIANCES, by_strategy, of_family
from freshet.reproduce.tuples.claims_inputs import ScoresBySetting, by_bias, by_delay, by_load
from freshet.reproduce.tuples.runs import STRATEGIES, TupleRun, bed, scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORE = "score (Eq. 4.3)"


def plot(trial: Trial, folder: Path) -> None:
    """Writes ``tuples_fig4.6.png`` to ``tuples_fig4.13.png``; Fig. 4.8 is four figures, which the claims tell."""
    figures: PlotTable = {
        "fig4.6": ("Fig. 4.6: the factor of the last ditch (DD)", partial(_by_factor, word="dd", factors=DD_FACTORS)),
        "fig4.7": ("Fig. 4.7: the factor of the last ditch (PD)", partial(_by_factor, word="pd", factors=PD_FACTORS)),
        "fig4.9": ("Fig. 4.9: operator sharing", _by_sharing),
        "fig4.10": ("Fig. 4.10: query weight variance", _by_variance),
        "fig4.11": ("Fig. 4.11: response to load", partial(_by_input, found=by_load, label="load")),
        "fig4.12": ("Fig. 4.12: response to urgency", partial(_by_input, found=by_delay, label="delay (s)")),
        "fig4.13": ("Fig. 4.13: response to bias", partial(_by_input, found=by_bias, label="bias b")),
    }
    draw_all(trial, folder, "tuples", figures)


def _by_factor(axes: Axes, trial: Trial, word: str, factors: Sequence[float]) -> None:
    made = bed(trial)
    lines = {name: [scores(trial, TupleRun(made, name, u)) for u in factors] for name in of_family(word)}
    axes.set(xlabel="u", ylabel=SCORE, xscale="log")
    draw_lines(axes, factors, lines)


def _by_input(axes: Axes, trial: Trial, found: Callable[[Trial], ScoresBySetting], label: str) -> None:
    every = found(trial)
    axes.set(xlabel=label, ylabel=SCORE)
    draw_lines(axes, list(every), {name: [each[name] for each in every.values()] for name in STRATEGIES})


def _by_sharing(axes: Axes, trial: Trial) -> None:
    every = [by_strategy(trial, bed(trial, queries=queries, operators=operators)) for queries, operators in SHARING]
    axes.set(xlabel="queries per operator", ylabel=SCORE)
    ratios = [queries / operators for queries, operators in SHARING]
    draw_lines(axes, ratios, {name: [each[name] for each in every] for name in STRATEGIES})


def _by_variance(axes: Axes, trial: Trial) -> None:
    every = [
        by_strategy(trial, bed(trial, weights=weights, extremes=extremes)) for weights, extremes in VARIANCES.values()
    ]
    axes.set(xlabel="weights (0: equal, 3: 1 or 10 tenths)", ylabel=SCORE)
    draw_lines(axes, range(len(VARIANCES)), {name: [each[name] for each in every] for name in STRATEGIES})
