"""Kills an application of a benchmark again and again, and lets it drain at last."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from freshet.bench.crash import Victims
from freshet.bench.crash.kill import draw_kills
from freshet.bench.stage import Stage


def kill_until_drained(stage: Stage, program: str, *, kills: int, seed: int, rate: float, longest: float) -> Path:
    """The state folder of an application after its drivers and residents were killed, and it has drained.

    Args:
        stage: Where.
        program: The application; see :class:`~freshet.bench.crash.Victims`.
        kills: How often.
        seed: Of the moments and victims.
        rate: Tuples per second of each stream.
        longest: Maximum seconds that a process runs before a kill.
    """
    folder = stage.folder / "killed"
    folder.mkdir()
    with closing(Victims(folder, rate, program)) as victims, stage.steps("killing", kills) as advance:
        for kill in draw_kills(kills, seed):
            # There are no executors of their own: where one would be killed, the driver is.
            kill = replace(kill, victim="driver") if kill.victim == "executor" else kill
            victims.run_and_kill(kill, longest)
            advance()
        victims.drain()
    return folder / "state"
