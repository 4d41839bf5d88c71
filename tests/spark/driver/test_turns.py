from __future__ import annotations

import threading
import time

import pytest

from freshet.spark.driver import turns
from freshet.spark.driver.turns import Floor, TimeLimit, TookTooLong

LONG = 60.0


def test_one_that_must_be_alone_waits_for_the_others_and_they_for_it() -> None:
    floor, inside, seen = Floor(), threading.Event(), []
    done = threading.Event()

    def together() -> None:
        with floor.together():
            inside.set()
            done.wait(LONG)
            seen.append("together")

    def alone() -> None:
        with floor.alone():
            seen.append("alone")

    first = threading.Thread(target=together)
    first.start()
    assert inside.wait(LONG)
    second = threading.Thread(target=alone)
    second.start()
    second.join(0.1)
    assert seen == []
    done.set()
    for thread in (first, second):
        thread.join(LONG)
    assert seen == ["together", "alone"]


def test_a_job_that_takes_too_long_is_cancelled_and_says_so() -> None:
    cancelled = threading.Event()
    limit = TimeLimit(0.2, lambda unit: cancelled.set(), lambda unit: None)

    def job() -> None:
        with limit.watch("u"):
            assert cancelled.wait(LONG)
            raise RuntimeError("cancelled")

    with pytest.raises(TookTooLong, match=r"longer than 0\.2 s"):
        job()
    limit.stop()


def test_a_job_that_begins_after_its_cancellation_is_cancelled_again() -> None:
    cancelled: list[str] = []
    limit = TimeLimit(0.1, cancelled.append, lambda unit: None)
    until = time.monotonic() + LONG
    with limit.watch("u"):
        while len(cancelled) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    limit.stop()
    assert cancelled[:3] == ["u", "u", "u"]


def test_the_error_of_a_job_in_time_is_its_own() -> None:
    limit = TimeLimit(LONG, lambda unit: None, lambda unit: None)
    with pytest.raises(RuntimeError, match="its own"), limit.watch("u"):
        raise RuntimeError("its own")
    limit.stop()


def test_a_job_that_does_not_end_when_it_is_cancelled_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "GRACE", 0.1)
    stuck = threading.Event()

    def fails(unit: str) -> None:
        raise ConnectionError("nobody answers")

    limit = TimeLimit(0.1, fails, lambda unit: stuck.set())
    with limit.watch("u"):
        assert stuck.wait(LONG)
    limit.stop()


def test_without_a_limit_nothing_is_watched() -> None:
    with TimeLimit(None, lambda unit: None, lambda unit: None).watch("u"):
        pass
