"""A running application."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, Self, Unpack

import pyarrow as pa

from freshet.app.app import App
from freshet.app.declared.problems import did_you_mean
from freshet.app.declared.spec import CurveLike, ExpectationLike, QueryOptions, declare_query
from freshet.app.remembered.sharing import write_figures
from freshet.app.reports.report import report_of, snapshot, write
from freshet.app.reports.types import Report
from freshet.app.running.admitting import check_admission
from freshet.app.running.course import HISTORY, CourseWriter
from freshet.app.running.loop import Rounds
from freshet.app.running.observers import Guarded
from freshet.app.running.run_parts import Parts
from freshet.engine import Observer, Undrained
from freshet.log import Receipt
from freshet.log.segments.hidden import show_hidden
from freshet.model import ARRIVAL, Curve, Expectation, FreshetError, Missing, Shed, UserError
from freshet.model.promises.expectation import measure_of
from freshet.policies import Reason, create
from freshet.policies.ageing import aged
from freshet.quality.history import HistoryRecord
from freshet.quality.snapshots import EngineSnapshot
from freshet.sinks import MemorySink
from freshet.sources.push import PushedRows, PushSource

if TYPE_CHECKING:
    from freshet.spark.session.embedded import DataFrame

STEP: Final = 0.1
"""Seconds between looks at whether a run has ended."""
PATIENCE: Final = 20.0
"""Seconds that running units get once a run must end; then they are cancelled, and their tuples stay in the log."""
LONGEST: Final = 30.0
"""Seconds after which they are left alone: their threads end with the process."""
REPORT: Final = 1.0
"""Minimum number of seconds between reports."""
QUIET: Final = 9.0
"""Additional seconds while the engine has nothing to tell; sources and sinks may."""
COLLECT: Final = 3.0
"""Seconds between collections of what retention no longer keeps."""


class Run:
    """An application at work. Its methods may be called from any thread.

    As a context manager it stops at the end of the block: after draining if the block ended well, at once if it raised.
    """

    def __init__(self, app: App, parts: Parts, close: Callable[[], None]) -> None:
        """Made by :meth:`App.start`; ``close`` closes its parts in the reverse order of opening."""
        self.app, self._parts, self._close_parts = app, parts, close
        self._status: Literal["running", "draining", "stopped", "failed"] = "running"
        self._stopping = threading.Lock()
        self._hurried: float | None = None
        self._last: Report | None = None
        self._course = CourseWriter(app.name, parts, app.report)
        reporting = Rounds("freshet-report", REPORT, self._write_report, QUIET)
        courses = Rounds("freshet-history", HISTORY, self._course.write, QUIET)
        self._rounds = (reporting, courses, Rounds("freshet-collect", COLLECT, parts.log.collect))
        self.observe(reporting)
        self.observe(courses)
        for each in self._rounds:
            each.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.stop(drain=error is None)

    @property
    def notes(self) -> list[str]:
        """What a person should know about the start: which queries changed or were dropped."""
        return list(self._parts.installer.notes)

    @property
    def changes(self) -> dict[str, str]:
        """By query whether it is ``new``, ``unchanged``, ``changed``, ``back`` (it was out) or ``dropped``."""
        return dict(self._parts.installer.changes)

    # Data

    def push(self, stream: str, rows: PushedRows, *, block: bool = True, timeout: float | None = None) -> Receipt:
        """Appends rows to a stream whose source is ``push``; when it returns, they are durable.

        Args:
            stream: Its name.
            rows: A list of mappings of column to value, a pyarrow Table or RecordBatch, or a pandas DataFrame.
            block: Wait if the log has no room, instead of raising at once.
            timeout: Longest wait in seconds; None: as long as it takes.

        Raises:
            Backpressure: There is no room, and ``block`` is False or the timeout has passed; nothing was taken in.
        """
        return self._pushed(stream).push(rows, block=block, timeout=timeout)

    def heartbeat(self, stream: str, time: datetime | float) -> None:
        """Says how far event time has come although nothing was pushed, so that windows close. The stream's source is
        ``push``; whether rows that are pushed later are late is judged by this time.

        Args:
            stream: Its name.
            time: A datetime (without a zone: in the stream's), or seconds since the epoch.
        """
        self._pushed(stream).heartbeat(time)

    def _pushed(self, stream: str) -> PushSource:
        source = self._parts.pushes.get(stream)
        if source is None:
            known = ", ".join(self._parts.pushes) or "none"
            hint = did_you_mean(stream, self._parts.pushes)
            raise UserError(f"stream {stream!r} takes no pushes{hint} (streams with the source push: {known})")
        return source

    def read(self, name: str, first: int | None = None, end: int | None = None, *, arrival: bool = False) -> pa.Table:
        """The tuples of a query's output, or of a stream, in the order of their offsets; of a table, its rows now.

        Args:
            name: Of the query, stream or table.
            first: Offset of the first; None: the oldest that is kept.
            end: Offset after the last; None: all that are there.
            arrival: Whether to add hidden columns: when the tuples arrived (microseconds); for answers of a periodic
                query also their release, where their window begins, and their quality.
        """
        if name in self.app.tables:
            return self._parts.tables.rows(name)
        log, schema = self._parts.log, self._schema(name)
        low = log.oldest(name) if first is None else first
        high = log.end(name) if end is None else end
        table = log.read(name, low, high, schema.append(pa.field(ARRIVAL, pa.int64())))
        return show_hidden(table, arrival, log.marks(log.train(name, low, high)) if arrival else None)

    def missing(self, query: str) -> list[Missing]:
        """What the answers of a query lack, and why, from the ledger; oldest first."""
        if query not in self._parts.installer.schemas:
            raise UserError(f"there is no query {query!r}{did_you_mean(query, self._parts.installer.schemas)}")
        return [entry for entry in self._parts.log.ledger() if entry.query == query]

    def dataframe(self, name: str) -> DataFrame:
        """The present output of a query, or the content of a stream, as a Spark DataFrame read on the executors.

        The log does not wait for it: use it soon, or cache it, before some of its files are removed or compacted.
        """
        from freshet.spark.driver.frame import frame

        log, schema = self._parts.log, self._schema(name)
        train = log.train(name, log.oldest(name), log.end(name))
        return frame(self._parts.session, log.folder, train, schema)

    def memory(self, query: str, name: str = "memory") -> MemorySink:
        """The memory sink of a query, with its rows; also after the run.

        Args:
            query: Whose sink it is.
            name: The sink's name: its kind, if none was given.
        """
        sink = self._parts.outlets.sink(query, name)
        if not isinstance(sink, MemorySink):
            raise UserError(f"query {query} has no sink {name} of the kind memory: give it {{'kind': 'memory'}}")
        return sink

    def _schema(self, name: str) -> pa.Schema:
        schema = self._parts.installer.schemas.get(name)
        if schema is None:
            hint = did_you_mean(name, self._parts.installer.schemas)
            raise UserError(f"there is no stream or query {name!r}{hint}")
        return pa.schema([part for part in schema if part.name != ARRIVAL])

    # Changes while running

    def add_query(self, name: str, sql: str, **options: Unpack[QueryOptions]) -> None:
        """Adds a query; see :meth:`App.query`. It belongs to this run: declare it in the application to keep it."""
        # A query that was dropped may come back; if it is still there, the installer says so.
        taken = {other: kind for other, kind in self._names().items() if (other, kind) != (name, "query")}
        spec = declare_query(taken, name, sql, self.app.settings, **options)
        query = self._parts.loop.ask(lambda: self._parts.installer.make(spec))
        self._parts.outlets.check(spec, query.columns)
        self._parts.loop.ask(lambda: self._parts.admit(query))
        if query.promises.period is not None:
            promises = self._parts.loop.ask(self._parts.engine.promises)
            figures = self._parts.loop.ask(lambda: snapshot(self.app, self._parts))
            check_admission(self.app.settings.levels.admission, figures, promises, self.app.settings.reserve)
        self._parts.loop.ask(lambda: self._parts.installer.add(spec))
        self._parts.loop.ask(lambda: self._parts.weights.add(name, spec.weighing))
        try:
            self._parts.outlets.open(spec)
        except BaseException:
            self.drop_query(name)
            raise

    def _names(self) -> dict[str, str]:
        """All names of this run, with their kinds: what is declared, and the queries that were added."""
        known: list[str] = self._parts.loop.ask(lambda: list(self._parts.installer.schemas))
        return {**dict.fromkeys(known, "query"), **self.app.taken()}

    def drop_query(self, name: str) -> None:
        """Ends a query; its sinks get what it has written, and its output stays readable.

        If it is added again unchanged, in this run or a later one, it and its sinks continue where they were.
        """
        self._parts.loop.ask(lambda: self._parts.installer.drop(name))
        self._parts.loop.ask(lambda: self._parts.weights.drop(name))
        self._parts.outlets.drop(name)

    def set_weight(self, name: str, weight: float) -> None:
        """Changes the importance of a query. From now on neither the time of day nor its followers change it."""
        self._parts.loop.ask(lambda: self._parts.installer.promise(name, weight=weight))
        self._parts.loop.ask(lambda: self._parts.weights.drop(name))

    def set_curve(self, name: str, curve: CurveLike | None) -> None:
        """Changes what the answers of a query are worth by their latency; its QoS is measured anew from here on."""
        worth = None if curve is None else Curve.for_query(name, curve)
        self._parts.loop.ask(lambda: self._parts.installer.promise(name, curve=worth))

    def set_expectation(self, name: str, measure: str, expectation: ExpectationLike | None) -> None:
        """Changes what is expected of a measure of a query, over its whole life; None: nothing any more."""
        try:
            measure_of(measure)
            classes = self.app.settings.classes
            wish = None if expectation is None else Expectation.parse(measure, expectation, classes)
        except UserError as error:
            raise UserError(f"query {name}: expect.{measure}: {error}") from None
        self._parts.loop.ask(lambda: self._parts.installer.expect(name, measure, wish))

    def set_strategy(self, name: str, strategy: str | None) -> None:
        """Schedules a query by a policy of its own from now on, such as ``"pcs"``, whatever the optimizer sees. None:
        the optimizer chooses again if the query expects something; else it goes by the policy of the application. A
        later run begins with what is declared.
        """
        self._parts.loop.ask(lambda: self._parts.installer.pin(name, strategy))

    def thin(self, name: str, kept: float) -> None:
        """Keeps only a share of what comes in for a query, above 0 and at most 1, from its next unit on.

        The query must allow it: its ``overload`` has ``thin``. :meth:`missing` says what its answers lack. A later run
        begins with everything.
        """
        self._parts.loop.ask(lambda: self._parts.engine.shed(Shed(name, kept, "by hand")))

    def set_policy(self, policy: str) -> None:
        """Schedules by another policy from now on."""
        base, balance = create(policy), self._parts.balance
        if balance is not None:
            self._parts.loop.ask(lambda: balance.take_over(base))
        self._parts.loop.ask(lambda: self._parts.engine.set_policy(aged(base, self.app.settings.ageing)))
        self._parts.policy = policy

    # What happens

    def meters(self) -> EngineSnapshot:
        """All meters now; see :meth:`freshet.quality.Meters.snapshot`."""
        return self._parts.loop.ask(lambda: snapshot(self.app, self._parts))

    def observe(self, observer: Observer) -> None:
        """Tells an observer everything that the engine does from now on, on the engine's thread; see
        :mod:`freshet.engine.events`. One that raises is told nothing more; a warning says so."""
        self._parts.loop.ask(lambda: self._parts.engine.observers.append(Guarded(observer)))

    def decisions(self) -> list[tuple[float, Reason]]:
        """The latest decisions that ran something, oldest first, each with its time and its reason. If many are made,
        some are left out."""
        return self._parts.loop.ask(lambda: list(self._parts.decisions.latest))

    def sunk(self) -> bool:
        """Whether the sinks have taken everything from the outputs of their queries."""
        return all(not sink["waiting"] for sink in self._parts.outlets.states().values())

    def report(self) -> Report:
        """The report now, or the last one if the run has ended; see :class:`freshet.app.reports.types.Report`."""
        return self._last or report_of(self.app, self._parts, self._status)

    def _write_report(self) -> None:
        if self.app.report is not None:
            write(self.report(), self.app.report)

    def history(self) -> HistoryRecord:
        """How the run went over time, for :func:`freshet.pages.run_page`; kept if the application has a report."""
        return self._course.record()

    @property
    def exhausted(self) -> bool:
        """Whether no source will ever bring anything more."""
        return bool(self._parts.feeders) and all(
            feeder.status.state in ("exhausted", "failed") for feeder in self._parts.feeders.values()
        )

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the run has ended, or its sources have; returns whether that is so.

        Raises:
            Exception: Whatever has ended the engine.
        """
        return self._await(lambda: self.exhausted or not self._parts.loop.running, STEP, timeout)

    def drain(self, timeout: float | None = None) -> bool:
        """Waits until every query has answered all that has come so far; returns whether that is so.

        Its answers are then in its output; sinks may be a moment behind. It does not wait for queries in quarantine: a
        warning of the logger ``freshet.app`` and :meth:`meters` name them.

        Raises:
            Exception: Whatever has ended the engine.
        """
        loop, engine = self._parts.loop, self._parts.engine
        return self._await(lambda: loop.ask(engine.is_idle) or loop.error is not None, STEP / 10, timeout)

    def _await(self, ended: Callable[[], bool], step: float, timeout: float | None) -> bool:
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not ended():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._parts.loop.join(min(step, left))
        self._raise()
        return True

    def _raise(self) -> None:
        error = self._parts.loop.error
        if error is not None:
            raise error if isinstance(error, FreshetError) else RuntimeError(f"the engine failed: {error}") from error

    # The end

    def stop(self, drain: bool = True) -> None:
        """Ends the run: sources first, then the engine, then sinks; each drains what the one before left.

        If another thread calls it without ``drain`` while it drains, it ends after the units that are running.

        Raises:
            Exception: Whatever has ended the engine before; everything is closed nevertheless.
        """
        if not drain:
            self.hurry()
        with self._stopping:
            if self._status in ("running", "draining"):
                self._status = "draining"
                try:
                    self._stop(drain)
                finally:
                    self._close()
        self._raise()

    def hurry(self) -> None:
        """Makes a stop that drains, now or later, end after the running units, or after half a minute at the latest."""
        self._hurried = time.monotonic() if self._hurried is None else self._hurried
        self._parts.outlets.hurry()
        self._parts.queues.close()
        self._parts.engine.stop(drain=False)

    def _stop(self, drain: bool) -> None:
        parts = self._parts
        for feeder in parts.feeders.values():
            feeder.stop(timeout=0.0)
        for feeder in parts.feeders.values():
            self._within_patience(feeder.stop)
        if drain and self._hurried is None:
            parts.engine.stop(drain=True)
        if not self._within_patience(parts.loop.join):
            parts.loop.error = FreshetError("the running units did not end; the next run does them again")
        parts.outlets.stop(drain and isinstance(parts.loop.error, Undrained | None))

    def _within_patience(self, join: Callable[[float], bool]) -> bool:
        """Waits for an end; returns whether it came. Once the run must end, it waits only for a while."""
        asked = False
        while not join(STEP):
            waited = 0.0 if self._hurried is None else time.monotonic() - self._hurried
            if waited >= LONGEST:
                return False
            if waited >= PATIENCE and not asked:
                asked = True
                self._parts.engine.call(self._parts.engine.give_up)
        return True

    def _close(self) -> None:
        self._status = "failed" if self._parts.loop.error is not None else "stopped"
        try:
            for each in self._rounds:
                each.stop()
            self._last = self.report()
            self._course.finish()
            write_figures(self.app.state, self._parts.loop.ask(self._parts.installer.figures))
            self._write_report()
        finally:
            self._close_parts()
