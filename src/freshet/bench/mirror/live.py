"""The live part of ``freshet bench mirror``: real polls of a real server, by a real application."""

from __future__ import annotations

import time
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.bench.mirror.application import MirrorCase, running, write_application
from freshet.bench.mirror.changing import Served
from freshet.bench.mirror.server import ServerSettings, read_record, serving
from freshet.bench.stage import Stage
from freshet.log import LogReader
from freshet.mirror import Elements, plan

Floats = NDArray[np.float64]

ELEMENTS: Final = 2000
MEAN_RATE: Final = 0.8
"""Changes a second of a resource on average."""
SHARE: Final = 8.0
"""Changes for each poll of the budget."""
WINDOW: Final = 10.0
"""Seconds over which polls are held against the budget."""
_START: Final = 180.0
"""Seconds for the start of the application; resources change that much longer."""
_TAIL: Final = 2.0
"""Seconds before the end whose polls may not be committed any more."""


@dataclass(frozen=True, slots=True)
class LiveWorld:
    """Resources: change rates by a gamma distribution of shape 1, worth by Zipf's law with theta 1 (CAR Table 2.2), in
    no relation to each other."""

    rates: Floats
    worth: Floats

    @classmethod
    def of(cls, seed: int, count: int = ELEMENTS) -> LiveWorld:
        """The world of a seed."""
        generator = np.random.default_rng(seed)
        rates = np.maximum(generator.gamma(1.0, MEAN_RATE, count), 1e-3)
        worth = 1.0 / np.arange(1, count + 1)
        generator.shuffle(worth)
        return cls(rates, worth / worth.sum())

    @property
    def budget(self) -> float:
        """Polls a second: an eighth of all changes."""
        return float(self.rates.sum()) / SHARE

    def analytic(self) -> float:
        """Perceived freshness of the best plan with known rates."""
        return plan(Elements.of(self.rates, self.worth), self.budget).perceived

    def cases(self) -> list[MirrorCase]:
        """A mirror that knows the rates, one that learns them, and one that polls all alike."""
        alike = np.ones(len(self.rates))
        return [
            MirrorCase("known", self.worth, self.rates),
            MirrorCase("learned", self.worth, None),
            MirrorCase("even", alike, alike),
        ]


def live(stage: Stage, *, seconds: float = 300.0, kills: int = 2, seed: int = 1) -> dict[str, float]:
    """All live figures: freshness, kills and speed."""
    return {
        **live_freshness(stage, seconds=seconds, seed=seed),
        **live_kills(stage, kills=kills, seed=seed),
        **live_speed(stage, seed=seed),
    }


def live_freshness(stage: Stage, *, seconds: float = 300.0, seed: int = 1) -> dict[str, float]:
    """Three mirrors poll the same resources; the server's record says how fresh each was."""
    world, folder = LiveWorld.of(seed), stage.folder / "freshness"
    settings = ServerSettings(world.rates.tolist(), time.time(), seconds + _START, seed, str(folder / "server"))
    first = 2.5 * ELEMENTS / world.budget
    with serving(settings) as address, running(write_application(folder, address, world.cases(), world.budget)) as app:
        stage.say(f"first polls of {ELEMENTS} resources: {first:.0f} s")
        time.sleep(first)
        since = time.time()
        stage.say(f"measuring for {seconds:.0f} s")
        time.sleep(seconds)
        until, told = time.time(), app.report()["mirrors"]
    record, changing = read_record(folder / "server"), settings.changing()
    reached = {
        name: float(changing.freshness(_of(record, name), since, until) @ world.worth)
        for name in ("known", "learned", "even")
    }
    analytic = world.analytic()
    return {
        "pf_live": reached["known"],
        "pf_analytic": analytic,
        "pf_error": abs(reached["known"] - analytic),
        "pf_learned": reached["learned"],
        "pf_learned_error": abs(reached["learned"] - analytic),
        "pf_even": reached["even"],
        "pf_live_vs_even": reached["known"] / reached["even"],
        "pf_estimated": told["known"]["freshness"],
        "pf_audited": told["known"]["freshness_audited"] or 0.0,
        "pf_audited_error": told["known"]["freshness_audited_error"] or 0.0,
        "polls_vs_budget": max(_most(_of(record, name), WINDOW) for name in reached) / (WINDOW * world.budget),
        "live_seconds": until - since,
        "live_polls": float(len(record)),
    }


def live_kills(stage: Stage, *, kills: int = 2, seed: int = 1, seconds: float = 15.0) -> dict[str, float]:
    """The application is killed and started again on its state; then what it served is held against what is stored."""
    world, folder = LiveWorld.of(seed), stage.folder / "kills"
    length = (kills + 1) * (seconds + _START)
    settings = ServerSettings(world.rates.tolist(), time.time(), length, seed, str(folder / "server"))
    cases = [case for case in world.cases() if case.name == "learned"]
    with serving(settings) as address, running(write_application(folder, address, cases, world.budget)) as app:
        killed = []
        for number in range(kills):
            time.sleep(seconds)
            stage.say(f"kill -9, {number + 1} of {kills}")
            app.kill()
            killed.append(time.time())
            app.start_again()
        time.sleep(seconds)
        end = time.time()
    record = _of(read_record(folder / "server"), "learned")
    stored = stored_versions(folder / "state", "learned")
    found = compared([each for each in record if each.time <= end - _TAIL], stored, killed)
    return {
        "changes_met": found.met,
        "changes_lost": found.lost,
        "changes_overtaken": found.overtaken,
        "changes_doubled": found.doubled,
        "kills": kills,
        "polls_vs_budget_over_kills": _most(record, WINDOW) / (WINDOW * world.budget),
    }


def live_speed(stage: Stage, *, seconds: float = 20.0, seed: int = 1) -> dict[str, float]:
    """One mirror with more budget than it can use."""
    world, folder = LiveWorld.of(seed), stage.folder / "speed"
    settings = ServerSettings(world.rates.tolist(), time.time(), seconds + _START, seed, str(folder / "server"))
    cases = [case for case in world.cases() if case.name == "learned"]
    with serving(settings) as address, running(write_application(folder, address, cases, 20_000.0)) as app:
        time.sleep(5.0)
        since, before = time.time(), app.report()["total"]["tuples_in"]
        time.sleep(seconds)
        until, after = time.time(), app.report()["total"]["tuples_in"]
    polls = sum(since <= each.time < until for each in read_record(folder / "server"))
    return {"polls_per_s": polls / (until - since), "tuples_per_s_meanwhile": (after - before) / (until - since)}


def _of(record: Sequence[Served], reader: str) -> list[Served]:
    return [each for each in record if each.reader == reader]


def _most(record: Sequence[Served], window: float) -> int:
    """Maximum number of requests in any span of so many seconds.

    >>> _most([Served(time, "a", 0, 0, True) for time in (0.0, 5.0, 9.0, 10.0)], 10.0)
    3
    """
    times = np.sort(np.array([each.time for each in record]))
    return int((np.searchsorted(times, times + window, side="left") - np.arange(len(times))).max(initial=0))


def stored_versions(state: Path, stream: str) -> Counter[tuple[int, int]]:
    """How often each version of each resource is a row of a stream."""
    with LogReader(state) as log:
        rows = log.read(stream, log.oldest(stream), log.end(stream))
    pairs = zip(rows["element"].to_pylist(), rows["version"].to_pylist(), strict=True)
    return Counter((int(element), int(version)) for element, version in pairs)


class ComparedChanges(NamedTuple):
    """What became of the versions that polls met.

    Args:
        met: Number of versions of resources that were sent.
        lost: Number of those that are no rows, although nothing excuses that.
        overtaken: Number of those that were on their way at a kill, and that a newer version has replaced since then:
            nobody could find them again.
        doubled: Number of rows that are there twice.
    """

    met: int
    lost: int
    overtaken: int
    doubled: int


def compared(record: Sequence[Served], stored: Counter[tuple[int, int]], kills: Sequence[float]) -> ComparedChanges:
    """Holds what was served against what is stored.

    The process commits what it finds of a resource in order. So a version that is no row was on its way at a kill only
    if no later version of that life of the process is a row; and then a later life must have found a newer one.

    >>> served = [Served(time, "a", 0, version, True) for time, version in ((1.0, 3), (2.0, 5), (3.0, 6), (9.0, 8))]
    >>> compared(served, Counter({(0, 3): 1, (0, 6): 1, (0, 8): 2}), kills=[5.0])
    ComparedChanges(met=4, lost=1, overtaken=0, doubled=1)
    >>> compared(served, Counter({(0, 3): 1, (0, 5): 1, (0, 8): 1}), kills=[5.0])
    ComparedChanges(met=4, lost=0, overtaken=1, doubled=0)
    >>> compared(served, Counter({(0, 3): 1, (0, 5): 1, (0, 6): 1}), kills=[5.0])
    ComparedChanges(met=4, lost=1, overtaken=0, doubled=0)
    """
    sent = {(each.element, each.version): bisect(kills, each.time) for each in record if each.sent}
    newest, newest_of = dict[int, int](), dict[tuple[int, int], int]()
    for element, version in stored:
        newest[element] = max(version, newest.get(element, -1))
        life = element, sent.get((element, version), -1)
        newest_of[life] = max(version, newest_of.get(life, -1))
    missing = [
        (element, version, life) for (element, version), life in sent.items() if (element, version) not in stored
    ]
    overtaken = sum(
        newest_of.get((element, life), -1) < version < newest.get(element, -1) for element, version, life in missing
    )
    doubled = sum(count - 1 for count in stored.values())
    return ComparedChanges(len(sent), len(missing) - overtaken, overtaken, doubled)
