"""The engine's thread, over a simulated world in real time."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from freshet.app.loop import Loop
from freshet.engine import Engine, RealClock
from freshet.model import UserError
from freshet.policies import Everything
from freshet.simulation.executor import SimulatedExecutor
from freshet.simulation.log import SimulatedLog


def engine() -> Engine:
    clock = RealClock()
    log = SimulatedLog(clock, {"s": np.array([])})
    return Engine(log, SimulatedExecutor(log, clock, {}), clock, Everything())


def test_ask_runs_on_the_engines_thread_and_brings_errors_back() -> None:
    loop = Loop(engine())
    assert loop.ask(threading.current_thread) is threading.current_thread()
    loop.start()
    assert loop.ask(threading.current_thread).name == "freshet-engine"
    with pytest.raises(UserError, match="there is no query"):
        loop.ask(lambda: loop.engine.drop_query("none"))
    loop.engine.stop(drain=True)
    assert loop.join(30)
    assert loop.ask(threading.current_thread) is threading.current_thread()


def test_ask_never_hangs_when_the_engine_dies() -> None:
    loop = Loop(engine())
    failing = threading.Event()

    class Failing(Everything):
        def decide(self, view):
            raise ValueError("no idea")

    def die() -> None:
        failing.wait(30)
        loop.engine.set_policy(Failing())
        loop.engine.board.ready[0] = None

    loop.start()
    loop.engine.call(die)
    answers: list[str] = []
    asker = threading.Thread(target=lambda: answers.append(loop.ask(lambda: "still there")))
    asker.start()
    failing.set()
    assert loop.join(30)
    asker.join(30)
    assert answers == ["still there"]
    assert isinstance(loop.error, ValueError)
