"""Answers do not depend on the optimizer: on when it looks, what it switches, and where a crash ends it."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from freshet.app import App
from freshet.engine import Optimizer, RunMemory
from freshet.quality.optimizer import DecisionTable, LookSettings
from freshet.testing import LocalRun, answers, assert_same

QUERIES = {
    "plain": "SELECT ts, k, v FROM s WHERE v > 3",
    "joined": "SELECT s.ts, s.k, s.v + t.v AS total FROM s [RANGE 5 SECONDS], t [RANGE 5 SECONDS] WHERE s.k = t.k",
    "sums": "SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k",
    "on_top": "SELECT k, total FROM joined WHERE total > 5",
}
TABLE = DecisionTable.parse(
    {
        "latency": {"pcs(2)": 4, "segment(1)": 1, "simplified-segment(3)": 3, "everything": 2},
        "memory": {"pcs(2)": 1, "segment(1)": 4, "simplified-segment(3)": 3, "everything": 2},
    }
)
HARD, SOFT = 0.001, 1e8


def steps(turns: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Figures that hold from one time to the next."""
    return [point for (at, old), (_, new) in pairwise(turns) for point in ((at, old), (at, new))]


def application(generator: random.Random) -> App:
    """Latency and memory take turns in being violated, so that strategies change all the time."""
    app = App("optimized", share=generator.choice(["never", "always"]))
    for stream in ("s", "t"):
        app.stream(stream, "ts timestamp, k string, v int", event_time="ts", lateness="1000 s")
    for name, text in QUERIES.items():
        turns = [(generator.uniform(0.3, 1.5) * number, (HARD, SOFT)[number % 2]) for number in range(40)]
        latency = steps(sorted(turns))
        memory = [(at, HARD + SOFT - figure) for at, figure in latency]
        app.query(name, text, expect={"latency": latency, "memory": memory})
    return app


def rows(generator: random.Random, count: int) -> list[dict[str, object]]:
    return [{"ts": number / 3, "k": generator.choice("abc"), "v": generator.randrange(10)} for number in range(count)]


@pytest.mark.parametrize("seed", range(9))
def test_looks_switches_and_crashes_change_no_answer(seed: int) -> None:
    generator = random.Random(seed)
    app = application(generator)
    given = {stream: rows(generator, 60) for stream in ("s", "t")}
    memory, predict = RunMemory(), seed % 2 == 1

    def watched() -> Optimizer:
        settings = LookSettings(every=0.3, least_stay=0.0)
        return Optimizer(settings=settings, table=lambda query: TABLE, memory=memory, predict=predict)

    with LocalRun(app, workers=generator.choice([1, 2]), seed=seed) as run:
        run.engine.use(watched())
        left = {stream: list(each) for stream, each in given.items()}
        while any(left.values()):
            for stream, each in left.items():
                count = generator.randrange(8)
                run.push(stream, each[:count])
                del each[:count]
            for _ in range(generator.randrange(5)):
                run.turn()
            if generator.random() < 0.1:
                run.crash(seed=generator.randrange(1000))
                run.engine.use(watched())
        run.close_windows()
        assert run.drain()
        assert not run.stopped
        found = {name: run.rows(name) for name in QUERIES}
    switched = [look for looks in memory.looks.values() for look in looks if look.switches and look.applied]
    assert switched or seed == 7, "there, what a query begins with stays the best"
    for name, expected in answers(app, given).items():
        assert_same(found[name], expected)
