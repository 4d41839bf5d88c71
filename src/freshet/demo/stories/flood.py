"""The flood: a network monitor of 25 queries gets more packets than the machine can answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from freshet.demo.calibration import measure
from freshet.demo.finished import FinishedDemo
from freshet.demo.monitor import text
from freshet.demo.play import play
from freshet.demo.plot import save
from freshet.demo.stories import StoryCard, StoryTeller, Wishes
from freshet.demo.story import Story
from freshet.demo.words import paragraphs

SECONDS: Final = 34.0
QUICK: Final = 10.0
CALIBRATION: Final = 5.0
ROUNDS: Final = 4
INTRODUCTION: Final = """\
A network monitor asks 25 continuous queries about the packets and logins that pass by: alerts that wake somebody up,
dashboards that somebody looks at, archives that nobody waits for. For some seconds more packets come than this
machine can answer. Then not all queries can be fresh: the scheduling policy decides which ones are.
"""


@dataclass(frozen=True, slots=True)
class Flooded:
    """The flood, when it is over."""

    seen: FinishedDemo

    def save(self, path: Path) -> None:
        """Draws the picture."""
        save(self.seen, path)

    def paragraphs(self) -> list[str]:
        """What was seen, in words."""
        return paragraphs(self.seen)

    def to_json(self) -> dict[str, Any]:
        """All figures."""
        return self.seen.to_json()


def tell(folder: Path, wishes: Wishes, stage: StoryTeller) -> Flooded:
    """Finds out what the machine sustains, and sends three times that for a while."""
    seconds = wishes.seconds or (QUICK if wishes.quick else SECONDS)

    def indented(line: str) -> None:
        stage.say(f"   {line}")

    stage.say(INTRODUCTION)
    stage.say("1. The demo finds out how many packets a second this machine sustains.")
    rounds = ROUNDS - wishes.quick
    found = measure(folder / "calibration", wishes.policy, rounds, CALIBRATION, indented, stage.check)
    story = Story(seconds, found.packets_per_s)
    stage.say(f"   On two cores it sustains about {story.sustained:,.0f} packets/s.\n")
    stage.say(
        f"2. {seconds:.0f} seconds of traffic: calm at {story.calm_rate:,.0f} packets/s; from second"
        f" {story.flood_start:.0f} to {story.flood_end:.0f} a flood of {story.flood_rate:,.0f} packets/s.\n"
    )

    def phase(now: float) -> str:
        return story.phase(now) if now <= story.seconds else "no more packets come; what waits is answered"

    with stage.screen(phase, "flood") as show:

        def watch(report: Mapping[str, Any], now: float) -> None:
            stage.check()
            show(report, now)

        return Flooded(play(folder / "monitor", story, wishes.policy, indented, watch))


CARD: Final = StoryCard("flood", "a network monitor of 25 queries, and more packets than it can answer", text, tell)
