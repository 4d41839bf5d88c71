"""Periodic queries: three questions every two seconds, each due within one, and more traffic than there is time for."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

import freshet
from freshet.demo.pushed import pushed
from freshet.demo.stories import StoryCard, StoryTeller, Wishes
from freshet.log import LogReader
from freshet.model.scheduling.instance import Instance
from freshet.plots import DOTS, PlotPoint, draw_line, label_ends, new_figure, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS: Final = 44.0
QUICK: Final = 16.0
PERIOD: Final = 2.0
DEADLINE: Final = 1.0
CHUNK: Final = 0.2
"""Seconds between two batches."""
CALM_RATE: Final = 5_000.0
"""Rows per second of each stream at the beginning and at the end."""
MOST: Final = 60.0
"""Up to how many times as many rows may come."""
ENOUGH: Final = 0.5
"""Traffic grows no more when an answer was made of less than this share of its tuples."""
CALM, FULL = 0.25, 0.7
"""Shares of the story: until when it is calm, and from when on it is calm again."""
CARS: Final = 1_000_000
SEED: Final = 5
INTRODUCTION: Final = """\
Every two seconds three queries compare what cars report with what radar sees in the last four seconds. Their answers
are due one second later. More and more cars come, until there is more work than time. Then queries read only a part of
their windows: most from the one that can do without, least from the one that needs every car.
"""
_TEXT: Final = """\
[app]
name = "roads"
aim = "fair" # all answers are worth the same

[streams.cars]
schema = "car int, speed double"

[streams.cars.source]
kind = "generator"
arrival = {kind = "schedule", pieces = [["10 s", 5000], ["20 s", 300000], ["10 s", 5000]]}
columns = {car = {kind = "uniform", low = 0, high = 1000000}, speed = {kind = "normal", mean = 90, deviation = 20}}

[streams.radar]
schema = "car int, speed double"

[streams.radar.source]
kind = "generator"
arrival = {kind = "schedule", pieces = [["10 s", 5000], ["20 s", 300000], ["10 s", 5000]]}
columns = {car = {kind = "uniform", low = 0, high = 1000000}, speed = {kind = "normal", mean = 90, deviation = 20}}

[queries.stolen] # needs every car
sql = '''
SELECT c.car, r.speed FROM cars [RANGE 4 s] c, radar [RANGE 4 s] r
WHERE c.car = r.car AND c.speed < 30 AND r.speed > 100 PERIOD 2 s DEADLINE 1 s'''
overload = ["defer", "thin"]
quality = "strict"

[queries.racing] # half of the cars are half as good
sql = '''
SELECT c.car, r.speed FROM cars [RANGE 4 s] c, radar [RANGE 4 s] r
WHERE c.car = r.car AND r.speed > 120 AND c.speed > 120 PERIOD 2 s DEADLINE 1 s'''
overload = ["defer", "thin"]
quality = "proportional"

[queries.differences] # some cars tell nearly as much as all of them
sql = '''
SELECT avg(r.speed - c.speed) AS mean FROM cars [RANGE 4 s] c, radar [RANGE 4 s] r
WHERE c.car = r.car PERIOD 2 s DEADLINE 1 s'''
overload = ["defer", "thin"]
quality = "tolerant"
"""


def text() -> str:
    """The application file. In the story, traffic grows until the machine has no time for all of it."""
    return _TEXT


@dataclass(frozen=True, slots=True)
class PeriodicAnswer:
    """An instance that has ended.

    Args:
        query: Its query.
        release: When it was released, in seconds of the story.
        kept: Share of its tuples that it read.
        quality: What its answer is worth.
        seconds: From the release to the answer.
    """

    query: str
    release: float
    kept: float
    quality: float
    seconds: float

    @staticmethod
    def of(one: Instance, began: float) -> PeriodicAnswer:
        """From the record of an instance.

        >>> PeriodicAnswer.of(Instance("q", 12_000_000, 13_000_000, {}, kept={"a": 0.5}, finished=12_400_000), 10.0)
        PeriodicAnswer(query='q', release=2.0, kept=0.5, quality=1.0, seconds=0.4)
        """
        kept = min(one.kept.values(), default=1.0)
        return PeriodicAnswer(
            one.query, one.release / 1e6 - began, kept, one.quality, (one.finished - one.release) / 1e6
        )


@dataclass(slots=True)
class PeriodicTold:
    """The story when it is over.

    Args:
        answers: All answers, in the order of their releases.
        rates: When each rate began, and the rows per second of each stream.
    """

    answers: Sequence[PeriodicAnswer] = ()
    rates: list[tuple[float, float]] = field(default_factory=list)

    def by_query(self) -> Mapping[str, list[PeriodicAnswer]]:
        """The answers of each query, the query first that needs its tuples most."""
        names = ("stolen", "racing", "differences")
        return {name: [each for each in self.answers if each.query == name] for name in names}

    def save(self, path: Path) -> None:
        """Draws the picture."""
        figure = new_figure(9.0, 7.5)
        figure.suptitle("Three questions every two seconds, and more cars than there is time for", fontsize=13)
        rates, kept, took = figure.subplots(3, 1, sharex=True, height_ratios=[1, 2, 2])
        self._draw(kept, "kept")
        self._draw(took, "seconds")
        took.axhline(DEADLINE, color="#555555", linestyle="--")
        took.annotate("due", (0.01, DEADLINE), xycoords=took.get_yaxis_transform(), va="bottom", fontsize=9)
        rates.step([when for when, _ in self.rates], [rate for _, rate in self.rates], where="post", color="#555555")
        rates.set_ylim(0.0, None)
        plain_numbers(rates)
        rates.set_ylabel("rows/s of a stream")
        kept.set_ylabel("share of the window read")
        took.set_ylabel("seconds to the answer")
        took.set_xlabel("seconds")
        figure.savefig(path, format="png", dpi=DOTS)

    def _draw(self, axes: Axes, measure: str) -> None:
        ends = []
        for number, (name, answers) in enumerate(self.by_query().items()):
            line = [PlotPoint.of(each.release, [getattr(each, measure)]) for each in answers]
            draw_line(axes, line, number)
            ends += [(name, each, number) for each in line[-1:]]
        axes.set_ylim(0.0, 1.1 * max(DEADLINE, *(getattr(each, measure) for each in self.answers)))
        plain_numbers(axes)
        label_ends(axes, ends)

    def paragraphs(self) -> list[str]:
        """What was seen, in words."""
        peak = max(rate for _, rate in self.rates)
        crowded = [when for when, rate in self.rates if rate == peak]
        calm = [when for when, rate in self.rates if when > crowded[0] and rate < peak]
        rush = (crowded[0], min(calm, default=self.answers[-1].release))
        in_time = sum(each.seconds <= DEADLINE for each in self.answers)
        least = {name: min(answers, key=lambda each: each.kept) for name, answers in self.by_query().items() if answers}
        reads = ", ".join(f"{name} {one.kept:.0%} (worth {one.quality:.2f})" for name, one in least.items())
        return [
            f"{in_time} of {len(self.answers)} answers came within {DEADLINE:g} s of their release, also while "
            f"{peak:,.0f} rows/s came on each stream, from second {rush[0]:.0f} to {rush[1]:.0f}.",
            f"The least that a query read of its windows: {reads}. What was left out is in the ledger: freshet read "
            "roads.toml racing --missing. Before three answers of a query are known, it reads everything.",
        ]

    def to_json(self) -> dict[str, Any]:
        """All figures."""
        return {"answers": [asdict(each) for each in self.answers], "rates": self.rates}


class Cars:
    """Cars at random."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)

    def rows(self, count: int) -> pa.Table:
        """Rows of a stream."""
        cars = self._draw.integers(0, CARS, count, dtype=np.int32)
        return pa.table({"car": cars, "speed": self._draw.normal(90.0, 20.0, count)})


def tell(folder: Path, wishes: Wishes, stage: StoryTeller) -> PeriodicTold:
    """Lets traffic grow until windows are thinned, and calms it down again."""
    seconds = wishes.seconds or (QUICK if wishes.quick else SECONDS)
    stage.say(INTRODUCTION)
    app, told = pushed(folder, "roads", _TEXT), PeriodicTold()
    with app.start(policy=wishes.policy, master="local[2]", progress=lambda text: stage.say(f"   {text} ...")) as run:
        stage.say(f"{seconds:.0f} seconds of traffic.\n")
        with LogReader(app.state) as log:
            began = time.time()
            _play(run, log, seconds, began, told, stage)
            run.drain()
            told.answers = answered(log, began)
    return told


def answered(log: LogReader, began: float) -> list[PeriodicAnswer]:
    """The answers so far."""
    return [
        PeriodicAnswer.of(each, began)
        for each in log.instances()
        if each.state == "answered" and each.release > began * 1e6
    ]


def grown(rate: float, seconds: float) -> float:
    """The next rate while traffic grows, so that it can become :data:`MOST` times what it was.

    >>> round(grown(5_000.0, 44.0))
    7561
    """
    return min(MOST * CALM_RATE, rate * math.pow(MOST, PERIOD / ((FULL - CALM) * seconds)))


def _play(
    run: freshet.Run, log: LogReader, seconds: float, began: float, told: PeriodicTold, stage: StoryTeller
) -> None:
    cars, rate, due, next_period = Cars(SEED), CALM_RATE, 0.0, 0.0
    with stage.screen(lambda now: f"{rate:,.0f} rows/s on each stream", "") as show:
        while (now := time.time() - began) < seconds:
            stage.check()
            if now >= next_period:
                rate = _next_rate(rate, now / seconds, seconds, answered(log, began))
                told.rates.append((now, rate))
                next_period = now + PERIOD
                show(run.report(), now)
            for name in ("cars", "radar"):
                run.push(name, cars.rows(round(rate * CHUNK)))
            due = max(due + CHUNK, now)
            run.wait(max(0.0, began + due - time.time()))
    told.rates.append((seconds, rate))


def _next_rate(rate: float, share: float, seconds: float, answers: Sequence[PeriodicAnswer]) -> float:
    if not CALM <= share < FULL:
        return CALM_RATE
    thinned = any(each.kept < ENOUGH for each in answers)
    return rate if thinned else grown(rate, seconds)


CARD: Final = StoryCard("periodic", "answers that are due every two seconds, and too much traffic for them", text, tell)
