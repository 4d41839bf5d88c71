"""An application in this process: the real log, the real engine and the real kernels, on a simulated clock."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshet.app import App
from freshet.app.declared.checking import Catalog, check_queries, may_share
from freshet.app.declared.problems import did_you_mean, refuse
from freshet.app.running.join_memory import MemoryDivider
from freshet.engine import Engine, LogQueues, VirtualClock
from freshet.log import Intake, Limits, Log, LogFull, Receipt, Retention, TableVersions
from freshet.log.segments.hidden import show_hidden
from freshet.model import ARRIVAL, Commit, Instance, Missing, Query, Shed, UserError
from freshet.policies import Policy, create
from freshet.policies.periodic import PeriodicFirst, create_periodic
from freshet.policies.sharing import share
from freshet.quality.periodic import create_levels
from freshet.sources.push import PushedRows, as_rows
from freshet.sources.times import event_seconds
from freshet.testing.executor import InProcessExecutor
from freshet.testing.faults import Faults, Killed, check_share
from freshet.testing.script import check_stream, table_of, table_rows

START: Final = 946_684_800.0
"""Where the simulated clock begins, and the default arrival of rows: the year 2000."""
_TURN: Final = 0.1
"""Seconds that a turn takes on the simulated clock."""
_ALL: Final = Retention(history_age=None, history_bytes=None)
_TEN_YEARS: Final = 315_576_000_000_000
_DEAD: Final = "dead"


class LocalRun:
    """An application at work in this process, without Spark. Methods that :class:`~freshet.Run` has, too, mean the
    same here.

    Nothing happens by itself: rows come by :meth:`push`, and queries run in :meth:`turn` and :meth:`drain`. Sources
    and sinks of the application are not started. Its state is in a folder of its own, which is deleted at the end.

    Args:
        app: The application.
        policy: A policy or its name; None: the application's.
        workers: Maximum number of units on their way at once; None: as the application says.
        max_train_rows: Maximum number of tuples in a train; None: as the application says.
        seed: Draws the order in which units finish.
        tables: First contents of tables. Other tables are read from their files.
        faults: What goes wrong; None: nothing.
        resplits: Share of the units before which states are divided anew, into parts by key, from 0 to 1.
        cost: Seconds that an operator takes for a tuple, as policies see it. None: what it takes on this machine; then
            policies that decide by costs do not decide the same each time.

    >>> app = App("monitor")
    >>> app.stream("packets", "host string, size int")
    >>> app.query("large", "SELECT host FROM packets WHERE size > 1000")
    >>> with LocalRun(app) as run:
    ...     receipt = run.push("packets", [{"host": "a", "size": 1500}, {"host": "b", "size": 40}])
    ...     run.drain(), run.rows("large")
    (True, [{'host': 'a'}])
    """

    def __init__(
        self,
        app: App,
        *,
        policy: str | Policy | None = None,
        workers: int | None = None,
        max_train_rows: int | None = None,
        seed: int = 0,
        tables: Mapping[str, PushedRows] | None = None,
        faults: Faults | None = None,
        resplits: float = 0.0,
        cost: float | None = 1e-6,
    ) -> None:
        check_share("resplits", resplits)
        self.app = app
        self._workers = workers or app.settings.workers
        self._max_train_rows = max_train_rows or app.settings.max_train_rows
        self._policy = app.settings.policy if policy is None else deepcopy(policy)
        self._seed, self._faults, self._cost = seed, faults or Faults(), cost
        self._resplits, self._closed = resplits, False
        self._at = round(START * 1e6)
        self._checked = check_queries(app.catalog(), app.queries)
        refuse(self._checked.problems, app.origin)
        candidates = [query for query in self._checked.queries.values() if may_share(query, self._checked.schemas)]
        # Nothing has been measured here, so "auto" shares nothing.
        self._forms = {form.name: form for form in share(candidates, app.settings.share)}
        self._faults.check_queries(app.queries)
        self.queries: dict[str, Query] = {}
        """The queries as they run."""
        contents = {name: table_rows(spec, (tables or {}).get(name)) for name, spec in app.tables.items()}
        self.folder = Path(tempfile.mkdtemp(prefix="freshet-", dir=_memory()))
        """The state folder."""
        try:
            self._start(policy)
            for name, rows in contents.items():
                self.tables[name].put(rows)
        except BaseException:
            self.close()
            raise

    def _start(self, policy: str | Policy | None) -> None:
        chosen = deepcopy(self._policy) if policy is None else policy
        self.clock = VirtualClock(self._at / 1e6)
        # The log's own clock follows the arrivals alone: what it writes must not depend on the schedule.
        self.log = Log.open(self.folder, limits=Limits(min_free_bytes=0), now=lambda: self._at / 1e6)
        self.queues = _Queues(self.log, self._faults)
        self.executor = InProcessExecutor(
            self.log.folder,
            self.clock,
            slots=self._workers,
            seed=self._seed,
            faults=self._faults,
            cost=self._cost,
            resplits=self._resplits,
        )
        made, settings = create(chosen) if isinstance(chosen, str) else chosen, self.app.settings
        self.engine = Engine(
            self.queues,
            self.executor,
            self.clock,
            made,
            most_rows=self._max_train_rows,
            stopwatch=self.clock.now,
            periodic=PeriodicFirst(
                create_periodic(settings.periodic), made, settings.reserve, create_levels(settings.levels)
            ),
        )
        self._intakes: dict[str, Intake] = {}
        for name, spec in self.app.streams.items():
            clock, ordered = spec.stream.event_time or ARRIVAL, spec.stream.ordered_by
            self.log.declare(name, spec.retention, clock=clock, kind="stream", ordered=ordered)
            self._intakes[name] = Intake(self.log, spec.stream)
        self.tables = {name: TableVersions(self.log, name) for name in self.app.tables}
        """The versions of each table."""
        readable = self.app.catalog()
        for name in self._checked.queries:
            self._add(name, readable)
        self.memory = MemoryDivider(
            self.log, readable.schemas, settings.join_memory, settings.levels.admission, self.queues.notice
        )
        """The memory of joins by ordered keys."""
        self.memory.divide(self.queries)

    def _add(self, name: str, readable: Catalog) -> None:
        query = self.queries.get(name) or self._build(name, readable)
        self.queries[name] = query
        self.log.declare(name, _ALL, kind="output")
        streams = {stream: readable.schemas[stream] for stream in query.graph.streams}
        readable.schemas[name] = self.engine.add_query(query, streams)
        readable.learn(query)

    def _build(self, name: str, readable: Catalog) -> Query:
        """A query over the columns that exist."""
        query = self._checked.queries[name]
        # The check does not know the types of all columns, but the kernels do.
        if any(readable.schemas[stream] != self._checked.schemas[stream] for stream in query.graph.streams):
            query = readable.build(self.app.queries[name])
            readable.check(query)
            return self.form(query)
        return self.form(self._forms.get(name, query))

    def form(self, query: Query) -> Query:
        """The query as it is to run; tests override it to make queries share more."""
        return query

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What comes

    def push(
        self,
        stream: str,
        rows: PushedRows,
        *,
        at: datetime | float | NDArray[np.int64] | None = None,
        strict: bool = True,
    ) -> Receipt:
        """Appends rows to a stream.

        Args:
            stream: Its name.
            rows: A list of mappings of column to value, a pyarrow Table or RecordBatch, or a pandas DataFrame.
            at: When they arrive: a datetime, seconds since the epoch, or microseconds for each row. None: together with
                the last rows. A source's clock may go back; within a stream the log does not let arrivals go back.
            strict: Whether a row that does not fit is an error. Otherwise it becomes a dead letter, as in a real run.

        Raises:
            UserError: There is no such stream, or a row does not fit.
        """
        self._check_open()
        check_stream(self.app, stream)
        arrivals: int | NDArray[np.int64]
        if isinstance(at, np.ndarray):
            arrivals, self._at = at, max(self._at, int(at.max(initial=self._at)))
        else:
            arrivals = self._at if at is None else self._micros(stream, at)
            self._at = arrivals
        receipt = self._intakes[stream].append(as_rows(rows), arrivals)
        if receipt.dead and strict:
            raise UserError(f"stream {stream}: {self._why_dead(stream)}")
        self.queues.notice(stream)
        return receipt

    def _micros(self, stream: str, time: datetime | float) -> int:
        return round(event_seconds(time, self.app.streams[stream].stream) * 1e6)

    def _why_dead(self, stream: str) -> str:
        last = (self.folder / _DEAD / f"{stream}.jsonl").read_text().splitlines()[-1]
        letter = json.loads(last)
        return f"a row does not fit, {letter['reason']}: {letter['row']}"

    def heartbeat(self, stream: str, time: datetime | float) -> None:
        """Says that the event time of a stream has come this far although nothing was pushed, so that windows close.

        Args:
            stream: Its name.
            time: A datetime (in the stream's zone if it names none), or seconds since the epoch.
        """
        self._check_open()
        check_stream(self.app, stream)
        self._beat(stream, self._micros(stream, time))

    def _beat(self, stream: str, time: int) -> None:
        if self.app.streams[stream].stream.event_time is None:
            self._at = max(self._at, time)
        self._intakes[stream].heartbeat(time)
        self.queues.notice(stream)

    def close_windows(self) -> None:
        """Lets ten years pass in all streams, so that every window closes, and ends the order of ordered keys. Rows
        that are pushed later are late."""
        self._check_open()
        known = [self.log.newest(name) for name, spec in self.app.streams.items() if spec.stream.event_time]
        newest = max((time for time in [*known, self._at] if time is not None), default=self._at)
        for stream in self.app.streams:
            self._beat(stream, newest + _TEN_YEARS)
            self._intakes[stream].end_keys()

    def put(self, table: str, rows: PushedRows) -> bool:
        """Gives a table another content; returns whether it was new."""
        self._check_open()
        return self.tables[table].put(table_rows(table_of(self.app, table), rows))

    # What is done

    def thin(self, name: str, kept: float) -> None:
        """Keeps only a share of what comes in for a query, from its next unit on; 1 keeps everything again."""
        self._check_open()
        self.engine.shed(Shed(name, kept, "by hand"))

    def instances(self, query: str) -> list[Instance]:
        """The releases of a periodic query and what came of them, by release."""
        self._check_open()
        return [entry for entry in self.log.instances() if entry.query == query]

    def missing(self, query: str) -> list[Missing]:
        """What the answers of a query lack, and why, from the ledger."""
        self._check_open()
        return [entry for entry in self.log.ledger() if entry.query == query]

    def turn(self) -> None:
        """Runs one turn of the engine's loop: takes in what came, commits what is done, begins what the policy says."""
        self._check_open()
        self.clock.wait(self.clock.now() + _TURN)
        self.engine.turn()

    def drain(self) -> bool:
        """Runs until nothing is left to do; returns whether nothing waits for a query that is still at work."""
        self._check_open()
        if self.queues.holding:
            raise UserError(
                f"the outputs of {', '.join(self.queues.holding)} are held: let them go with hold([]) first"
            )
        self.engine.run()
        return self.engine.is_idle()

    def hold(self, queries: Collection[str]) -> None:
        """Makes the outputs of these queries take nothing, as with a slow sink; all other outputs take what comes."""
        self.queues.holding = tuple(queries)

    def tidy(self) -> None:
        """Does what a real run does now and then: drops tuples and versions of tables that nobody needs."""
        self._check_open()
        for table, versions in self.tables.items():
            versions.release(self.app.streams, self.engine.board.streams_before(table))
        self.log.collect()

    def crash(self, policy: str | Policy | None = None, seed: int | None = None) -> None:
        """Simulates a power failure: the state folder stays, everything else is gone. Continues from there.

        Args:
            policy: The policy of the new process; None: the first one.
            seed: Draws the order in which units finish from now on; None: as before.
        """
        self._check_open()
        copy = Path(tempfile.mkdtemp(prefix="freshet-", dir=_memory()))
        shutil.copytree(self.folder, copy, dirs_exist_ok=True)
        self.close()
        self.folder, self._seed, self._closed = copy, self._seed if seed is None else seed, False
        self._start(policy)

    # What is there

    @property
    def stopped(self) -> dict[str, str]:
        """Queries that failed, each with the reason."""
        states = map(self.engine.board.queries.__getitem__, self.engine.board.numbers.values())
        return {state.name: state.reason for state in states if state.reason is not None}

    def read(self, name: str, *, arrival: bool = False) -> pa.Table:
        """The tuples of a query's output or of a stream in their order, or the rows of a table; with ``arrival`` also
        their hidden columns."""
        self._check_open()
        if name in self.app.tables:
            return self.tables[name].newest()
        known = self.app.names()
        if name not in known:
            raise UserError(f"there is no query or stream {name!r}{did_you_mean(name, known)}")
        schema = self.engine.schemas[name] if name in self.engine.schemas else self.app.streams[name].stream.schema
        end = self.log.end(name)
        if not end:
            return schema.empty_table()
        return show_hidden(self.log.read(name, 0, end), arrival, self.log.marks(self.log.train(name, 0, end)))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The same, as a list of rows."""
        found: list[dict[str, Any]] = self.read(name).to_pylist()
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise UserError("this run is closed: use it inside its with block")

    def close(self) -> None:
        """Deletes the state folder."""
        self._closed = True
        if hasattr(self, "log"):
            self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Queues(LogQueues):
    """Queues with commits that may fail, and outputs that may be held."""

    def __init__(self, log: Log, faults: Faults) -> None:
        super().__init__(log)
        self._faults = faults
        self.holding: tuple[str, ...] = ()

    def release_due(self, release: int) -> float | None:
        """Never by itself: time goes by what is pushed."""
        return None

    def held(self) -> Mapping[str, str]:
        return {**super().held(), **dict.fromkeys(self.holding, "the test holds it")}

    def commit(self, commits: Sequence[Commit]) -> None:
        act = self._faults.reach("commit")
        if act == "kill":
            raise Killed(self._faults.happened[-1])
        if act == "fail":
            raise LogFull("the disk is full")
        super().commit(commits)
        if self._faults.reach("committed") == "kill":
            raise Killed(self._faults.happened[-1])


def _memory() -> str | None:
    """A folder in memory, if there is one: tests make thousands of durable commits."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
