"""The parts of the bench of joins by ordered keys that need no Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from freshet.bench.wojoin import victim
from freshet.bench.wojoin.hindsight import hindsight, watermark_delay
from freshet.bench.wojoin.kills import check
from freshet.bench.wojoin.zeek import Merged, ZeekLog
from freshet.log import LogReader
from freshet.testing import LocalRun


def test_the_check_after_kills_knows_right_from_wrong(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    with LocalRun(victim.declare(tmp_path)) as run:
        for push in range(60):
            for name in "ab":
                run.push(name, victim.rows(name, 1_000_000 + 20 * push, 30, draw))
            run.drain()
            if push == 30:
                run.crash()
        with LogReader(run.folder) as log:
            found = check(log)
            assert (found.wrong, found.let_go > 0, found.past > 0) == (0, True, True)
            assert found.rows > 500

        class Less(LogReader):
            """A log that has forgotten what was let go."""

            def let_go(self, stream: str, first: int, end: int, join: str) -> tuple[int, ...]:
                return ()

        with Less(run.folder) as log:
            assert check(log).wrong > 0


def test_a_watermark_of_the_batches_before_holds_more() -> None:
    keys = np.arange(4000) * 1000
    late = np.where(np.arange(4000) % 7 == 0, keys - 50_000, keys)
    merged = Merged(ZeekLog(keys, ("x",) * 4000), ZeekLog(late, ("x",) * 4000))
    found = hindsight(merged, 1.0, 200)
    assert found["ss"] > found["ss_by_row"] > 0
    assert watermark_delay(merged, 1.0, 200) <= watermark_delay(merged, 1.0, 1)
