"""A resident: a Spark task that runs for long, and is handed parts of units by the driver over a connection.

It speaks JSON. The driver says ``["run", number, part, assignment]``, ``["cancel", number]`` or ``["end"]``. The
resident answers ``["done", number, seconds, report]``, ``["cancelled", number]``, ``["failed", number, reason]``, or
``["lacking", number]`` if the assignment is brief and the resident has not kept a state.
Numbers are those of dispatches: an answer to any other than the present one means nothing. It ends when the connection
is closed, so nothing is left behind whatever happens to the driver.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from freshet.spark.driver.failures import message
from freshet.spark.worker.assignment import Assignment
from freshet.spark.worker.report import REPORT_COLUMNS
from freshet.spark.worker.task import Task, drain
from freshet.spark.worker.vectorised import KEPT, Lacking, run_task, set_aside_now
from freshet.spark.worker.wire import Channel, prove_worker

LOOK: Final = 0.02
"""Minimum number of seconds between looks at whether a running dispatch was cancelled."""

_LAST_LOOK: Final = 0.5
"""Seconds in which a resident without connection looks whether its driver still has the socket."""
_SOCKETS: Final = Path("/proc/net/unix")

_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds without a word until the other side is asked whether it is there, seconds between two questions, and how
many remain without an answer until the connection counts as broken."""


@dataclass(frozen=True)
class Post:
    """Where a resident reports for duty, and as whom.

    Args:
        address: A path (Unix socket), or host and port.
        secret: Known to the driver and to its tasks.
        seat: Which of the driver's residents it is.
        term: Which one in this seat; the driver refuses those of earlier terms.
    """

    address: str | tuple[str, int]
    secret: bytes = field(repr=False)
    seat: int
    term: int

    def connect(self) -> Channel:
        """Connects to the driver."""
        if isinstance(self.address, str):
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connected.connect(self.address)
        else:
            connected = socket.create_connection(self.address, timeout=30.0)
            tune(connected)
        prove_worker(connected, self.secret)
        channel = Channel(connected)
        context = TaskContext.get()
        task = -1 if context is None else context.taskAttemptId()
        channel.send_all(json.dumps([self.seat, self.term, os.getpid(), socket.gethostname(), task]))
        return channel


def tune(connected: socket.socket) -> None:
    """Sends at once over TCP, and notices a machine that has gone."""
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Otherwise most systems ask for the first time after two hours.
    for name, value in _KEEP_ALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def resident_plan(session: SparkSession, post: Post) -> DataFrame:
    """The plan of one resident; it runs until the driver lets it go."""
    return session.range(0, 1, 1, 1).mapInArrow(partial(run_resident, post), REPORT_COLUMNS)


def run_resident(post: Post, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the task of a resident does, until the driver lets it go or has gone."""
    drain(batches)
    channel = post.connect()
    try:
        _serve(channel)
    except (EOFError, OSError):
        # The driver has gone, or has put another one into this seat.
        if isinstance(post.address, str):
            _clear(Path(post.address))
    finally:
        channel.close()
    yield from ()


def _clear(address: Path) -> None:
    """Removes the socket of a driver that was killed, and its folder; nobody else would before the next run."""
    until = perf_counter() + _LAST_LOOK
    while _is_open(address):  # a system that ends a process closes its connections one after the other
        if perf_counter() > until:
            return
        sleep(_LAST_LOOK / 20)
    with suppress(OSError):  # another resident may be quicker
        address.unlink(missing_ok=True)
        address.parent.rmdir()


def _is_open(address: Path) -> bool:
    """Whether some process has a socket. To connect would tell, too, but a driver that runs warns of strangers."""
    try:
        sockets = _SOCKETS.read_text(errors="replace")
    except OSError:
        return True  # this system does not tell
    return any(line.endswith(f" {address}") for line in sockets.splitlines())


def _serve(channel: Channel) -> None:
    while True:
        for text in channel.receive():
            told = json.loads(text)
            if told[0] == "end":
                return
            if told[0] == "run":
                _, number, part, fields = told
                channel.send_all(_answer(channel, number, part, fields))
        set_aside_now()


def _answer(channel: Channel, number: int, part: int, fields: Any) -> str:
    began = perf_counter()
    watch = _Watch(channel, number)
    try:
        task = Task.of(Assignment.of(fields), part, f"d{number}")
        report = run_task(task, watch.look)
    except _Cancelled:
        return json.dumps(["cancelled", number])
    except Lacking:
        return json.dumps(["lacking", number])
    except EOFError:
        raise
    except Exception as error:
        KEPT.clear()
        return json.dumps(["failed", number, message(error)])
    if any(chain.failure is not None for chain in report.chains):
        # Perhaps there was no memory left beside them; the driver has the unit run as a Spark job in any case.
        KEPT.clear()
    return f'["done",{number},{perf_counter() - began:.6f},{report.text()}]'


class _Cancelled(Exception):
    """The driver no longer wants what runs now."""


class _Watch:
    """Looks, between the chains of a dispatch, for its cancellation."""

    def __init__(self, channel: Channel, number: int) -> None:
        self._channel, self._number = channel, number
        self._next = perf_counter() + LOOK

    def look(self) -> None:
        now = perf_counter()
        if now < self._next:
            return
        self._next = now + LOOK
        for text in self._channel.take():
            if json.loads(text) in (["cancel", self._number], ["end"]):
                raise _Cancelled
