"""The thread that brings what a source has into the log."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import pyarrow as pa

from freshet.log import LogFull
from freshet.model import FreshetError
from freshet.model.messages import sentence
from freshet.sources.push import PushSource
from freshet.sources.source import Batch, EventClock, LogReading, Remembering, Source, Written
from freshet.sources.spark import SparkSource

if TYPE_CHECKING:
    from freshet.log import Intake, Log, Receipt
    from freshet.log.intake.intake import Rows

_LOGGER: Final = logging.getLogger(__name__)
_FIRST_WAIT: Final = 0.02
_LONGEST_WAIT: Final = 1.0
_PAUSE: Final = 1.0
"""A source counts as waiting after this many seconds without a row; less is the gap between two batches."""

FeederState = Literal["new", "running", "waiting", "held back", "exhausted", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class FeederStatus:
    """What a feeder has done.

    Args:
        stream: The stream that it feeds.
        state: ``waiting``: no row has come for a second, and none is due; ``held back``: the log has no room;
            ``exhausted``: the source has no more rows.
        reason: Why it is held back or failed.
        rows: Number of tuples in the log.
        dead: Number of malformed rows.
        late: Number of rows that came after the stream's lateness.
        batches: Number of appends.
        heartbeats: How often it reported that nothing came.
        held_back: How often it had to wait for room.
        held_seconds: How long it had to wait for room in total.
        failed_at: When it failed, in seconds since the epoch.
    """

    stream: str
    state: FeederState = "new"
    reason: str | None = None
    rows: int = 0
    dead: int = 0
    late: int = 0
    batches: int = 0
    heartbeats: int = 0
    held_back: int = 0
    held_seconds: float = 0.0
    failed_at: float | None = None


class Feeder:
    """Polls a source and appends what is due. The same transaction stores the source's position, so every row
    comes in exactly once, also over restarts.

    If the log has no room, the source is held back: the feeder tries the same batch again until it goes in. An
    error of the source ends this feeder with state ``failed``; the others are not affected.

    Args:
        source: Where rows come from; a :class:`PushSource` is connected, so that its rows come in the same way.
        intake: The stream's way into the log.
        log: The log, for the position and for heartbeats.
        stream: The stream's name.
        wake: Called from the feeder's thread (or the pusher's) after an append.
        clock: Wall-clock seconds.
        heartbeat: Seconds of silence after which a heartbeat is written, again and again; None: never. If the
            stream has event time, only a source that is an :class:`EventClock` can report it.
        interval: Seconds between polls, unless the source has more rows at once than fit into a batch.
    """

    def __init__(
        self,
        source: Source,
        intake: Intake,
        log: Log,
        stream: str,
        *,
        wake: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
        heartbeat: float | None = 1.0,
        interval: float = 0.02,
    ) -> None:
        self._source, self._intake, self._log = source, intake, log
        self._wake, self._clock = wake, clock
        self._heartbeat = math.inf if heartbeat is None else heartbeat
        self._interval = interval
        self._status = FeederStatus(stream)
        self._stopping = threading.Event()
        # An append and a heartbeat must not cross: a heartbeat says that nothing arrived before it.
        self._appending = threading.Lock()
        self._last_sign = self._last_rows = clock()
        # Pushes count rows on threads of their own, while the feeder's thread sets its state.
        self._telling = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"feeder-{stream}", daemon=True)

    @property
    def status(self) -> FeederStatus:
        """What it has done so far."""
        return self._status

    def start(self) -> None:
        """Continues from the source's position in the log."""
        position = self._log.source_position(self._status.stream)
        if position is not None:
            self._source.restore(position)
        if isinstance(self._source, Remembering) and (records := self._log.records(self._status.stream)):
            self._source.recall(records)
        if isinstance(self._source, LogReading):
            self._source.read_from(self._log)
        if isinstance(self._source, PushSource):
            self._source.connect(self._push, self._pushed_beat)
        if isinstance(self._source, SparkSource):
            self._source.connect(self._log, self._intake)
        self._set(state="running")
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Takes nothing more in; returns whether the thread has ended. What was not appended comes after a restart."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._stopping.wait(self._turn())
            self._set(state="stopped", reason=None)
        except BaseException as error:  # a source that calls sys.exit must not end the thread unseen
            reason = sentence(error)
            _LOGGER.warning("the source of stream %s failed: %s", self._status.stream, reason)
            _LOGGER.debug("the source of stream %s failed", self._status.stream, exc_info=True)
            self._set(state="failed", reason=reason, failed_at=self._clock())
        finally:
            self._source.close()

    def _turn(self) -> float:
        """Polls once; returns how long to wait."""
        now = self._clock()
        batch = self._source.poll(now)
        if batch is not None:
            appended = self._append(batch)
            return 0.0 if batch.more and appended else self._interval
        due = self._source.next_due()
        if due is None and self._status.state != "exhausted":
            # The source's last heartbeat comes before anybody hears that nothing more comes.
            self._beat(now, at_once=self._intake.event_time is not None)
        self._set(state=self._state(due, now))
        due = math.inf if due is None else due
        if due > now:
            self._beat(now)
        with self._appending:
            silent = self._last_sign + self._heartbeat - now
        # A wait always has an end, even if nothing is known to come, so that a clock that jumps does no harm.
        return max(self._interval, min(due - now, silent, _LONGEST_WAIT))

    def _state(self, due: float | None, now: float) -> FeederState:
        """Its state when nothing has come."""
        if due is None:
            return "exhausted"
        return "waiting" if due > now and now - self._last_rows >= _PAUSE else "running"

    def _append(self, batch: Batch) -> bool:
        """Appends a batch, waiting for room; returns False if it was told to stop before there was any."""
        wait, since = _FIRST_WAIT, None
        while True:
            try:
                self._take(batch)
                break
            except LogFull as full:
                # The state already says that it is held back.
                since = self._held_back(str(full).removeprefix(f"{self._status.stream} is held back: "), since)
            if self._stopping.wait(wait):
                return False
            wait = min(2 * wait, _LONGEST_WAIT)
        held = 0.0 if since is None else time.monotonic() - since
        self._set(state="running", reason=None, held_seconds=self._status.held_seconds + held)
        self._wake()
        return True

    def _held_back(self, reason: str, since: float | None) -> float:
        if since is not None:
            self._set(reason=reason)
            return since
        self._set(state="held back", reason=reason, held_back=self._status.held_back + 1)
        return time.monotonic()

    def _take(self, batch: Batch) -> None:
        with self._appending:
            if isinstance(batch.rows, Written):
                self._count(self._adopt(batch.rows, batch.position))
                return
            # The intake knows that text instead of a mapping is a dead letter.
            rows = cast("pa.Table | Sequence[Mapping[str, Any]]", batch.rows)
            append = self._intake.append
            self._count(append(rows, batch.arrivals, source_position=batch.position, records=batch.records))

    def _adopt(self, rows: Written, position: Mapping[str, Any]) -> Receipt:
        return self._intake.adopt(
            rows.files, newest=rows.newest, dead=rows.dead, late=rows.late, source_position=position
        )

    def _push(self, rows: Rows) -> Receipt:
        if self._stopping.is_set():
            raise FreshetError(f"stream {self._status.stream} takes no pushes: its application is stopping")
        with self._appending:
            receipt = self._intake.append(rows, round(self._clock() * 1e6))
            self._count(receipt)
        self._wake()
        return receipt

    def _count(self, receipt: Receipt) -> None:
        if receipt.end > receipt.first or receipt.dead or receipt.late:
            # A batch without rows only says how far the source is.
            self._last_sign = self._last_rows = self._clock()
        self._set(
            rows=self._status.rows + receipt.end - receipt.first,
            dead=self._status.dead + receipt.dead,
            late=self._status.late + receipt.late,
            batches=self._status.batches + 1,
        )

    def _beat(self, now: float, at_once: bool = False) -> None:
        """After a silence, or at once, reports the time: the wall clock's, or the source's own event time if the stream
        has event time and the source knows it."""
        with self._appending:
            if not at_once and now - self._last_sign < self._heartbeat:
                return
            self._last_sign = now
            time = now if self._intake.event_time is None else self._event_clock(now)
            if time is None:
                return
            try:
                self._count_beat(self._intake.heartbeat(round(time * 1e6)))
            except LogFull as full:
                self._set(reason=str(full))
                return
        self._wake()

    def _event_clock(self, now: float) -> float | None:
        return self._source.event_clock(now) if isinstance(self._source, EventClock) else None

    def _pushed_beat(self, time_us: int) -> None:
        with self._appending:
            self._count_beat(self._intake.heartbeat(time_us))
        self._wake()

    def _count_beat(self, news: bool) -> None:
        self._set(heartbeats=self._status.heartbeats + news)

    def _set(self, **changes: object) -> None:
        with self._telling:
            self._status = replace(self._status, **changes)  # type: ignore[arg-type]
