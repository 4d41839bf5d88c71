"""What a join with a bound on its memory remembers, drawn at random with the ways to run it: never more than the bound,
also if policies run a box at a time, trains are small, units run side by side, states are divided and processes die."""

from __future__ import annotations

import random
import re
from typing import Any, get_args

import numpy as np
import pytest

from freshet import App
from freshet.model.join_buffer import JoinBuffer
from freshet.testing import LocalRun, Push
from freshet.testing.schedule import POLICIES, make_policy

SIZE = 65_536
QUICK, LONG = 10, 300
TEXTS = (
    "SELECT a.t, b.t AS u FROM a, b WHERE a.epoch = b.epoch",
    "SELECT a.t, b.t AS u FROM a LEFT JOIN b ON a.epoch = b.epoch AND b.n > 300",
    "SELECT x.t, y.t AS u FROM a x, a y WHERE x.epoch = y.epoch",
    "SELECT a.t, b.t AS u, c.t AS v FROM a, b, c WHERE a.epoch = b.epoch AND b.epoch = c.epoch",
    "SELECT x.t, b.t AS u FROM (SELECT epoch, t, n + 1 AS m FROM a WHERE n % 5 > 0) x, b WHERE x.epoch = b.epoch",
)


def pushed(draw: random.Random, streams: str, pushes: int) -> list[Push]:
    """Streams of wide rows, side by side or leading and lagging in turns, out of order by less than they declare."""
    at, done, name = dict.fromkeys(streams, 0), list[Push](), streams[0]
    stay = draw.choice((0.1, 0.5, 0.9))
    for number in range(pushes):
        name = name if draw.random() < stay else draw.choice(streams)
        rows = draw.randint(1, 14)
        keys = [max(0, at[name] + n // 2 - draw.randint(0, 2)) for n in range(rows)]
        texts = ["x" * draw.randint(0, 7000) for _ in range(rows)]
        drawn = enumerate(zip(keys, texts, strict=True))
        done.append(Push(name, [{"epoch": key, "n": number * 100 + n, "t": text} for n, (key, text) in drawn]))
        at[name] += rows // 2
    return done


def remembered(run: LocalRun) -> int:
    """Bytes of all states, as the workers have them."""
    states = [(each, low) for fold in run.engine.board.folds() for each, low in fold.lows.items()]
    ends = [(each, low, run.log.end(each)) for each, low in states if each in run.log.streams()]
    return sum(run.log.read(each, low, end).nbytes for each, low, end in ends if low < end)


def most_remembered(seed: int) -> tuple[int, int]:
    """The greatest number of bytes that a drawn case remembers at any time, and the number of its answers."""
    draw = random.Random(seed)
    text, buffer = draw.choice(TEXTS), draw.choice(get_args(JoinBuffer))
    streams = "".join(name for name in "abc" if re.search(rf"(FROM|JOIN|,) {name}\b", text))
    app = App("sensors")
    for name in streams:
        app.stream(name, "epoch int, n int, t string", ordered_by="epoch", disorder=draw.choice(("4 rows", "30 rows")))
    app.query("q", text, join_memory=SIZE, join_buffer=buffer)
    boxes: Any = draw.choice((("one-box", "baat"), POLICIES))
    pushes = pushed(draw, streams, 24)
    crash, pause = draw.choice((None, draw.randrange(len(pushes)))), draw.choice((0, 1, 5))
    most = 0
    with LocalRun(
        app,
        policy=make_policy(draw.choice(boxes), seed),
        workers=draw.randint(1, 3),
        max_train_rows=draw.choice((3, 20, 100_000)),
        seed=seed,
        resplits=draw.choice((0.0, 0.0, 0.3)),
    ) as run:

        def turn() -> int:
            run.turn()
            found = remembered(run)
            assert found <= SIZE, f"case {seed}, {buffer}: {found} bytes for {text}"
            return found

        for number, push in enumerate(pushes):
            if number == crash:
                run.crash(make_policy(draw.choice(boxes), seed), seed)
            run.push(push.stream, push.rows)
            for _ in range(draw.randint(0, pause)):
                most = max(most, turn())
        while not run.engine.is_idle():
            most = max(most, turn())
        return most, len(run.rows("q"))


def check(seeds: range) -> None:
    found = np.array([most_remembered(seed) for seed in seeds])
    assert np.max(found[:, 0]) > SIZE // 2, "the bound is made use of"
    assert np.median(found[:, 1]) > 0, "most cases have answers"


def test_no_schedule_remembers_more_than_the_bound() -> None:
    check(range(QUICK))


@pytest.mark.long
@pytest.mark.timeout(0)
def test_no_schedule_remembers_more_than_the_bound_in_hundreds_of_cases() -> None:
    check(range(QUICK, QUICK + LONG))


@pytest.mark.parametrize("policy", ["one-box", "baat", "rr(3)"])
def test_a_box_at_a_time_leaves_nothing_in_front_of_the_join(policy: str) -> None:
    """The ways into the join and the join are one box: no queue lies between them."""
    app = App("sensors")
    for name in "ab":
        app.stream(name, "epoch int, n int, t string", ordered_by="epoch", disorder="4 rows")
    app.query("q", TEXTS[-1], join_memory=SIZE)
    rows: list[dict[str, Any]] = [{"epoch": n, "n": n, "t": str(n)} for n in range(60)]
    with LocalRun(app, policy=make_policy(policy)) as run:
        for first in range(0, 60, 10):
            for name in "ab":
                run.push(name, rows[first : first + 10])
        queues = set[str]()
        while not run.engine.is_idle():
            run.turn()
            queues |= {name for name in run.log.streams() if run.log.kind(name) == "queue"}
        [fold] = run.engine.board.folds()
        inside = run.engine.board.undivided[fold.node.number]
        assert len(inside) > 3
        readers = {edge.edge.stream for each in inside for edge in run.engine.board.operators[each].edges}
        assert not queues & readers
        assert run.rows("q")
