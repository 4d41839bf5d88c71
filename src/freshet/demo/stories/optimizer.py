"""The optimizer: a query is to be quick, then small, then quick again, and gets another strategy each time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

import freshet
from freshet.app.remembered.looks import read_looks
from freshet.demo.counts import readings, unanswered
from freshet.demo.pushed import pushed
from freshet.demo.stories import StoryCard, StoryTeller, Wishes
from freshet.model import duration_text
from freshet.model.units import bytes_text
from freshet.plots import COLOURS, DOTS, PlotPoint, draw_line, label_ends, new_figure, plain_numbers
from freshet.quality.optimizer import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS: Final = 36.0
QUICK: Final = 12.0
QUERY: Final = "alerts"
BEAT: Final = 0.1
"""Seconds between two batches."""
CYCLE: Final = 4.0
"""Seconds from one burst to the next."""
BURST: Final = 1.6
"""How long a burst lasts."""
LOADS: Final = (0.25, 1.6)
"""Shares of the sustained rate that come between bursts, and in them."""
ROUNDS: Final = (20_000, 80_000, 160_000)
"""Numbers of rows by which the rate is found that the machine sustains; only the last counts."""
MESSAGE_BYTES: Final = 110.0
"""About what a message takes."""
WORDS: Final = ("the", "card", "was", "lost", "near", "my", "home", "and", "nobody", "found", "it", "stolen", "key")
SEED: Final = 11
PARTS: Final = ("quick", "small", "quick again")
QUICKLY: Final = 0.3
"""Seconds of latency that are expected of a quick query."""
NEVER: Final = 3600.0
PLENTY: Final = 1e12
INTRODUCTION: Final = """\
A bank watches payments and messages by one query. Payments are short, and most of them give an answer. Messages are
long, and most of them are dropped early. Both come in bursts. If payments run first, answers are quick; if messages
run first, memory is free soon. No order is best for both: the query says what it expects, and the optimizer chooses.
"""
_TEXT: Final = """\
[app]
name = "bank"
look_every = "500 ms"

[streams.payments]
schema = "id bigint, amount double"

[streams.payments.source]
kind = "generator"
arrival = {kind = "schedule", pieces = [["2.4 s", 10000], ["1.6 s", 60000]]}
columns = {id = {kind = "sequence"}, amount = {kind = "uniform", low = 0, high = 1000}}

[streams.messages]
schema = "id bigint, amount double, words string"

[streams.messages.source]
kind = "generator"
arrival = {kind = "schedule", pieces = [["2.4 s", 10000], ["1.6 s", 60000]]}

[streams.messages.source.columns]
id = {kind = "sequence"}
amount = {kind = "uniform", low = 0, high = 1000}
words = {kind = "choice", values = [
  "somebody has stolen my card 7 while I was on a train, and I need another one as soon as that is possible",
  "thank you for the kind letter about the new account; I shall come to your office on Monday or on Tuesday",
]}

[queries.alerts]
sql = '''
SELECT id, amount FROM payments WHERE sqrt(amount) % 1.0 < 0.9
UNION ALL
SELECT id, amount FROM messages
WHERE amount > 900 AND words RLIKE '(lost|stolen|found)[a-z ]*(card|key) [0-9]' '''

[queries.alerts.expect]
latency = {class = "must", points = [[0, "300 ms"], ["20 s", "300 ms"], ["20 s", "1 h"]]}  # quick for 20 seconds
memory = {class = "must", points = [[0, "1 GB"], ["20 s", "1 GB"], ["20 s", "500 KB"]]}    # and then small
"""


def text() -> str:
    """The application file. In the story, the rates and what is expected go by what the machine sustains."""
    return _TEXT


@dataclass(frozen=True, slots=True)
class OptimizerTold:
    """The story when it is over.

    Args:
        looks: What the optimizer saw and did, with seconds since the story began.
        part: How long each of the three parts lasted.
        sustained: Rows per second that this machine sustains.
        rows: Number of rows that came.
        missing: Number of rows that were not answered; below 0: answered twice.
    """

    looks: Sequence[tuple[float, Look]]
    part: float
    sustained: float
    rows: int
    missing: int

    def values(self, measure: str) -> list[tuple[float, float, float]]:
        """Of each look: when it was, what it measured, and what was expected."""
        found = [(when, each) for when, look in self.looks for each in look.measures if each.measure == measure]
        return [(when, each.observed, each.expected) for when, each in found if each.observed is not None]

    def mean(self, measure: str, part: int) -> float:
        """The mean of a measure over a part of the story."""
        own = [seen for when, seen, _ in self.values(measure) if part * self.part < when <= (part + 1) * self.part]
        return float(np.mean(own)) if own else 0.0

    def switches(self) -> list[tuple[float, Look]]:
        """The looks that changed the strategy."""
        return [(when, look) for when, look in self.looks if look.switches]

    def spells(self) -> list[tuple[str, float, float]]:
        """The strategies in turn, each with when it began and ended."""
        changes = self.switches()
        names = [self.looks[0][1].strategy, *(look.to for _, look in changes)]
        marks = [0.0, *(when for when, _ in changes), 3 * self.part]
        return list(zip(names, marks, marks[1:], strict=False))

    def save(self, path: Path) -> None:
        """Draws the picture."""
        figure = new_figure(9.0, 6.0)
        figure.suptitle("One query: it is to be quick, then small, then quick again", fontsize=13)
        latency, memory = figure.subplots(2, 1, sharex=True)
        self._draw(latency, "latency", 1.0, expected=(0, 2))
        self._draw(memory, "memory", 1e-6, expected=(1,))
        latency.set_ylabel("latency in seconds")
        memory.set_ylabel("MB that wait")
        memory.set_xlabel("seconds")
        figure.savefig(path, format="png", dpi=DOTS)

    def _draw(self, axes: Axes, measure: str, unit: float, expected: Sequence[int]) -> None:
        seen = [PlotPoint.of(when, [value * unit]) for when, value, _ in self.values(measure)]
        axes.set_xlim(0.0, len(PARTS) * self.part)
        axes.set_ylim(0.0, 1.3 * max(point.value for point in seen))
        names = sorted({name for name, _, _ in self.spells()})
        for name, since, until in self.spells():
            axes.axvspan(since, until, color=COLOURS[2 + names.index(name)], alpha=0.12, linewidth=0)
            if until - since > self.part / 3:
                axes.annotate(
                    name, ((since + until) / 2, 0.93), xycoords=axes.get_xaxis_transform(), ha="center", fontsize=9
                )
        draw_line(axes, seen, 0)
        for part in expected:
            own = [due * unit for when, _, due in self.values(measure) if part < when / self.part <= part + 1]
            for due in own[-1:]:
                sides = (part * self.part, (part + 1) * self.part)
                axes.plot(sides, (due, due), color=COLOURS[1], linestyle="--")
                axes.annotate("expected", (sides[0] + 0.2, due), color=COLOURS[1], va="bottom", fontsize=9)
        plain_numbers(axes)
        label_ends(axes, [(measure, seen[-1], 0)])

    def paragraphs(self) -> list[str]:
        """What was seen, in words."""
        told = [f"The query began with {self.looks[0][1].strategy}."]
        for when, look in self.switches():
            why = " and ".join(
                f"its {each.measure} was {_text(each.measure, each.observed)} where "
                f"{_text(each.measure, each.expected)} was expected"
                for each in look.measures
                if each.violated and each.observed is not None
            )
            told.append(f"In second {when:.0f} {why}: the optimizer took {look.to}.")
        latency = [_text("latency", self.mean("latency", part)) for part in range(3)]
        memory = [_text("memory", self.mean("memory", part)) for part in range(3)]
        return [
            " ".join(told),
            f"While it was to be quick, its latency was {latency[0]} and {latency[2]} on average, and "
            f"{memory[0]} and {memory[2]} waited. While it was to be small, {memory[1]} waited, and its latency was "
            f"{latency[1]}.",
            f"{self.rows:,} rows came, in bursts of {LOADS[1]:g} times the {self.sustained:,.0f} rows/s that this "
            f"machine sustains. {self._answered()} A change of the strategy changes no answer.",
        ]

    def _answered(self) -> str:
        if not self.missing:
            return "Each was answered."
        return f"{self.missing:,} of them were not answered as they should be."

    def to_json(self) -> dict[str, Any]:
        """All figures."""
        return {**asdict(self), "looks": [[when, look.record()] for when, look in self.looks]}


def _text(measure: str, value: float) -> str:
    return duration_text(round(value, 2)) if measure == "latency" else bytes_text(round(value))


class Traffic:
    """Payments and messages at random."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        texts = [" ".join(self._draw.choice(WORDS, 20)) + f" {number % 10}" for number in range(2_000)]
        self._texts = pa.array(texts)

    def rows(self, count: int) -> dict[str, pa.Table]:
        """Rows of both streams, as many of each."""
        tables = [
            {"id": self._draw.integers(0, 10**9, count), "amount": self._draw.random(count) * 1_000.0} for _ in range(2)
        ]
        chosen = self._texts.take(pa.array(self._draw.integers(0, len(self._texts), count)))
        return {"payments": pa.table(tables[0]), "messages": pa.table({**tables[1], "words": chosen})}


def tell(folder: Path, wishes: Wishes, stage: StoryTeller) -> OptimizerTold:
    """Finds out what the machine sustains, and changes what is expected of the query twice."""
    part = (wishes.seconds or (QUICK if wishes.quick else SECONDS)) / len(PARTS)
    stage.say(INTRODUCTION)
    app, traffic = pushed(folder, "bank", _TEXT), Traffic(SEED)
    read = readings(app)
    with app.start(policy=wishes.policy, master="local[2]", progress=lambda text: stage.say(f"   {text} ...")) as run:
        _expect(run, QUICKLY, PLENTY)
        stage.say("1. The demo finds out how many rows a second this machine sustains.")
        for rows in ROUNDS:
            stage.check()
            sustained = _sustained(run, traffic, rows)
        stage.say(f"   {sustained:,.0f} rows/s.")
        stage.say(f"2. {len(PARTS)} times {part:.0f} seconds of bursts.\n")
        began = time.time()
        _play(run, traffic, sustained, part, stage)
        run.drain()
        meters = run.meters()
    looks = [(each.look.time - began, each.look) for each in read_looks(app.state)]
    during = [(when, look) for when, look in looks if look.seconds <= when <= len(PARTS) * part]
    rows = sum(int(each["tuples"]) for each in meters["streams"].values())
    return OptimizerTold(during, part, sustained, rows, unanswered(read, meters)[QUERY])


def _sustained(run: freshet.Run, traffic: Traffic, rows: int) -> float:
    """Rows per second of a batch that is answered as a whole."""
    tables = traffic.rows(rows // 2)
    began = time.perf_counter()
    for name, table in tables.items():
        run.push(name, table)
    run.drain()
    return rows / (time.perf_counter() - began)


def load_at(now: float) -> float:
    """The load at a time of the story.

    >>> load_at(0.0), load_at(CYCLE - 0.1)
    (0.25, 1.6)
    """
    return LOADS[now % CYCLE >= CYCLE - BURST]


def _play(run: freshet.Run, traffic: Traffic, sustained: float, part: float, stage: StoryTeller) -> None:
    """Pushes rows, and says at the beginning of each part what is expected."""
    excess = (LOADS[1] - 1.0) * BURST * sustained / 2
    small = max(50_000, round(0.25 * excess * MESSAGE_BYTES))
    began, asked = time.time(), 0
    with stage.screen(lambda now: f"it is to be {PARTS[min(2, int(now / part))]}", "") as show:
        due = looked = 0.0
        while (now := time.time() - began) < len(PARTS) * part:
            stage.check()
            if int(now / part) > asked:
                asked = int(now / part)
                _expect(run, *((NEVER, small) if asked == 1 else (QUICKLY, PLENTY)))
            # A machine that is too busy to keep the beat gets fewer batches, not larger ones.
            for name, table in traffic.rows(round(sustained * load_at(now) * BEAT / 2)).items():
                run.push(name, table)
            if now >= looked:
                show(run.report(), now)
                looked = now + 5 * BEAT
            due = max(due + BEAT, now)
            run.wait(max(0.0, began + due - time.time()))


def _expect(run: freshet.Run, latency: float, memory: float) -> None:
    for measure, value in (("latency", latency), ("memory", memory)):
        run.set_expectation(QUERY, measure, {"class": "must", "points": value})


CARD: Final = StoryCard("optimizer", "a query that is to be quick, then small: its strategy changes", text, tell)
