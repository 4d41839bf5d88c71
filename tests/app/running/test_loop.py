"""The engine's thread, over a simulated world in real time."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from freshet.app.running.loop import Loop, Rounds
from freshet.app.running.observers import DecisionKeeper
from freshet.engine import Engine, Event, RealClock
from freshet.engine.events import Decided
from freshet.model import Decision, Step, UserError
from freshet.policies import Everything, create
from freshet.simulation.executor import SimulatedExecutor
from freshet.simulation.log import SimulatedLog
from freshet.simulation.view import RecordView


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


def test_what_is_measured_after_the_end_is_measured_as_of_the_end() -> None:
    loop = Loop(engine())
    loop.start()
    loop.engine.stop(drain=True)
    assert loop.join(30)
    ended = time.time()
    time.sleep(0.02)
    assert loop.engine.clock.now() <= ended
    assert loop.engine.snapshot() == loop.engine.snapshot()


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


FOR_EVER = 600.0


def test_rounds_come_when_something_has_happened() -> None:
    done = threading.Semaphore(0)
    rounds = Rounds("test", 0.0, done.release, quiet=FOR_EVER)
    rounds.start()
    for _ in range(3):
        rounds.tell(Event(0.0))
        assert done.acquire()
    rounds.stop()  # does not wait for the quiet to end
    assert not done.acquire(blocking=False), "nothing had happened since"


def test_what_happens_during_a_round_brings_one_more() -> None:
    begun, goes_on, done = threading.Semaphore(0), threading.Semaphore(0), threading.Semaphore(0)

    def work() -> None:
        begun.release()
        goes_on.acquire()
        done.release()

    rounds = Rounds("test", 0.0, work, quiet=FOR_EVER)
    rounds.start()
    rounds.tell(Event(0.0))
    assert begun.acquire()
    for _ in range(5):
        rounds.tell(Event(0.0))
    goes_on.release(2)
    assert done.acquire()
    assert done.acquire()
    rounds.stop()
    assert not done.acquire(blocking=False), "all of it was in the second one"


def test_reasons_are_asked_for_only_as_often_as_they_are_cheap() -> None:
    moments = iter([0.0, 0.05, 9.0, 9.0, 9.0, 9.0])
    keeper, policy, view = DecisionKeeper(moments.__next__), create("fcfs"), RecordView()

    def decided(now: float, *steps: Step) -> Decided:
        decision = Decision.run(*steps)
        return Decided(now, decision, 0.0, lambda: policy.why(view, decision))

    for now in (1.0, 5.9, 6.0, 6.1):
        keeper.tell(decided(now, Step((0,))))
    keeper.tell(decided(7.0))
    assert [moment for moment, _ in keeper.latest] == [1.0, 6.0, 6.1], "the first one took a hundredth of five seconds"
    assert list(moments) == []
