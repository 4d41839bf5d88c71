"""Claims of WU §4.9.2.4: how strategies respond to load, urgency and bursts."""

from __future__ import annotations

from typing import Final

from freshet.reproduce.aurora.measures import mean, minus
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.reproduce.tuples.claims import by_strategy, of_family
from freshet.reproduce.tuples.runs import STRATEGIES, bed

LOADS: Final = (0.7, 1.0, 1.3, 1.6)
DELAYS: Final = (0.0, 1.5, 3.0)
BIASES: Final = (0.5, 0.7, 0.9)
INPUT: Final = "24 queries, 40 operators, streams by the b-model"
Found = dict[float, dict[str, list[float]]]


def by_load(trial: Trial) -> Found:
    """Scores by load."""
    return {load: by_strategy(trial, bed(trial, process="b-model", load=load)) for load in LOADS}


def by_delay(trial: Trial) -> Found:
    """Scores by the seconds between event time and arrival."""
    return {delay: by_strategy(trial, bed(trial, process="b-model", delay=delay)) for delay in DELAYS}


def by_bias(trial: Trial) -> Found:
    """Scores by the bias of the b-model."""
    return {bias: by_strategy(trial, bed(trial, process="b-model", bias=bias)) for bias in BIASES}


def falls(found: Found) -> dict[str, list[float]]:
    """By how much each strategy falls from the first setting to the last."""
    first, *_, last = found.values()
    return {name: minus(first[name], last[name]) for name in STRATEGIES}


def readings(found: Found, text: str) -> dict[str, list[float]]:
    """All scores, by strategy and setting."""
    return {f"{name}, {text} {place:g}": each[name] for place, each in found.items() for name in STRATEGIES}


@claim(
    "tuples.fig4.11.opt-profit-falls-least",
    source="WU §4.9.2.4, Fig. 4.11",
    published="graceful degradation",
    how="by how much the three basic strategies fall in the mean from a load of 0.7 to 1.6, minus that of the three "
    f"opt-profit ones; {INPUT}",
    low=0.0001,
)
def _(trial: Trial) -> Measured:
    found = by_load(trial)
    fall = falls(found)
    basic, opt = (mean([fall[name] for name in of_family(word)]) for word in ("basic", "opt-profit"))
    return Measured(minus(basic, opt), readings(found, "load"))


@claim(
    "tuples.fig4.12.deadline-aware-fall-less",
    source="WU §4.9.2.4, Fig. 4.12",
    published="do not degrade as much",
    how="by how much the two greedy strategies fall in the mean from no delay to one of 3 s, minus that of the four "
    f"deadline-aware ones; load 1.1, {INPUT}",
    low=0.0001,
)
def _(trial: Trial) -> Measured:
    found = by_delay(trial)
    fall = falls(found)
    aware = [fall[name] for word in ("dd", "pd") for name in of_family(word)]
    return Measured(minus(mean([fall["basic"], fall["opt-profit"]]), mean(aware)), readings(found, "delay"))


@claim(
    "tuples.fig4.13.bursts-help",
    source="WU §4.9.2.4, Fig. 4.13",
    published="scores increase when b becomes larger",
    how=f"mean score of all six strategies at a bias of 0.9 minus that at 0.5; load 1.1, {INPUT}",
    low=0.0001,
)
def _(trial: Trial) -> Measured:
    found = by_bias(trial)
    even, burst = (mean([found[bias][name] for name in STRATEGIES]) for bias in (BIASES[0], BIASES[-1]))
    return Measured(minus(burst, even), readings(found, "bias"))


@claim(
    "tuples.fig4.13.opt-profit-pd-best",
    source="WU §4.9.2.4, Fig. 4.13",
    published="the best choice",
    how="mean score of opt-profit-pd over biases of 0.5, 0.7 and 0.9 minus the highest of the other five; load 1.1, "
    f"{INPUT}",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    found = by_bias(trial)
    means = {name: mean([each[name] for each in found.values()]) for name in STRATEGIES}
    others = [means[name] for name in STRATEGIES if name != "opt-profit-pd"]
    best = [max(values) for values in zip(*others, strict=True)]
    return Measured(minus(means["opt-profit-pd"], best), means)
