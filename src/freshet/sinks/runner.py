"""The thread that brings output from the log to sinks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pyarrow as pa

from freshet.log import Log
from freshet.model import ARRIVAL, FreshetError, UserError
from freshet.model.telling import sentence
from freshet.sinks.sink import GatheringSink, Sink, TellingSink, Token

_LOGGER: Final = logging.getLogger(__name__)
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 10.0

SinkState = Literal["running", "failing", "stopped"]


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """What a sink has done.

    Args:
        query: Whose output it takes.
        name: Its name.
        state: ``failing``: the last write raised and is tried again later.
        reason: Why it is failing.
        rows: Rows taken.
        batches: Writes.
        failures: Writes that raised.
        lost: Rows that the log had to give up before the sink took them; the log's ledger has the ranges.
        waiting: Rows that it has not taken yet.
        note: What a person should know of it besides, such as that its file was deleted.
    """

    query: str
    name: str
    state: SinkState = "running"
    reason: str | None = None
    rows: int = 0
    batches: int = 0
    failures: int = 0
    lost: int = 0
    waiting: int = 0
    note: str | None = None


class SinkRunner:
    """Moves new output to sinks, each with a cursor of its own: the reader ``<query>/<sink name>``.

    A sink that raises is opened anew from its last kept state and tried again after a while; the others go on. All
    sinks of a runner share its thread, so one that blocks for long deserves a runner of its own.

    Args:
        log: The log.
        interval: Seconds between writes to one sink, so that many small outputs become few writes.
        max_rows: Most rows in one write, but for a :class:`GatheringSink`.
        clock: Seconds for intervals and retries.
    """

    def __init__(
        self,
        log: Log,
        *,
        interval: float = 0.1,
        max_rows: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._interval, self._max_rows, self._clock = log, interval, max_rows, clock
        self._lanes: dict[str, _Lane] = {}
        self._changing = threading.Lock()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._draining = True
        self._thread = threading.Thread(target=self._run, name="sinks", daemon=True)

    def add(
        self, query: str, name: str, sink: Sink, *, start: Literal["earliest", "latest"] = "earliest"
    ) -> SinkStatus:
        """Opens a sink; it goes on from its cursor, a new one begins at ``start``. Allowed while running.

        Returns:
            Its status at the beginning: ``lost`` are the rows that came and went while it was parked.
        """
        reader = f"{query}/{name}"
        with self._changing:
            if reader in self._lanes:
                raise UserError(f"query {query} has a sink {name} already: give it another name")
            known = self._log.readers().get(reader)
            cursor = self._log.start_reader(reader, query, start, kind="sink", owner=query)
            status = SinkStatus(query, name, lost=0 if known is None else cursor - known.next)
            lane = _Lane(self._log, sink, reader, status)
            try:
                lane.open()
            except BaseException:
                # As if it had not been tried: nobody must wait for a sink that could not be opened.
                if known is None:
                    self._log.drop_reader(reader)
                elif known.parked:
                    self._log.park([reader])
                raise
            self._lanes[reader] = lane
        self._news.set()
        return status

    def hasten(self, query: str) -> None:
        """Lets the sinks of a query wait for nothing: they write what there is."""
        with self._changing:
            for lane in self._lanes.values():
                lane.hurried = lane.hurried or lane.status.query == query
        self._news.set()

    def remove(self, query: str, name: str | None = None) -> None:
        """Closes a sink, or all sinks of a query; their cursors stay in the log."""
        with self._changing:
            gone = [
                reader
                for reader, lane in self._lanes.items()
                if lane.status.query == query and name in (None, lane.status.name)
            ]
            lanes = [self._lanes.pop(reader) for reader in gone]
        for lane in lanes:
            lane.close()

    @property
    def statuses(self) -> list[SinkStatus]:
        """What the sinks have done until now."""
        with self._changing:
            return [lane.report() for lane in self._lanes.values()]

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def notify(self) -> None:
        """Says that there is new output; called by any thread."""
        self._news.set()

    def stop(self, *, drain: bool = True, timeout: float | None = None) -> bool:
        """Ends the thread and closes the sinks; returns whether it has ended in time.

        Args:
            drain: Hand over first what the log holds; a sink that is failing gets one more try.
            timeout: Longest wait in seconds.
        """
        self._draining = drain
        self._stopping.set()
        self._news.set()
        return self.join(timeout)

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end of the thread; returns whether it has come."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            self._round()
            # Without news it looks all the same: commits are not obliged to tell.
            if not self._stopping.is_set():
                self._news.wait(self._interval)
        if self._draining:
            self._drain()
        for lane in self._all():
            lane.close()

    def _all(self) -> list[_Lane]:
        with self._changing:
            return list(self._lanes.values())

    def _round(self) -> None:
        now = self._clock()
        for lane in self._all():
            if lane.due <= now:
                wrote = lane.move(self._max_rows, now)
                lane.rest(self._clock(), 0.0 if wrote >= self._max_rows else self._interval)

    def _drain(self) -> None:
        for lane in self._all():
            lane.hurried = True
            while lane.move(self._max_rows, self._clock()):
                pass


class _Lane:
    """One sink on its way through an output."""

    def __init__(self, log: Log, sink: Sink, reader: str, status: SinkStatus) -> None:
        self._log, self._sink, self._reader = log, sink, reader
        self.status = status
        self.due = 0.0
        self.hurried = False
        """Whether it no longer waits for more rows."""
        self._gathering = sink if isinstance(sink, GatheringSink) else None
        self._waits_since: float | None = None
        self._wait = _FIRST_WAIT
        self._using = threading.Lock()
        self._next: int | None = None

    def open(self) -> None:
        """Opens the sink; its state is kept before the first row is written, so that a crash finds it."""
        known = self._log.reader_state(self._reader)
        state = self._sink.open(known)
        self._next = self._cursor() if self._next is None else self._next
        if state != known:
            self._log.advance(self._reader, self.status.query, self._cursor(), state)

    def close(self) -> None:
        with self._using:
            if self.status.state != "stopped":
                self._sink.close()
                self._listen()
            if self.status.state == "running":
                self._set(state="stopped")

    def rest(self, now: float, interval: float) -> None:
        """Sets when it is due again."""
        self.due = now + (self._wait if self.status.state == "failing" else interval)

    def move(self, limit: int, now: float) -> int:
        """Hands one batch over; returns its rows, 0 where there was nothing, it waits for more, or it failed."""
        with self._using:
            if self.status.state == "stopped":
                return 0
            try:
                return self._move(limit, now)
            except BaseException as error:  # a function that calls sys.exit must not end the thread unseen
                self._fail(error)
            return 0

    def _move(self, limit: int, now: float) -> int:
        if self.status.state == "failing":
            self.open()
        first, query = self._cursor(), self.status.query
        most = limit if self._gathering is None else self._gathering.most_rows
        end = min(self._log.end(query), first + most)
        if end > first:
            if self._waits(end - first, now):
                return 0
            state = self._write(Token(query, first, end), limit)
            self._log.advance(self._reader, query, end, state)
            self._waits_since = None
        self._seen(first, end)
        self._listen()
        self._wait = _FIRST_WAIT
        self._set(
            state="running",
            reason=None,
            rows=self.status.rows + end - first,
            batches=self.status.batches + (end > first),
        )
        return end - first

    def _waits(self, rows: int, now: float) -> bool:
        """Whether a sink that gathers rows waits for more; not where nothing more comes before it has taken some."""
        sink = self._gathering
        if sink is None or self.hurried or rows >= sink.most_rows:
            return False
        self._waits_since = now if self._waits_since is None else self._waits_since
        return now - self._waits_since < sink.patience and self._log.held_back(self.status.query) is None

    def _write(self, token: Token, limit: int) -> dict[str, Any]:
        if self._gathering is not None:
            return self._gathering.write_all(self._pieces(token, limit), token)
        return self._sink.write(self._read(token.first, token.end), token)

    def _pieces(self, token: Token, limit: int) -> Iterator[pa.Table]:
        return (self._read(first, min(first + limit, token.end)) for first in range(token.first, token.end, limit))

    def _read(self, first: int, end: int) -> pa.Table:
        table = self._log.read(self.status.query, first, end)
        return table if self._sink.arrival else table.drop_columns([ARRIVAL])

    def _seen(self, first: int, end: int) -> None:
        """The log moves a reader that holds too much; the sink finds its cursor further on than it was left."""
        if self._next is not None and first > self._next:
            self._set(lost=self.status.lost + first - self._next)
        self._next = end

    def _listen(self) -> None:
        note = self._sink.note if isinstance(self._sink, TellingSink) else None
        if note != self.status.note:
            _LOGGER.warning("sink %s: %s", self._reader, note)
            self._set(note=note)

    def _fail(self, error: BaseException) -> None:
        text = sentence(error)
        if self.status.state != "failing":
            _LOGGER.warning("sink %s fails and will be tried again: %s", self._reader, text)
        else:
            self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._set(state="failing", reason=text, failures=self.status.failures + 1)

    def _cursor(self) -> int:
        cursor = self._log.cursor(self._reader)
        if cursor is None:
            raise FreshetError(f"reader {self._reader} is gone from the log")
        return cursor

    def report(self) -> SinkStatus:
        try:
            return replace(self.status, waiting=self._log.end(self.status.query) - self._cursor())
        except FreshetError:
            return self.status

    def _set(self, **changes: object) -> None:
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]
