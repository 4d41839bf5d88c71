"""Joins without windows: three stations measure the same moments, and the network of one fails for a while."""

from __future__ import annotations

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
from freshet.plots import COLOURS, DOTS, PlotPoint, draw_line, label_ends, new_figure, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS: Final = 40.0
QUICK: Final = 14.0
BEAT: Final = 0.2
"""Seconds between two batches."""
RATE: Final = 500
"""Moments a second."""
FAILS, RETURNS = 0.3, 0.55
"""Shares of the story between which nothing comes from the north."""
MIXED: Final = 40
"""Number of moments among which those of a station come in any order."""
SEED: Final = 7
STATIONS: Final = ("north", "south", "east")
QUERIES: Final = ("moments", "guess")
INTRODUCTION: Final = """\
Three stations measure the same moments, and each sends its readings nearly in order. Two queries put the three readings
of a moment together. "moments" has no windows: it remembers a reading until the others are past it. "guess" has windows
of two seconds. Then the network of the station in the north fails for a while, and delivers late what it held.
"""
_TEXT: Final = """\
[app]
name = "stations"

[streams.north]
schema = "moment bigint, wind double"
ordered_by = "moment"   # readings come nearly in this order:
disorder = "100 rows"   # none comes more than 100 readings late

[streams.south]
schema = "moment bigint, wind double"
ordered_by = "moment"
disorder = "100 rows"

[streams.east]
schema = "moment bigint, wind double"
ordered_by = "moment"
disorder = "100 rows"

[queries.moments]       # nobody has to say how long to wait
sql = '''
SELECT n.moment, n.wind AS north, s.wind AS south, e.wind AS east
FROM north n, south s, east e
WHERE n.moment = s.moment AND s.moment = e.moment'''
join_buffer = "ram"     # with "log" or "auto", readings that are ahead could rest in the log

[queries.guess]         # two seconds, because the network is usually faster
sql = '''
SELECT n.moment, n.wind AS north, s.wind AS south, e.wind AS east
FROM north [RANGE 2 SECONDS] n, south [RANGE 2 SECONDS] s, east [RANGE 2 SECONDS] e
WHERE n.moment = s.moment AND s.moment = e.moment'''
"""


def text() -> str:
    """The application file. In the story, the readings are pushed."""
    return _TEXT


@dataclass(frozen=True, slots=True)
class JoinSight:
    """What was seen at a time of the story.

    Args:
        when: Seconds since the story began.
        behind: Number of readings by which the north lags.
        held: By query, number of readings that it remembers.
        answered: By query, number of moments that it has answered.
        predicted: Number of readings that "moments" needs by the order of its streams.
    """

    when: float
    behind: int
    held: Mapping[str, int]
    answered: Mapping[str, int]
    predicted: int

    @staticmethod
    def of(when: float, behind: int, report: Mapping[str, Any]) -> JoinSight:
        """From the report of a run."""
        queries = report["queries"]
        return JoinSight(
            when,
            behind,
            {name: queries[name]["state_rows"] for name in QUERIES},
            {name: queries[name]["tuples_out"] for name in QUERIES},
            sum(each["rows_predicted"] for each in report["joins"]["moments"]["inputs"]),
        )


@dataclass(slots=True)
class JoinsTold:
    """The story when it is over.

    Args:
        seconds: How long it lasted.
        moments: Number of moments that all stations measured.
        sights: What was seen, in order; the last one when all was answered.
    """

    seconds: float
    moments: int = 0
    sights: list[JoinSight] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Draws the picture."""
        figure = new_figure(9.0, 7.5)
        figure.suptitle("Three stations, and a network that fails for a while", fontsize=13)
        behind, held, answered = figure.subplots(3, 1, sharex=True, height_ratios=[1, 2, 2])
        during = [each for each in self.sights if each.when <= self.seconds]
        _draw(behind, {"north": [(each.when, each.behind) for each in during]}, first=2)
        _draw(held, {name: [(each.when, each.held[name]) for each in during] for name in QUERIES})
        _draw(answered, {name: [(each.when, each.answered[name]) for each in during] for name in QUERIES})
        for axes in (behind, held, answered):
            axes.axvspan(FAILS * self.seconds, RETURNS * self.seconds, color=COLOURS[-1], alpha=0.12, linewidth=0)
        middle = (FAILS + RETURNS) / 2 * self.seconds
        place: Any = answered.get_xaxis_transform()
        answered.annotate("the north is silent", (middle, 0.93), xycoords=place, ha="center", fontsize=9)
        behind.set_ylabel("readings behind")
        held.set_ylabel("readings remembered")
        answered.set_ylabel("moments answered")
        answered.set_xlabel("seconds")
        figure.savefig(path, format="png", dpi=DOTS)

    def paragraphs(self) -> list[str]:
        """What was seen, in words."""
        last = self.sights[-1]
        calm = [each.held["moments"] for each in self.sights if each.when < FAILS * self.seconds]
        behind, predicted = max(each.behind for each in self.sights), max(each.predicted for each in self.sights)
        most = max(each.held["moments"] for each in self.sights)
        return [
            f"The stations measured {self.moments:,} moments. {self._answered('moments')} {self._answered('guess')}",
            f"Before the network failed, moments remembered at most {max(calm, default=0):,} readings. Then "
            f"the north fell {behind:,} readings behind, and it remembered up to {most:,}. The order of the streams "
            f"predicted up to {predicted:,}. At the end it remembered {last.held['moments']:,}.",
            "A longer window would have found more, and would remember more all the time, also while the network is "
            "fast. Without windows, memory goes by how far the stations are apart.",
        ]

    def _answered(self, query: str) -> str:
        count = self.sights[-1].answered[query]
        if count == self.moments:
            return f"{query} answered each."
        return f"{query} answered {count:,} of them ({count / self.moments:.0%})."

    def to_json(self) -> dict[str, Any]:
        """All figures."""
        return asdict(self)


def _draw(axes: Axes, lines: Mapping[str, Sequence[tuple[float, float]]], first: int = 0) -> None:
    ends = []
    for number, (name, line) in enumerate(lines.items(), first):
        points = [PlotPoint.of(when, [value]) for when, value in line]
        draw_line(axes, points, number, dashed=number == 1)
        ends.append((name, points[-1], number))
    axes.set_ylim(0.0, None)
    plain_numbers(axes)
    label_ends(axes, ends)


class Stations:
    """They measure at the same moments, and each sends its readings nearly in order."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        self.measured = 0

    def rows(self, count: int) -> dict[str, pa.Table]:
        """The readings of the next moments, by station.

        >>> readings = Stations(1)
        >>> tables = readings.rows(3)
        >>> sorted(tables["north"]["moment"].to_pylist()), readings.measured
        ([0, 1, 2], 3)
        """
        moments = np.arange(self.measured, self.measured + count)
        self.measured += count
        # Each moves back by less than MIXED, so that none is late by as many.
        return {name: self._table(moments) for name in STATIONS}

    def _table(self, moments: np.ndarray) -> pa.Table:
        order = np.argsort(moments + self._draw.uniform(0, MIXED, len(moments)))
        return pa.table({"moment": moments[order], "wind": self._draw.gamma(2.0, 3.0, len(moments))})


def fails(now: float, seconds: float) -> bool:
    """Whether the network of the north has failed at a time of the story.

    >>> [fails(now, 40.0) for now in (0.0, 12.0, 21.9, 22.0)]
    [False, True, True, False]
    """
    return FAILS * seconds <= now < RETURNS * seconds


def tell(folder: Path, wishes: Wishes, stage: StoryTeller) -> JoinsTold:
    """Lets the network of one station fail, and return."""
    seconds = wishes.seconds or (QUICK if wishes.quick else SECONDS)
    stage.say(INTRODUCTION)
    app, told = pushed(folder, "stations", _TEXT), JoinsTold(seconds)
    with app.start(policy=wishes.policy, master="local[2]", progress=lambda text: stage.say(f"   {text} ...")) as run:
        stage.say(f"{seconds:.0f} seconds of readings.\n")
        began = time.time()
        _play(run, began, told, stage)
        run.drain()
        told.sights.append(JoinSight.of(time.time() - began, 0, run.report()))
    return told


def _play(run: freshet.Run, began: float, told: JoinsTold, stage: StoryTeller) -> None:
    readings, waiting = Stations(SEED), list[pa.Table]()
    due = shown = 0.0

    def phase(now: float) -> str:
        return "the north is silent" if fails(now, told.seconds) else "all stations send"

    with stage.screen(phase, "the north is silent") as show:
        while (now := time.time() - began) < told.seconds:
            stage.check()
            tables = readings.rows(round(RATE * BEAT))
            waiting.append(tables.pop("north"))
            if not fails(now, told.seconds):
                tables["north"] = pa.concat_tables(waiting)
                waiting.clear()
            for name, table in tables.items():
                run.push(name, table)
            report = run.report()
            told.sights.append(JoinSight.of(now, sum(map(len, waiting)), report))
            if now >= shown:
                show(report, now)
                shown = now + 5 * BEAT
            due = max(due + BEAT, now)
            run.wait(max(0.0, began + due - time.time()))
        if waiting:
            run.push("north", pa.concat_tables(waiting))
    told.moments = readings.measured


CARD: Final = StoryCard("joins", "three stations, a network that fails, and a join that needs no window", text, tell)
