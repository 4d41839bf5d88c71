"""Kills an application with periodic queries at levels below 1, again and again, and compares all answers."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from freshet.bench.crash import Victims
from freshet.bench.crash.kill import draw_kills
from freshet.bench.periodic import victim
from freshet.bench.periodic.answers import AnswerCheck, AnswersChecked
from freshet.bench.stage import Stage
from freshet.log import LogReader

RATE: Final = 10_000.0
"""Tuples per second of each stream."""
LONGEST_S: Final = 5.0
"""Maximum seconds that a process runs before a kill."""


def killed_answers(stage: Stage, kills: int, seed: int = 17, rate: float = RATE) -> AnswersChecked:
    """Kills drivers and residents so often, lets the application drain, and checks every answer.

    Args:
        stage: Where.
        kills: How often.
        seed: Of the moments and victims.
        rate: Tuples per second of each stream.
    """
    folder = stage.folder / "killed"
    folder.mkdir()
    with ExitStack() as stack:
        victims = Victims(folder, rate, victim.__file__)
        stack.callback(victims.close)
        with stage.steps("killing", kills) as advance:
            for kill in draw_kills(kills, seed):
                # There are no executors of their own: where one would be killed, the driver is.
                kill = replace(kill, victim="driver") if kill.victim == "executor" else kill
                victims.run_and_kill(kill, LONGEST_S)
                advance()
        victims.drain()
    with LogReader(folder / "state") as log:
        return AnswerCheck(log, victim.bed_of(rate)).all(log.instances())
