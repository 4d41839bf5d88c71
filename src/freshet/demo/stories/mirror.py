"""The mirror: 300 prices of a shop change, and there are polls for a few of them only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

import freshet
from freshet.bench.mirror.server import ServerSettings, read_record, serving
from freshet.demo.stories import StoryCard, StoryTeller, Wishes
from freshet.mirror import Elements, perceived_freshness, plan
from freshet.plots import DOTS, PlotPoint, draw_line, label_ends, new_figure, plain_numbers

SECONDS: Final = 45.0
QUICK: Final = 12.0
ITEMS: Final = 300
BUDGET: Final = 40.0
LOOK: Final = 0.5
SEED: Final = 7
INTRODUCTION: Final = """\
A shop has 300 items whose prices change, some every second, some hardly ever. Customers look at a few of them most of
the time. The mirror may poll 40 prices a second; about 150 change in that time. It learns which change how often.
"""
_TEXT: Final = """\
[app]
name = "shop"

[streams.prices]
schema = "element string, version bigint, value double, polled timestamp, changed timestamp"

[streams.prices.source]
kind = "mirror"
budget = 40
elements = {file = "items.csv"}  # element, worth
http = {url = "ADDRESS/shop/{element}"}
change_every = "3 s"
audit = 0.1

[queries.cheap]
sql = "SELECT element, value FROM prices WHERE value < 20"
"""


def text() -> str:
    """The application file."""
    return _TEXT.replace("ADDRESS", "http://127.0.0.1:8000")


@dataclass(frozen=True, slots=True)
class Glance:
    """The mirror at a moment: what it estimates of itself, and what it had done."""

    time: float
    estimated: float
    polls: int
    changes: int


@dataclass(slots=True)
class MirrorTold:
    """The mirror, when the story is over.

    Args:
        glances: The mirror in the course of time.
        course: Measured perceived freshness by second, from the record of the shop.
        report: What the mirror said at the end.
        best: Perceived freshness of the best plan if all rates were known.
        even: Perceived freshness if all items were polled alike.
    """

    glances: list[Glance] = field(default_factory=list)
    course: list[tuple[float, float]] = field(default_factory=list)
    report: Mapping[str, Any] = field(default_factory=dict)
    best: float = 0.0
    even: float = 0.0

    @property
    def reached(self) -> float:
        """Measured perceived freshness in the second half of the story."""
        return float(np.mean([value for _, value in self.course[len(self.course) // 2 :]]))

    def save(self, path: Path) -> None:
        """Draws the picture."""
        figure = new_figure(8.0, 4.5)
        axes = figure.subplots()
        lines = [("measured", self.course), ("estimated", [(each.time, each.estimated) for each in self.glances[::2]])]
        ends = []
        for number, (name, points) in enumerate(lines):
            drawn = [PlotPoint.of(when, [value]) for when, value in points]
            draw_line(axes, drawn, number)
            ends.append((name, drawn[-1], number))
        last = self.course[-1][0]
        for number, (name, value) in enumerate((("best plan", self.best), ("all alike", self.even)), start=2):
            flat = [PlotPoint.of(0.0, [value]), PlotPoint.of(last, [value])]
            draw_line(axes, flat, number, dashed=True)
            ends.append((name, flat[-1], number))
        axes.set_title("What customers look at is right so often, while the mirror learns", loc="left", fontsize=11)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("perceived freshness")
        plain_numbers(axes)
        label_ends(axes, ends)
        figure.savefig(path, format="png", dpi=DOTS)

    def paragraphs(self) -> list[str]:
        """What was seen, in words."""
        told = self.report
        audited = told["freshness_audited"]
        measured = (
            ""
            if audited is None
            else (f" Over the whole story, {audited:.0%} of the copies were right by its {told['audits']} audits.")
        )
        return [
            f"The mirror made {told['polls']:,} polls, {told['budget_used']:.0%} of its budget, and met "
            f"{told['changes']:,} changes. In the second half of the story, {self.reached:.0%} of what customers "
            f"looked at was right, by the shop's own record.{measured}",
            f"With the same budget, polls of all items alike would reach {self.even:.0%}; the best plan, if all rates "
            f"were known from the beginning, {self.best:.0%}.",
        ]

    def to_json(self) -> dict[str, Any]:
        """All figures."""
        return {**asdict(self), "report": dict(self.report), "reached": self.reached}


def tell(folder: Path, wishes: Wishes, stage: StoryTeller) -> MirrorTold:
    """Starts a shop, and mirrors its prices."""
    seconds = wishes.seconds or (QUICK if wishes.quick else SECONDS)
    rates, worth = items(SEED)
    stage.say(INTRODUCTION)
    stage.say("1. A shop opens: a web server on this machine.")
    settings = ServerSettings(rates.tolist(), time.time(), seconds + 300.0, SEED, str(folder / "shop"))
    with serving(settings) as address:
        app = _app(folder, address, worth, wishes.policy)
        stage.say(f"2. {seconds:.0f} seconds of polls.\n")
        glances, since, report = _watched(app, seconds, stage)
    elements = Elements.of(rates, worth)
    record, changing = read_record(folder / "shop"), settings.changing()
    marks = np.arange(since, since + seconds, 1.0).tolist()
    course = [
        (mark - since + 0.5, float(changing.freshness([each for each in record if each.time <= mark + 1.0], mark,
                                                       mark + 1.0) @ worth))
        for mark in marks
    ]  # fmt: skip
    even = perceived_freshness(elements, np.full(ITEMS, BUDGET / ITEMS))
    return MirrorTold(glances, course, report, plan(elements, BUDGET).perceived, even)


def items(seed: int) -> tuple[Any, Any]:
    """Change rates and worth of the items (CAR Table 2.2: gamma and Zipf)."""
    generator = np.random.default_rng(seed)
    rates = np.maximum(generator.gamma(1.0, 0.5, ITEMS), 1e-3)
    worth = 1.0 / np.arange(1, ITEMS + 1)
    generator.shuffle(worth)
    return rates, worth / worth.sum()


def _app(folder: Path, address: str, worth: Any, policy: str | None) -> freshet.App:
    rows = [f"{number},{value!r}" for number, value in enumerate(worth.tolist())]
    (folder / "items.csv").write_text("\n".join(["element,worth", *rows]) + "\n")
    file = folder / "shop.toml"
    chosen = "" if policy is None else f'policy = "{policy}"\n'
    file.write_text(_TEXT.replace("ADDRESS", address).replace('name = "shop"\n', f'name = "shop"\n{chosen}'))
    return freshet.App.from_toml(file)


def _watched(app: freshet.App, seconds: float, stage: StoryTeller) -> tuple[list[Glance], float, Mapping[str, Any]]:
    glances = list[Glance]()
    with app.start(master="local[2]", progress=lambda text: stage.say(f"   {text} ...")) as run:
        since = time.time()
        with stage.screen(lambda now: "prices change", "") as show:
            while (now := time.time() - since) < seconds:
                stage.check()
                run.wait(LOOK)
                report = run.report()
                told = report["mirrors"]["prices"]
                glances.append(Glance(now, told["freshness"] or 0.0, told["polls"], told["changes"]))
                show(report, now)
    return glances, since, told


CARD: Final = StoryCard("mirror", "prices of a shop that change faster than they may be polled", text, tell)
