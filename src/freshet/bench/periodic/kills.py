"""Kills an application with periodic queries at levels below 1, again and again, and compares all answers."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from freshet.bench.crash.until_drained import kill_until_drained
from freshet.bench.periodic import victim
from freshet.bench.periodic.answers import AnswerCheck, AnswersChecked
from freshet.bench.stage import Stage
from freshet.log import LogReader

RATE: Final = 10_000.0
"""Tuples per second of each stream."""
LONGEST_S: Final = 5.0
"""Maximum seconds that a process runs before a kill."""


class KilledAnswers(NamedTuple):
    """What was found after kills.

    Args:
        checked: All answers, compared.
        ended_early: How many answers of the last process ended with a part of what they were to read.
    """

    checked: AnswersChecked
    ended_early: int


def killed_answers(stage: Stage, kills: int, seed: int = 17, rate: float = RATE) -> KilledAnswers:
    """Kills drivers and residents so often, lets the application drain, and checks every answer.

    Args:
        stage: Where.
        kills: How often.
        seed: Of the moments and victims.
        rate: Tuples per second of each stream.
    """
    state = kill_until_drained(stage, victim.__file__, kills=kills, seed=seed, rate=rate, longest=LONGEST_S)
    with LogReader(state) as log:
        checked = AnswerCheck(log, victim.bed_of(rate)).all(log.instances())
    queries = json.loads((state.parent / victim.REPORT).read_text())["queries"].values()
    return KilledAnswers(checked, sum(each["instances"]["ended_early"] for each in queries if each["instances"]))
