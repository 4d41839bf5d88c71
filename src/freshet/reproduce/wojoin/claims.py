"""Claims of WU §3.6.1 on one join of three streams: what the model says, and what windows would need."""

from __future__ import annotations

from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.reproduce.wojoin.query1 import Query1Outcome, Query1Run, query_1


def outcomes(trial: Trial, measured: bool) -> list[Query1Outcome]:
    """One for each seed."""
    return trial.map(query_1, [Query1Run(seed, measured=measured) for seed in trial.seeds])


@claim(
    "wojoin.fig3.7.bound",
    source="WU Fig. 3.7",
    published="predicted buffers suffice for all results",
    how="least ratio of predicted to needed rows over all results, by the corrected model (Eq. 3.7 and 3.8)",
    low=1.0,
)
def bound(trial: Trial) -> Measured:
    """The corrected model is never too low; the published one is."""
    found = outcomes(trial, measured=False)
    published = [each.least_published for each in found]
    return Measured([each.least_margin for each in found], {"Eq. 3.7 as published": published})


@claim(
    "wojoin.fig3.7.close",
    source="WU Fig. 3.7",
    published="the predicted curve closely follows the optimal one",
    how="mean ratio of the greatest predicted to the greatest needed number of rows in each second",
    low=1.0,
    high=2.0,
)
def close(trial: Trial) -> Measured:
    """The model is not far too high, either."""
    return Measured([each.excess for each in outcomes(trial, measured=False)])


@claim(
    "wojoin.fig3.7.known",
    source="WU §3.6.1",
    published=1.0,
    how="share of the results found if the scrambling factors are known",
    low=1.0,
)
def known(trial: Trial) -> Measured:
    """Known disorder loses nothing."""
    return Measured([each.accuracy for each in outcomes(trial, measured=False)])


@claim(
    "wojoin.fig3.7.measured",
    source="WU §3.6.1",
    published=0.996,
    how="share of the results found if the disorder is measured while rows come, with in_order = 0.999",
    low=0.992,
)
def measured(trial: Trial) -> Measured:
    """Measured disorder loses little."""
    return Measured([each.accuracy for each in outcomes(trial, measured=True)])


@claim(
    "wojoin.fig3.12.equal_memory",
    source="WU §3.6.1, Fig. 3.12",
    published="below 0.4",
    how="share of the results that windows find which hold as many rows of each stream as this join does on average",
    high=0.4,
)
def equal_memory(trial: Trial) -> Measured:
    """Windows with the same memory miss most results."""
    found = outcomes(trial, measured=False)
    fifo = [each.fifo_accuracy for each in found]
    return Measured([each.window_accuracy for each in found], {"the join holds the latest rows (FIFO)": fifo})


@claim(
    "wojoin.fig3.12.equal_accuracy",
    source="WU §3.6.1, Fig. 3.12",
    published="much larger",
    how="how many times as many rows windows need to find as many results",
    low=1.5,
)
def equal_accuracy(trial: Trial) -> Measured:
    """Windows need more memory for the same results."""
    return Measured([each.window_size for each in outcomes(trial, measured=False)])
