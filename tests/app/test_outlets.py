"""Sinks that never return must not keep a run from ending."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.app import outlets
from freshet.app.outlets import Outlets
from freshet.app.spec import QuerySpec, SinkLike
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


@pytest.mark.parametrize("drain", [True, False])
def test_a_callback_that_never_returns_is_given_up(
    log: Log, drain: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outlets, "PATIENCE", 0.5)
    monkeypatch.setattr(outlets, "HURRIED", 0.5)
    called, forever = threading.Event(), threading.Event()
    taken: list[int] = []

    def hang(rows: pa.Table, token: Token) -> None:
        called.set()
        forever.wait()

    one = opened(log, hang, lambda rows, token: taken.append(rows.num_rows))
    assert called.wait(LONG)
    until = time.monotonic() + LONG
    while not taken and time.monotonic() < until:
        time.sleep(0.01)
    with caplog.at_level(logging.WARNING):
        one.stop(drain)
    assert "sink q/callback does not return and is given up: 3 rows wait for it in the log" in caplog.text
    one.stop(False)  # harmless
    assert taken == [3]
    assert log.cursor("q/callback") == 0
    forever.set()


def test_a_hurry_while_sinks_drain_ends_that(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlets, "PATIENCE", 10 * LONG)
    monkeypatch.setattr(outlets, "HURRIED", 0.2)
    forever, called = threading.Event(), threading.Event()

    def hang(rows: pa.Table, token: Token) -> None:
        called.set()
        forever.wait()

    one = opened(log, hang)
    assert called.wait(LONG)
    stopping = threading.Thread(target=one.stop, args=(True,), daemon=True)
    stopping.start()
    stopping.join(0.3)
    assert stopping.is_alive()
    one.hurry()
    stopping.join(LONG)
    assert not stopping.is_alive()
    forever.set()


def test_a_query_with_a_callback_that_never_returns_can_be_dropped(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlets, "LAST_WORDS", 0.2)
    forever, called = threading.Event(), threading.Event()

    def hang(rows: pa.Table, token: Token) -> None:
        called.set()
        forever.wait()

    one = opened(log, hang)
    assert called.wait(LONG)
    dropping = threading.Thread(target=one.drop, args=("q",), daemon=True)
    dropping.start()
    dropping.join(LONG)
    assert not dropping.is_alive()
    one.stop(False)
    forever.set()
