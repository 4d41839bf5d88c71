"""The thread that brings output from the log to sinks."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from freshet.log.segments.segment import Mapped
from freshet.model import UserError
from freshet.model.messages import sentence
from freshet.sinks.lane import Delivery, Lane, SinkStatus
from freshet.sinks.sink import Exporter, Sink

if TYPE_CHECKING:
    from freshet.log import Exported, Log

_LOGGER: Final = logging.getLogger(__name__)


class SinkRunner:
    """Moves new output to sinks, each with a cursor of its own: the reader ``<query>/<sink name>``.

    It works in rounds. In a round all sinks that are due take rows, and their cursors move in one transaction. A sink
    that raises is opened anew from its last kept state and tried again after a while; the others continue. All sinks of
    a runner wait for the slowest of a round, so a sink that blocks for long deserves a runner of its own.

    Args:
        log: The log.
        interval: Seconds between writes to one sink, so that many small outputs become few writes.
        max_rows: Maximum number of rows in one write, except for a :class:`GatheringSink`.
        clock: Seconds for intervals and retries.
        exporter: Writes the files of gathering sinks, if its tasks see their folders; None: this process does.
        writers: How many sinks this process writes to at once.
    """

    def __init__(
        self,
        log: Log,
        *,
        interval: float = 0.1,
        max_rows: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
        exporter: Exporter | None = None,
        writers: int = 1,
    ) -> None:
        self._log, self._interval, self._max_rows, self._clock = log, interval, max_rows, clock
        self._exporter, self._writers = exporter, writers
        self._numbers = itertools.count(1)
        self._alone = False
        """Whether the last job of the exporter failed."""
        self._lanes: dict[str, Lane] = {}
        self._changing = threading.Lock()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._draining = True
        self._thread = threading.Thread(target=self._run, name="sinks", daemon=True)

    def add(
        self, query: str, name: str, sink: Sink, *, start: Literal["earliest", "latest"] = "earliest"
    ) -> SinkStatus:
        """Opens a sink. It continues from its cursor; a new one begins at ``start``. Allowed while running.

        Returns:
            Its status at the beginning; ``lost`` counts the rows that came and went while it was parked.
        """
        reader = f"{query}/{name}"
        with self._changing:
            if reader in self._lanes:
                raise UserError(f"query {query} has a sink {name} already: give it another name")
            known = self._log.readers().get(reader)
            cursor = self._log.start_reader(reader, query, start, kind="sink", owner=query)
            status = SinkStatus(query, name, lost=0 if known is None else cursor - known.next)
            lane = Lane(self._log, sink, reader, status)
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
        """Makes the sinks of a query wait for nothing: they write what there is."""
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
        """What the sinks have done so far."""
        with self._changing:
            return [lane.report() for lane in self._lanes.values()]

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def notify(self) -> None:
        """Says that there is new output; any thread may call it."""
        self._news.set()

    def stop(self, *, drain: bool = True, timeout: float | None = None) -> bool:
        """Ends the thread and closes the sinks; returns whether it has ended in time.

        Args:
            drain: First hand over what the log holds; a failing sink gets one more try.
            timeout: Maximum wait in seconds.
        """
        self._draining = drain
        self._stopping.set()
        self._news.set()
        return self.join(timeout)

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end of the thread; returns whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            self.run_round()
            # It also looks without a notice: commits are not obliged to send one.
            if not self._stopping.is_set():
                self._news.wait(self._interval)
        if self._draining:
            self.drain_all()
        for lane in self._all():
            lane.close()

    def _all(self) -> list[Lane]:
        with self._changing:
            return list(self._lanes.values())

    def run_round(self) -> None:
        """Hands a batch to each sink that is due."""
        now = self._clock()
        due = [lane for lane in self._all() if lane.due <= now]
        taken, done = self._move(due, now), self._clock()
        # All from the same moment, so that sinks that were due together stay together.
        for lane, rows in taken.items():
            lane.rest(done, 0.0 if rows >= self._max_rows else self._interval)

    def drain_all(self) -> None:
        """Hands over all that is left, whatever is due."""
        lanes = self._all()
        for lane in lanes:
            lane.hurried = True
        while lanes:
            lanes = [lane for lane, rows in self._move(lanes, self._clock()).items() if rows]

    def _move(self, lanes: Iterable[Lane], now: float) -> dict[Lane, int]:
        """Hands a batch to each sink; returns the number of rows that each has taken."""
        taken = dict.fromkeys(lanes, 0)
        begun = [begun for lane in taken if (begun := lane.begin(self._max_rows, now)) is not None]
        try:
            self._deliver(begun)
            self._commit(begun)
        except BaseException as error:  # no error may end the thread unseen
            for each in begun:
                each.error = each.error or error
        for each in begun:
            taken[each.lane] = each.lane.end(each)
        return taken

    def _deliver(self, deliveries: list[Delivery]) -> None:
        number = next(self._numbers)
        for each in deliveries:
            each.prepare(self._log.epoch, number)
        made = self._export(number, [each for each in deliveries if self._is_seen(each)])
        work, mapped = deque(deliveries), Mapped()

        def write() -> None:
            while work:
                try:
                    each = work.popleft()
                except IndexError:
                    return
                each.write(made.get(each), mapped)

        # Daemons: a thread that never returns must not keep the process from ending.
        others = [threading.Thread(target=write, name="sinks", daemon=True)
                  for _ in range(min(self._writers, len(deliveries)) - 1)]  # fmt: skip
        for thread in others:
            thread.start()
        write()
        for thread in others:
            thread.join()

    def _is_seen(self, delivery: Delivery) -> bool:
        """Whether Spark's tasks can write the file of a delivery."""
        sink = delivery.lane.gathering
        return delivery.export is not None and sink is not None and (self._sees_all or sink.shared)

    @property
    def _sees_all(self) -> bool:
        return self._exporter is not None and self._exporter.sees_all

    def _export(self, number: int, deliveries: list[Delivery]) -> Mapping[Delivery, Exported | Exception]:
        """Makes Spark write files in one job. If it cannot, this process writes them, under other names."""
        if self._exporter is None or not deliveries:
            return {}
        exports = [each.export for each in deliveries if each.export is not None]
        try:
            made = self._exporter.export(number, exports)
        except Exception as error:
            if not self._alone:
                _LOGGER.warning("the files of sinks are written without Spark: %s", sentence(error))
            self._alone = True
            number = next(self._numbers)
            for each in deliveries:
                each.prepare(self._log.epoch, number)
            return {}
        self._alone = False
        return dict(zip(deliveries, made, strict=True))

    def _commit(self, deliveries: list[Delivery]) -> None:
        """Moves the cursors of all sinks that have taken their rows, in one transaction."""
        moves = {each.lane.reader: each for each in deliveries if each.error is None}
        try:
            refused: Mapping[str, BaseException] = self._log.advance_all(each.advance for each in moves.values())
        except BaseException as error:
            refused = dict.fromkeys(moves, error)
        for reader, why in refused.items():
            moves[reader].error = why
