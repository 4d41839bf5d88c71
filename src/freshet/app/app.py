"""Applications: streams and continuous queries, declared in Python or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from freshet.app.declared.checking import Catalog, Checked
from freshet.app.declared.endpoints import check_options, check_sinks, placed
from freshet.app.declared.examining import check_residents, examine
from freshet.app.declared.file import Read, make_importable, read_leniently
from freshet.app.declared.notes import notes_on
from freshet.app.declared.optimizing import Ranks, check_mode, ranks_of
from freshet.app.declared.own import OwnCode
from freshet.app.declared.problems import InvalidApp, Problem, noted, refuse
from freshet.app.declared.spec import (
    KeyOptions,
    QueryOptions,
    QuerySpec,
    Settings,
    SourceLike,
    StreamSpec,
    TableSpec,
    age_limit,
    balance_of,
    check_free,
    check_given,
    check_master,
    check_retention,
    declare_query,
    join_memory_of,
    key_order,
    share_mode,
)
from freshet.log import Retention
from freshet.model import Stream, UserError, parse_bytes, parse_duration, parse_schema, priority_classes
from freshet.model.places import check_local
from freshet.model.promises.balance import BalanceBound
from freshet.model.promises.level_settings import LevelAim, LevelMode, LevelSettings, WhenFull
from freshet.model.promises.look_settings import LookSettings, OptimizerMode
from freshet.policies import create
from freshet.policies.periodic import check_periodic
from freshet.policies.sharing import Mode as ShareMode
from freshet.sources import KINDS as SOURCES
from freshet.spark.session.residency import ResidentSetting, check_resident
from freshet.spark.session.settings import check_settings

if TYPE_CHECKING:
    from freshet.app.reports.types import Report
    from freshet.app.running.run import Run
    from freshet.engine import Observer
    from freshet.spark.session.embedded import SparkSession


class App(OwnCode):
    """An application: what it reads, what it asks, how it runs.

    Args:
        name: Its name.
        state: Folder of its state: logs, cursors, positions of sources and sinks.
        policy: Scheduling policy.
        workers: How many units may run at once.
        max_train_rows: Maximum number of tuples that a unit takes from a queue at once.
        periodic: Which instances of PERIOD queries run first, by name.
        reserve: Share of the time that continuous queries keep while PERIOD queries have work, too.
        levels: Who says how much of its windows a PERIOD query reads: ``predicted``, ``feedback``, or ``off``.
        aim: Whether levels make the worst answer (``fair``) or the ``average`` as good as possible, or what lies
            between (``balanced``).
        ahead: Whether levels leave time for the releases that come before the last deadline.
        admission: What happens to queries that do not fit, by what earlier runs have learned: PERIOD queries get lower
            levels and joins by ordered keys let tuples go (``degrade``), or they are refused (``refuse``).
        unit_timeout: How long a job of a unit may take; None: any time. The query that takes longer is quarantined.
        max_rows_out_per_row: Maximum number of rows that a unit of a query may output for each row that it reads.
        kept_state: Maximum memory in which each worker keeps what it has made of the states of windows and joins.
        join_memory: Maximum memory of the joins by ordered keys of all queries together; None: no bound.
        share: Whether operators that several queries begin with run once for all of them: ``never``, ``auto`` (if
            earlier runs have measured that it saves time) or ``always``; False and True mean the first and the last.
        classes: Further classes of expectations by name, with their weights.
        look_every: Time between two looks at the measures of a query with expectations.
        look_ahead: How far ahead expectations are read to find violations: less than ``look_every``.
        least_stay: How long a query stays with a new strategy at least; None: twice the time between looks.
        optimizer: Whether strategies of queries with expectations are changed: ``act``, ``advise`` or ``off``.
        ranks: Decision table of the optimizer: ``shipped``, ``measured`` (by ``freshet calibrate``), ``predict``, or
            ranks by measure and strategy.
        expect: What ``fas-mcq`` should keep by finding beta: ``{"response": "500 ms"}`` or ``{"freshness": 0.9}``.
        ageing: How long a tuple may wait until it comes first, whatever the policy prefers; None: no limit.
        report: File of the report, refreshed while running; None: no file.
        master: Spark master; None: ``SPARK_MASTER`` or all cores.
        spark: Spark settings, or a session: then queries may call the functions that are registered on it, its Spark
            is used, and it is not stopped.
        resident: How many Spark tasks stay and are handed steps over a connection, so that a step need not be a Spark
            job: ``auto``, ``off`` or a number.
        resident_port: Port of the driver that residents on other machines connect to; 0: any.

    >>> app = App("monitor", state="state")
    >>> app.stream("packets", "ts timestamp, host string, size int", event_time="ts")
    >>> app.query("large", "SELECT host, size FROM packets WHERE size > 1000", weight=0.5)
    >>> app.query("huge", "SELECT host FROM large WHERE size > 1400")
    >>> app.check()
    []
    """

    def __init__(
        self,
        name: str,
        *,
        state: str | Path = "state",
        policy: str = "everything",
        periodic: str = "edf",
        reserve: float = 0.1,
        levels: LevelMode = "predicted",
        aim: LevelAim = "fair",
        ahead: bool = False,
        admission: WhenFull = "degrade",
        workers: int = 2,
        max_train_rows: int = 500_000,
        unit_timeout: str | float | None = 600.0,
        max_rows_out_per_row: int = 10_000,
        kept_state: str | int = 2**30,
        join_memory: str | int | None = None,
        share: ShareMode | bool = "never",
        classes: Mapping[str, float] | None = None,
        look_every: str | float = 3.0,
        look_ahead: str | float = 0.0,
        least_stay: str | float | None = None,
        optimizer: OptimizerMode = "act",
        ranks: Ranks | Mapping[str, Mapping[str, float]] = "shipped",
        expect: BalanceBound | Mapping[str, str | float] | None = None,
        ageing: str | float | None = None,
        report: str | Path | None = None,
        master: str | None = None,
        spark: Mapping[str, str] | SparkSession | None = None,
        resident: ResidentSetting = "auto",
        resident_port: int = 0,
    ) -> None:
        create(policy)
        check_periodic(periodic, reserve)
        if master is not None:
            check_master(master)
        check_local(state, "state")
        check_local(report, "report")
        self.name, self.state = name, Path(state)
        self.report = None if report is None else Path(report)
        given = spark if isinstance(spark, Mapping) else {}
        check_settings(given)
        super().__init__(None if spark is None or isinstance(spark, Mapping) else check_given(spark, master))
        timeout = None if unit_timeout is None else parse_duration(unit_timeout)
        if (timeout is not None and timeout <= 0) or max_rows_out_per_row < 1:
            raise UserError("unit_timeout and max_rows_out_per_row must be above 0, else nothing could ever run")
        stay = None if least_stay is None else parse_duration(least_stay)
        self.settings = Settings(
            policy, workers, max_train_rows, master, dict(given), share_mode(share), timeout, max_rows_out_per_row,
            check_resident(resident), resident_port,
            parse_bytes(kept_state), priority_classes(classes or {}),
            LookSettings(parse_duration(look_every), parse_duration(look_ahead), stay),
            check_mode(optimizer), ranks_of(ranks), age_limit(ageing), balance_of(expect, policy), periodic, reserve,
            LevelSettings.checked(levels, aim, ahead, admission), join_memory_of(join_memory),
        )  # fmt: skip
        self.streams: dict[str, StreamSpec] = {}
        self.tables: dict[str, TableSpec] = {}
        self.queries: dict[str, QuerySpec] = {}
        self.origin = ""
        """The file that it was read from, as the user named it."""
        self._beside: Path | None = None
        """The folder of that file, if it names code."""

    @classmethod
    def from_toml(cls, path: str | Path) -> App:
        """Reads an application file; relative paths in it are relative to it.

        Raises:
            InvalidApp: With every problem that was found.
        """
        path = Path(path)
        read = read_leniently(path)
        file, folder = read.file, path.parent
        named = {"name": file.app.name or path.stem}
        places = {"state": folder / file.app.state, "report": folder / file.app.report}
        spark = {"spark" if key == "settings" else key: value for key, value in file.spark}
        app = cls(**dict(file.app) | named | places | spark)
        app.origin = str(path)
        callbacks = any(sink.kind == "callback" for query in file.queries.values() for sink in query.sinks)
        if callbacks or file.operators or any(function.call for function in file.functions.values()):
            app._beside = folder
            make_importable(folder)
        app._declare(read, folder)
        return app

    def _declare(self, read: Read, folder: Path) -> None:
        """Declares what a file says; raises all problems together."""
        problems, broken = list(read.problems), set(read.broken)
        for name, stream in read.file.streams.items():
            source = placed(stream.source.declared(), folder)
            if name not in broken:
                more = {key: each for key, each in stream if key not in ("columns", "retention", "source")}
                with noted(problems, f"streams.{name}", f"stream {name}: "):
                    self.stream(name, stream.columns, source=source, retention=stream.retention.retention(), **more)
                if name not in self.streams and stream.ordered_by is None:
                    with suppress(UserError):  # so that queries over it can be checked: its columns may be right
                        self.stream(name, stream.columns, source=source)
            if name not in self.streams:
                broken.add(name)
                problems += check_options(source, SOURCES, f"streams.{name}.source")
        for name, table in read.file.tables.items():
            if name not in broken:
                with noted(problems, f"tables.{name}", f"table {name}: "):
                    file = None if table.file is None else folder / table.file
                    polled = None if table.source is None else placed(table.source.declared(), folder)
                    self.table(name, file, schema=table.columns, format=table.format, source=polled)
            if name not in self.tables:
                broken |= {name} - self.streams.keys()
        for name, function in read.file.functions.items():
            with noted(problems, f"functions.{name}", f"function {name}: "):
                self.function(name, function.what(), **function.model_dump(exclude={"call", "sql"}))
        for name, operator in read.file.operators.items():
            with noted(problems, f"operators.{name}", f"operator {name}: "):
                self.operator(name, operator.what(), **operator.model_dump(exclude={"call"}))
        for name, query in read.file.queries.items():
            given = dict(query) | {
                "sinks": tuple(placed(sink.declared(), folder) for sink in query.sinks),
                "retention": query.retention.retention(),
                "expect": query.expect.given() or None,
            }
            if name not in broken:
                with noted(problems, f"queries.{name}", f"query {name}: "):
                    self.query(name, **given)
            if name not in self.queries:
                broken.add(name)
                problems += check_sinks([QuerySpec(name, "", sinks=given["sinks"])])
        if problems:
            raise InvalidApp([*problems, *self._examine(frozenset(broken)).problems], self.origin)

    def stream(
        self,
        name: str,
        schema: str,
        *,
        event_time: str | None = None,
        time_zone: str = "UTC",
        validity: str | float | None = None,
        lateness: str | float | None = None,
        source: SourceLike | None = None,
        retention: Retention | None = None,
        **order: Unpack[KeyOptions],
    ) -> None:
        """Declares a stream; see :class:`~freshet.model.Stream`.

        Args:
            name: How queries call it.
            schema: Spark DDL: ``"ts timestamp, size int"``.
            event_time: The timestamp column that says when the event happened.
            time_zone: Zone of event times that come without one.
            validity: For how long a tuple is worth answering.
            lateness: How far an event time may lie behind the newest one seen.
            source: Options of a source such as ``{"kind": "generator", "rate": 1000}``, or a source of your own;
                None: tuples come by :meth:`Run.push`.
            retention: How long its tuples are kept.
            order: ``ordered_by``, the column by which its tuples come in order, nearly: joins without windows go by it;
                ``disorder``, how far they come out of that order: ``"500 rows"``, ``"8 s"``, or ``"measured"``, the
                default; ``in_order``, the share that must count as in order if it is measured, 0.999 by default.
        """
        check_free(name, "stream", self.taken())
        valid, late = (None if each is None else parse_duration(each) for each in (validity, lateness))
        by_key = key_order(name, source, **order)
        stream = Stream(name, parse_schema(schema), event_time, time_zone, valid, late, by_key)
        self.streams[name] = StreamSpec(stream, source or {"kind": "push"}, check_retention(retention))

    def table(
        self,
        name: str,
        file: str | Path | None = None,
        *,
        schema: str,
        format: Literal["csv", "json", "parquet"] | None = None,  # noqa: A002  # as in the file
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """Declares a table that streams can be joined with.

        The file is looked at about once a second. A tuple meets the content that was there when it was taken in. Change
        the file by writing another one and renaming it; while the file cannot be read, the content before stays.

        Args:
            name: How queries call it.
            file: CSV with a header line, JSON (an array of objects, or one on each line) or Parquet.
            schema: Spark DDL: ``"host string, owner string"``; other columns of the file are left out.
            format: Of the file; None: what its suffix says.
            source: Instead of a file, options of a mirror: ``{"kind": "mirror", ...}``. The rows of an element are
                replaced when a poll finds that it has changed.

        >>> app = App("monitor")
        >>> app.stream("packets", "host string, size int")
        >>> app.table("hosts", "hosts.csv", schema="host string, owner string")
        >>> app.query("owned", "SELECT owner, size FROM packets JOIN hosts ON packets.host = hosts.host")
        """
        check_free(name, "table", self.taken())
        try:
            columns = parse_schema(schema)
        except UserError as error:
            raise UserError(f"table {name}: {error}") from None
        check_local(file, f"table {name}: file")
        if (file is None) == (source is None):
            raise UserError(f"table {name}: needs either a file or a source")
        self.tables[name] = TableSpec(name, None if file is None else Path(file), columns, format, source)

    def query(self, name: str, sql: str, **options: Unpack[QueryOptions]) -> None:
        """Declares a query over streams and over the outputs of other queries; see :class:`~freshet.model.Query`.

        Args:
            name: Names the query and its output.
            sql: The text.
            weight: Importance in (0, 1], or one for each time of day: ``{"08:00-18:00": 1.0, "else": 0.2}``.
            subscribers: Whether it is multiplied by the share of sinks, queries and readers that follow its output.
            start: Where it begins to read when it is new or has changed.
            on_error: What an evaluation error does: ``null`` gives NULL, ``fail`` quarantines the query.
            sinks: Options such as ``{"kind": "jsonl", "path": "out.jsonl"}``, sinks of your own, or functions.
            retention: How long its output is kept.
            curve: What its answers are worth by their latency, as ``[(0, 1.0), ("500 ms", 1.0), (2, 0.0)]``: never
                rising, utilities in [0, 1]. None: the same at any latency.
            expect: What its measures should be, by measure: ``{"latency": "2 s", "memory": {"class": "must", "points":
                [(0, "10 MB"), ("1 min", "1 MB")]}}``; ``every`` says how often to look at it.
            overload: What may happen to it under overload: ``defer`` lets tuples wait, ``thin`` leaves some of them
                out, and the ledger says which.
            value: What a tuple is worth if some are left out: a SQL expression over the columns of an input; the least
                go first. None: a hash decides.
            quality: What its answers are worth by the share kept: ``tolerant``, ``proportional``, ``strict`` or points
                such as ``[(0.5, 0.8), (1, 1)]``.
            join_memory: Maximum memory of its joins by ordered keys; None: its part of the application's.
            join_buffer: How these buffer tuples: ``ram``, ``sorted``, ``log``, ``hybrid``, or as it pays (``auto``).
            strategy: The policy that schedules it. None: if it expects something, the optimizer chooses one.
            late: With PERIOD: whether an instance whose deadline has passed runs (``finish``) or not (``abandon``).
            missed: With PERIOD: whether releases at which nothing ran are skipped (``skip``) or not (``catch-up``).
        """
        self.queries[name] = declare_query(self.taken(), name, sql, self.settings, **options)

    def names(self) -> dict[str, str]:
        """All that can be read, with its kind, as in ``{"packets": "stream"}``."""
        streams, tables = dict.fromkeys(self.streams, "stream"), dict.fromkeys(self.tables, "table")
        return streams | tables | dict.fromkeys(self.queries, "query")

    def catalog(self) -> Catalog:
        """What its queries may read and call, besides the outputs of other queries."""
        tables = {name: spec.schema for name, spec in self.tables.items()}
        streams = {name: spec.stream for name, spec in self.streams.items()}
        return Catalog(streams, tables, functions=self.own_functions())

    def check(self) -> list[str]:
        """Checks everything that can be checked without Spark.

        Returns:
            Notes on what is valid, but perhaps not intended.

        Raises:
            InvalidApp: With every problem that was found.
        """
        checked = self.checked(check_residents(self.settings))
        return notes_on(checked.queries.values(), self.streams, self.tables)

    def checked(self, more: Iterable[Problem] = ()) -> Checked:
        """The queries, each after those that it reads, with all columns; it raises these problems with its own."""
        checked = self._examine()
        refuse([*checked.problems, *more], self.origin)
        return checked

    def _examine(self, broken: frozenset[str] = frozenset()) -> Checked:
        if self._beside is not None:  # another file may have been read since, and callbacks are imported at the start
            make_importable(self._beside)
        return examine(self, broken)

    def start(
        self,
        *,
        policy: str | None = None,
        master: str | None = None,
        progress: Callable[[str], None] | None = None,
        try_again: bool = False,
        observers: Iterable[Observer] = (),
    ) -> Run:
        """Starts it; use the result as a context manager, or call its ``stop``.

        Args:
            policy: Instead of the declared one.
            master: Instead of the declared one.
            progress: Gets a few words on each stage of the start, such as "Spark starts"; it takes some seconds.
            try_again: Let queries run again that are kept out because earlier runs died with them.
            observers: Are told everything that the engine does, from the start on.
        """
        from freshet.app.running.wiring import start

        tell, settings = progress or (lambda text: None), self.settings
        return start(self, policy or settings.policy, master or settings.master, tell, try_again, observers)

    def run(self, for_: str | float | None = None, **start: Any) -> Report:
        """Runs it for some time, or until its sources end or an interrupt comes; drains it; returns the report."""
        with self.start(**start) as run:
            run.wait(None if for_ is None else parse_duration(for_))
        return run.report()
