"""Claims of WU §4.9.2.4: how strategies respond to load, urgency and bursts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from freshet.reproduce.aurora.measures import mean, minus
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.reproduce.tuples.claims import SHARING, VARIANCES, by_strategy, of_family
from freshet.reproduce.tuples.runs import STRATEGIES, TupleRun, bed, scores
from freshet.simulation.workloads.tuples import TupleWorkload

LOADS: Final = (0.7, 1.0, 1.3, 1.6)
DELAYS: Final = (0.0, 1.5, 3.0)
BIASES: Final = (0.5, 0.7, 0.9)
SPAN: Final = 2.0
"""Seconds of a cascade of the b-model: bursts are shorter than any validity. The thesis divides the whole time of its
traces, and does not say how long that is."""
INPUT: Final = "24 queries, 40 operators, streams by the b-model in cascades of 2 s"
ScoresBySetting = dict[float, dict[str, list[float]]]


def bursty(trial: Trial, **changes: object) -> TupleWorkload:
    """The testbed with streams by the b-model."""
    return replace(bed(trial, process="b-model", span=SPAN), **changes)  # type: ignore[arg-type]


def by_load(trial: Trial) -> ScoresBySetting:
    """Scores by load."""
    return {load: by_strategy(trial, bursty(trial, load=load)) for load in LOADS}


def by_delay(trial: Trial) -> ScoresBySetting:
    """Scores by the seconds between event time and arrival."""
    return {delay: by_strategy(trial, bursty(trial, delay=delay)) for delay in DELAYS}


def by_bias(trial: Trial, span: float | None = SPAN, biases: Sequence[float] = BIASES) -> ScoresBySetting:
    """Scores by the bias of the b-model."""
    return {bias: by_strategy(trial, bursty(trial, bias=bias, span=span)) for bias in biases}


def falls(found: ScoresBySetting) -> dict[str, list[float]]:
    """By how much each strategy falls from the first setting to the last."""
    first, *_, last = found.values()
    return {name: minus(first[name], last[name]) for name in STRATEGIES}


def readings(found: ScoresBySetting, text: str) -> dict[str, list[float]]:
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


def falls_less(trial: Trial, word: str) -> Measured:
    """By how much the greedy strategies fall with the delay, minus that of a family."""
    found = by_delay(trial)
    fall = falls(found)
    greedy, aware = mean([fall["basic"], fall["opt-profit"]]), mean([fall[name] for name in of_family(word)])
    return Measured(minus(greedy, aware), readings(found, "delay"))


@claim(
    "tuples.fig4.12.dd-falls-less",
    source="WU §4.9.2.4, Fig. 4.12",
    published="do not degrade as much",
    how="by how much basic and opt-profit fall in the mean from no delay to one of 3 s, minus that of basic-dd and "
    f"opt-profit-dd; load 1.5, {INPUT}",
    low=0.0001,
    reason="in a lasting overload greedy strategies lose next to nothing by a delay: what waits long is late anyway. "
    "By laxity everything waits as long as it can, so a delay takes what it waits for",
)
def _(trial: Trial) -> Measured:
    return falls_less(trial, "dd")


@claim(
    "tuples.fig4.12.pd-falls-less",
    source="WU §4.9.2.4, Fig. 4.12",
    published="do not degrade as much",
    how=f"the same with basic-pd and opt-profit-pd; load 1.5, {INPUT}",
    low=0.0001,
    reason="in a lasting overload neither loses much: what is dense is answered at once, and what waits is late anyway",
)
def _(trial: Trial) -> Measured:
    return falls_less(trial, "pd")


def rise(found: ScoresBySetting) -> list[float]:
    """By how much the mean score of all six rises from the least bias to the greatest."""
    even, burst = (mean([found[bias][name] for name in STRATEGIES]) for bias in (BIASES[0], BIASES[-1]))
    return minus(burst, even)


@claim(
    "tuples.fig4.13.bursts-help",
    source="WU §4.9.2.4, Fig. 4.13",
    published="scores increase when b becomes larger",
    how=f"mean score of all six strategies at a bias of 0.9 minus that at 0.5; load 1.5, {INPUT}; readings: also with "
    "one cascade over the whole time",
    low=0.0001,
)
def _(trial: Trial) -> Measured:
    found = by_bias(trial)
    return Measured(
        rise(found),
        {
            **readings(found, "bias"),
            "one cascade over the whole time": rise(by_bias(trial, None, (BIASES[0], BIASES[-1]))),
        },
    )


@claim(
    "tuples.fig4.13.opt-profit-pd-best",
    source="WU §4.9.2.4, Fig. 4.13",
    published="the best choice",
    how="mean score of opt-profit-pd over biases of 0.5, 0.7 and 0.9 minus the highest of the other five; load 1.5, "
    f"{INPUT}",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    found = by_bias(trial)
    means = {name: mean([each[name] for each in found.values()]) for name in STRATEGIES}
    others = [means[name] for name in STRATEGIES if name != "opt-profit-pd"]
    best = [max(values) for values in zip(*others, strict=True)]
    return Measured(minus(means["opt-profit-pd"], best), means)


def cells(trial: Trial) -> dict[str, TupleWorkload]:
    """The testbeds of the claims from Fig. 4.9 on."""
    found = {f"{queries} queries of {operators} operators": bed(trial, queries=queries, operators=operators)
             for queries, operators in SHARING}  # fmt: skip
    found |= {f"weights {text}": bed(trial, weights=weights, extremes=extremes)
              for text, (weights, extremes) in VARIANCES.items()}  # fmt: skip
    found |= {f"load {load:g}": bursty(trial, load=load) for load in LOADS}
    found |= {f"delay {delay:g}": bursty(trial, delay=delay) for delay in DELAYS}
    return found | {f"bias {bias:g}": bursty(trial, bias=bias) for bias in BIASES}


@claim(
    "tuples.sec4.11.auto",
    source="WU §4.11",
    published="achieve the best possible result",
    how="score of tuple-auto over that of the best of the six strategies, means of the seeds: the least over all "
    "testbeds of Fig. 4.9 to 4.13; readings: each of them",
    low=0.98,
)
def _(trial: Trial) -> Measured:
    shares = {}
    for text, made in cells(trial).items():
        best = max(sum(values) / len(values) for values in by_strategy(trial, made).values())
        shares[text] = [value / best for value in scores(trial, TupleRun(made, "tuple-auto"))]
    worst = min(shares, key=lambda text: sum(shares[text]))
    return Measured(shares[worst], shares)
