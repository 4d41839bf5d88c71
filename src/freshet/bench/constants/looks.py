"""The part of ``freshet bench constants`` on looking again: a turn of the engine that finds nothing to run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final

from freshet.bench.figures import Spread, quartiles
from freshet.bench.rows import STREAM, make_rows
from freshet.bench.stage import Stage
from freshet.engine.admission import LOOK_AGAIN
from freshet.model import NOTHING, Decision, View
from freshet.policies import Everything

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TURNS: Final = 200


class Declines(Everything):
    """Looks at everything that waits, as its parent does, and then runs nothing."""

    name: ClassVar[str] = "declines"

    def decide(self, view: View) -> Decision:
        super().decide(view)
        return NOTHING


def look_figures(stage: Stage, session: SparkSession, queries: int) -> dict[str, float | Spread]:
    """Milliseconds of CPU of a turn of the engine while tuples of all queries wait, and the share of a core that this
    costs if the engine looks again as often as it does."""
    from freshet.bench.rig.engine import EngineRig

    with EngineRig(session, stage.folder / "looks", [STREAM], resident=1) as rig:
        rig.add_queries(
            {f"q{number}": f"SELECT id, v FROM {STREAM.name} WHERE k = {number}" for number in range(queries)}
        )
        rig.engine.set_policy(Declines())
        rig.append({STREAM.name: make_rows(0, 1000)})
        found = []
        for _ in range(_TURNS):
            began = time.thread_time()
            rig.engine.turn()
            found.append(time.thread_time() - began)
    turn = quartiles(found[_TURNS // 10 :])
    return {f"look_again_ms_{queries}": turn.times(1e3), f"look_again_share_{queries}": turn.times(1.0 / LOOK_AGAIN)}
