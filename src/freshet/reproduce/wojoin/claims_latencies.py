"""Claims of WU §3.6.1 on latencies."""

from __future__ import annotations

from freshet.model.join_buffer import JoinBuffer
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.reproduce.wojoin.latencies import MODES, LatencyOutcome, LatencyRun, by_buffer, latencies


def _found(trial: Trial) -> dict[JoinBuffer, list[LatencyOutcome]]:
    seeds = list(trial.seeds)
    return by_buffer(trial.map(latencies, [LatencyRun(mode, seed) for mode in MODES for seed in seeds]), len(seeds))


def _against_plain(trial: Trial, buffer: JoinBuffer) -> Measured:
    found = _found(trial)
    pairs = zip(found[buffer], found["ram"], strict=True)
    return Measured([one.mean / plain.mean for one, plain in pairs])


@claim(
    "wojoin.fig3.15.dbf",
    source="WU Fig. 3.15",
    published=1.5,
    how="mean latency of rows with join_buffer = log over that with ram, by the engine: what rests delays no row",
    low=1.0,
    high=1.6,
)
def resting_is_quick(trial: Trial) -> Measured:
    """A leading stream that rests costs little latency; here none, because its log is read with the others' tuples."""
    return _against_plain(trial, "log")


@claim(
    "wojoin.fig3.15.msf",
    source="WU Fig. 3.15",
    published="two orders of magnitude",
    how="the same with join_buffer = sorted; a batch comes every 20 ms, factors of 100 rows",
    low=50.0,
)
def sorting_is_slow(trial: Trial) -> Measured:
    """Rows that wait until the marks have passed them are late by many batches."""
    return _against_plain(trial, "sorted")


@claim(
    "wojoin.fig3.15.hybrid",
    source="WU Fig. 3.15",
    published="two orders of magnitude",
    how="the same with join_buffer = hybrid",
    low=50.0,
)
def both_are_slow(trial: Trial) -> Measured:
    """With both, too."""
    return _against_plain(trial, "hybrid")
