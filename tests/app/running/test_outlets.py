"""Sinks that never return must not keep a run from ending."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.app.declared.spec import QuerySpec, SinkLike
from freshet.app.running import outlets
from freshet.app.running.outlets import Outlets
from freshet.log import Log
from freshet.model import ARRIVAL
from freshet.sinks import Token

LONG = 60.0


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "state") as one:
        one.declare("q")
        yield one


def opened(log: Log, *sinks: SinkLike) -> Outlets:
    made = Outlets(log, [])
    made.open(QuerySpec("q", "", sinks=sinks))
    log.append("q", pa.table({"v": [1, 2, 3], ARRIVAL: [1, 2, 3]}))
    made.wake()
    return made


class Hanging:
    """A callback that does not return before it is let go."""

    def __init__(self) -> None:
        self._called, self._end = threading.Event(), threading.Event()

    def __call__(self, rows: pa.Table, token: Token) -> None:
        self._called.set()
        self._end.wait()

    def wait(self) -> None:
        assert self._called.wait(LONG)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    one = Hanging()
    yield one
    one._end.set()


@pytest.mark.parametrize("drain", [True, False])
def test_a_callback_that_never_returns_is_given_up(
    log: Log, hanging: Hanging, drain: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outlets, "PATIENCE", 0.5)
    monkeypatch.setattr(outlets, "HURRIED", 0.5)
    taken: list[int] = []
    one = opened(log, hanging, lambda rows, token: taken.append(rows.num_rows))
    hanging.wait()
    until = time.monotonic() + LONG
    while not taken and time.monotonic() < until:
        time.sleep(0.01)
    with caplog.at_level(logging.WARNING):
        one.stop(drain)
    assert "sink q/callback does not return and is given up: 3 rows wait for it in the log" in caplog.text
    one.stop(False)  # harmless
    assert taken == [3]
    assert log.cursor("q/callback") == 0
    told = one.states()["q/callback"]
    assert (told["waiting"], told["state"], told["reason"]) == (3, "failing", "it does not return")


def started(function: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def test_a_hurry_while_sinks_drain_ends_that(log: Log, hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlets, "PATIENCE", 10 * LONG)
    monkeypatch.setattr(outlets, "HURRIED", 0.2)
    one = opened(log, hanging)
    hanging.wait()
    stopping = started(one.stop, True)
    stopping.join(0.3)
    assert stopping.is_alive()
    one.hurry()
    stopping.join(LONG)
    assert not stopping.is_alive()


def test_a_query_with_a_callback_that_never_returns_can_be_dropped(
    log: Log, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlets, "LAST_WORDS", 0.2)
    one = opened(log, hanging)
    hanging.wait()
    dropping = started(one.drop, "q")
    dropping.join(LONG)
    assert not dropping.is_alive()
    one.stop(False)
