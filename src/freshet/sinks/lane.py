"""One sink and its way through an output."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from freshet.log import Advance, Export, write_export
from freshet.log.segments.hidden import show_hidden
from freshet.log.segments.segment import Mapped
from freshet.model import FreshetError
from freshet.model.messages import sentence
from freshet.sinks.sink import GatheringSink, Sink, TellingSink, Token

if TYPE_CHECKING:
    from freshet.log import Exported, Log

_LOGGER: Final = logging.getLogger(__name__)
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 10.0

SinkState = Literal["running", "failing", "stopped"]


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """What a sink has done.

    Args:
        query: The query whose output it takes.
        name: Its name.
        state: ``failing``: the last write raised and is tried again later.
        reason: Why it is failing.
        rows: Number of rows taken.
        batches: Number of writes.
        failures: Number of writes that raised.
        lost: Number of rows that the log had to drop before the sink took them; the log's ledger has the ranges.
        waiting: Number of rows that it has not taken yet.
        note: Anything else that a person should know, such as that its file was deleted.
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


class Lane:
    """A sink, its cursor and the results of its writes.

    A write has three parts, so that many sinks can share the second and the last. :meth:`begin` says which rows are to
    go, :meth:`Delivery.write` hands them over, and :meth:`end` is called once the cursor has moved. Nobody else uses
    the sink meanwhile.
    """

    def __init__(self, log: Log, sink: Sink, reader: str, status: SinkStatus) -> None:
        self.log, self.sink, self.reader = log, sink, reader
        self.status = status
        self.due = 0.0
        self.hurried = False
        """Whether it no longer waits for more rows."""
        self.gathering = sink if isinstance(sink, GatheringSink) else None
        self._waits_since: float | None = None
        self._wait = _FIRST_WAIT
        self._using = threading.Lock()
        self._next: int | None = None

    def open(self) -> None:
        """Opens the sink. Its state is kept before the first row is written, so that a crash finds it."""
        known = self.log.reader_state(self.reader)
        state = self.sink.open(known)
        self._next = self._cursor() if self._next is None else self._next
        if state != known:
            self.log.advance(self.reader, self.status.query, self._cursor(), state)

    def close(self) -> None:
        """Closes the sink, after its present work."""
        with self._using:
            if self.status.state != "stopped":
                self.sink.close()
                self._listen()
            if self.status.state == "running":
                self._set(state="stopped")

    def rest(self, now: float, interval: float) -> None:
        """Sets the time at which it is due again."""
        self.due = now + (self._wait if self.status.state == "failing" else interval)

    def begin(self, limit: int, now: float) -> Delivery | None:
        """The rows that go next; :meth:`end` must follow. None if there are none, if the sink waits for more, or if it
        failed."""
        self._using.acquire()
        delivery = None
        try:
            if self.status.state != "stopped":
                delivery = self._begin(limit, now)
        except BaseException as error:
            self._fail(error)
        finally:
            if delivery is None:
                self._using.release()
        return delivery

    def _begin(self, limit: int, now: float) -> Delivery | None:
        if self.status.state == "failing":
            self.open()
        first, query = self._cursor(), self.status.query
        most = limit if self.gathering is None else self.gathering.most_rows
        end = min(self.log.end(query), first + most)
        if end == first:
            self._took(first, end)
        return None if end == first or self._waits(end - first, now) else Delivery(self, Token(query, first, end), now)

    def end(self, delivery: Delivery) -> int:
        """Records the result of a delivery; returns the number of rows that the sink has taken."""
        token = delivery.token
        try:
            if delivery.error is not None:
                raise delivery.error
            # What has come meanwhile has waited since it came, not since the delivery ended.
            self._waits_since = delivery.began if self.log.end(token.stream) > token.end else None
            self._took(token.first, token.end)
            return token.rows
        except BaseException as error:
            self._fail(error)
            return 0
        finally:
            self._using.release()

    def _took(self, first: int, end: int) -> None:
        # The log moves a reader that holds too much; then the sink finds its cursor further on than it left it.
        lost = first - self._next if self._next is not None and first > self._next else 0
        self._next = end
        self._listen()
        self._wait = _FIRST_WAIT
        self._set(
            state="running",
            reason=None,
            rows=self.status.rows + end - first,
            batches=self.status.batches + (end > first),
            lost=self.status.lost + lost,
        )

    def _waits(self, rows: int, now: float) -> bool:
        """Whether a gathering sink waits for more rows. It does not if nothing more can come before it takes some."""
        sink = self.gathering
        if sink is None or self.hurried or rows >= sink.most_rows:
            return False
        self._waits_since = now if self._waits_since is None else self._waits_since
        return now - self._waits_since < sink.patience and self.log.held_back(self.status.query) is None

    def _listen(self) -> None:
        note = self.sink.note if isinstance(self.sink, TellingSink) else None
        if note != self.status.note:
            _LOGGER.warning("sink %s: %s", self.reader, note)
            self._set(note=note)

    def _fail(self, error: BaseException) -> None:
        text = sentence(error)
        if self.status.state != "failing":
            _LOGGER.warning("sink %s fails and will be tried again: %s", self.reader, text)
        else:
            self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._set(state="failing", reason=text, failures=self.status.failures + 1)

    def _cursor(self) -> int:
        cursor = self.log.cursor(self.reader)
        if cursor is None:
            raise FreshetError(f"reader {self.reader} is gone from the log")
        return cursor

    def report(self) -> SinkStatus:
        """Its status, with the number of rows that wait for it now."""
        try:
            return replace(self.status, waiting=self.log.end(self.status.query) - self._cursor())
        except FreshetError:
            return self.status

    def _set(self, **changes: object) -> None:
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]


class Delivery:
    """Rows of an output on their way to a sink, until its cursor moves."""

    def __init__(self, lane: Lane, token: Token, began: float) -> None:
        self.lane, self.token, self.began = lane, token, began
        self.error: BaseException | None = None
        """Why the sink has not taken them."""
        self.export: Export | None = None
        """The file that is to be written for the sink; None if there is none."""
        self._state: dict[str, Any] | None = None
        self._rest = token
        """The part of them that is in no file yet."""

    def prepare(self, *dispatch: int) -> None:
        """Finds out which file to write, if the sink wants one; the hidden name carries the dispatch."""
        try:
            self._prepare(dispatch)
        except BaseException as error:
            self.error = error

    def _prepare(self, dispatch: tuple[int, ...]) -> None:
        sink = self.lane.gathering
        if sink is None:
            return
        wanted = sink.prepare(self.token)
        if wanted is None:  # it was complete before a crash
            self._state = self.lane.log.reader_state(self.lane.reader)
            return
        self._rest, path = wanted
        train = self.lane.log.train(self._rest.stream, self._rest.first, self._rest.end)
        arrival = self.lane.sink.arrival
        self.export = Export(train, path, dispatch, arrival, self.lane.log.marks(train) if arrival else None)

    def write(self, made: Exported | Exception | None, mapped: Mapped) -> None:
        """Hands the rows over.

        Args:
            made: The result of a Spark task, if the export was given to one.
            mapped: Segment files that are already mapped.
        """
        try:
            if isinstance(made, Exception):
                raise made
            if self.error is None and self._state is None:
                self._state = self._write(made, mapped)
        except BaseException as error:  # a function that calls sys.exit must not end the thread unseen
            self.error = error

    def _write(self, made: Exported | None, mapped: Mapped) -> dict[str, Any]:
        lane = self.lane
        if lane.gathering is None or self.export is None:
            return lane.sink.write(self._read(), self.token)
        made = made or write_export(lane.log.folder, self.export, mapped)
        return lane.gathering.take(made, self.export.path, self._rest)

    def _read(self) -> pa.Table:
        log, token, arrival = self.lane.log, self.token, self.lane.sink.arrival
        table = log.read(token.stream, token.first, token.end)
        marks = log.marks(log.train(token.stream, token.first, token.end)) if arrival else None
        return show_hidden(table, arrival, marks)

    @property
    def advance(self) -> Advance:
        """How the cursor moves, once the sink has taken the rows."""
        assert self._state is not None
        return Advance(self.lane.reader, self.token.stream, self.token.end, self._state)
