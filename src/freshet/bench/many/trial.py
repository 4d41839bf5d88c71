"""A trial of ``freshet bench many``: a side is fed for some seconds, and its work is put into numbers."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from freshet.bench.many.answers import Expected
from freshet.bench.many.files import INTERVAL, Files
from freshet.bench.many.side import Notes, Opening, Remote, Times
from freshet.bench.rig.meter import ByKind, ProcessMeter

WARM: Final = 12
"""Number of files before those that are measured."""
SAMPLE: Final = 1.0
"""Seconds between two looks at the memory."""


class NotGoing(Exception):
    """A side did not get going within its time limit; the text says how far it came."""


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What a side did in a trial.

    Args:
        queries: Number of queries.
        rate: Rows a second that came.
        waits: Seconds from arrival to readable output, for each query and file.
        sunk: Like ``waits``, to the Parquet sink behind such an output; None: there is none.
        answered: Share of files and queries that were answered. If it is below 1, the others waited at least as long as
            ``waits`` says.
        rounds: Rounds a second; in a round each query is answered once.
        cpu: CPU time per million of input rows times queries.
        peak_mb: Peak memory.
        driver_mb: Peak memory of the driver alone.
        driver_growth_mb: How much the memory of the driver grew in the trial.
        checked: Number of output rows that were compared with those of the floor.
        backlogs: Number of rows that wait for the slowest query, at the arrival of each file.
    """

    queries: int
    rate: float
    waits: Times
    sunk: Times | None
    answered: float
    rounds: float
    cpu: ByKind
    peak_mb: float
    driver_mb: float
    driver_growth_mb: float
    checked: int
    backlogs: Times

    @property
    def kept_up(self) -> bool:
        """Whether the backlog did not grow: its mean in the last third of the feed is at most that in the third before,
        plus one file."""
        third = len(self.backlogs) // 3
        before, last = self.backlogs[-2 * third : -third], self.backlogs[-third:]
        return self.answered == 1.0 and bool(last.mean() <= before.mean() + self.rate * INTERVAL)


@dataclass(frozen=True, slots=True)
class Feed:
    """The input of a side in a trial.

    Args:
        files: The input; the first :data:`WARM` are not measured.
        rate: Rows a second.
        sinks: Whether outputs go to Parquet.
        limit: Seconds for each of these: to start all queries, to answer the first files, and to answer the others
            after the last has come.
    """

    files: Files
    rate: float
    sinks: bool
    limit: float

    def opening(self, folder: Path) -> Opening:
        """What a side is opened with."""
        return Opening(folder, self.files.rows, self.sinks, self.limit)


def run_trial(side: str, remote: Remote, feed: Feed, queries: int, folder: Path, expected: Expected) -> TrialOutcome:
    """Opens a side in a folder that is deleted afterwards, feeds it, checks its answers and closes it.

    Raises:
        NotGoing: It could not start all queries, or could not answer the first files.
        RuntimeError: It gave wrong answers.
    """
    opening = feed.opening(folder)
    opening.input.mkdir(parents=True)
    try:
        _start(remote, feed, queries, opening)
        outcome = _measure(side, remote, feed, queries, opening, expected)
        remote.call("close", within=feed.limit)
        return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(remote: Remote, feed: Feed, queries: int, opening: Opening) -> None:
    started = remote.call("open", opening, within=feed.limit)
    if started < queries:
        raise NotGoing(f"{started} of {queries} queries were started in {feed.limit:g} s")
    feed.files.drop(range(WARM), opening.input)
    if not remote.call("wait", WARM, feed.limit, within=feed.limit):
        seconds = feed.limit + WARM * INTERVAL
        raise NotGoing(f"not all queries had answered the first {WARM * INTERVAL:g} s of input after {seconds:g} s")


def _measure(side: str, remote: Remote, feed: Feed, queries: int, opening: Opening, expected: Expected) -> TrialOutcome:
    total = feed.files.count
    meter = ProcessMeter(remote.process)
    before = meter.cpu()
    with meter.watching(SAMPLE) as seen:
        arrivals = np.array(feed.files.drop(range(WARM, total), opening.input))
        remote.call("wait", total, feed.limit, within=feed.limit)
    used, now = meter.cpu() - before, time.time()
    notes: Notes = remote.call("notes", total, within=feed.limit)
    checked = 0
    if feed.sinks or side in ("freshet", "floor"):
        checked = expected.check(side, remote.call("answers", total, within=feed.limit))
    ready = notes.ready[:, WARM:]
    answered = float(np.mean(~np.isnan(ready)))
    until = np.nanmax(ready) if answered == 1.0 else now
    rounds = np.count_nonzero((notes.rounds > arrivals[0]) & (notes.rounds <= until))
    # With a streaming query for each query, a micro-batch answers one of them.
    per_round = queries if side == "queries" else 1
    millions = len(arrivals) * feed.files.rows * queries * answered / 1e6
    return TrialOutcome(
        queries=queries,
        rate=feed.rate,
        waits=waits(ready, arrivals, now),
        sunk=None if notes.sunk is None else waits(notes.sunk[:, WARM:], arrivals, now),
        answered=answered,
        rounds=rounds / per_round / (until - arrivals[0]),
        cpu=used.times(1.0 / millions) if millions else used,
        peak_mb=max(each.total for each in seen),
        driver_mb=max(each.driver for each in seen),
        driver_growth_mb=seen[-1].driver - seen[0].driver,
        checked=checked,
        backlogs=backlogs(ready, arrivals) * feed.files.rows,
    )


def waits(ready: Times, arrivals: Times, now: float) -> Times:
    """Seconds from arrival to answer; missing answers are still waited for.

    >>> waits(np.array([[11.0, np.nan]]), np.array([10.0, 11.0]), 13.0)
    array([[1., 2.]])
    """
    there: Times = np.where(np.isnan(ready), now, ready) - arrivals
    return there


def backlogs(ready: Times, arrivals: Times) -> Times:
    """Number of files that wait for the slowest query at the arrival of each file, which counts, too.

    >>> backlogs(np.array([[1.5, 2.5, 3.5], [2.5, 2.5, np.nan]]), np.array([1.0, 2.0, 3.0]))
    array([1., 2., 1.])
    """
    done = np.max(np.where(np.isnan(ready), np.inf, ready), axis=0)
    numbers = [np.count_nonzero(done[: place + 1] > moment) for place, moment in enumerate(arrivals)]
    return np.array(numbers, dtype=np.float64)
