"""Starting an application: every part is made, connected and started, in the order in which they need each other."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from freshet.app.app import App
from freshet.app.declared.endpoints import make_source
from freshet.app.declared.mirror_readers import readers_of
from freshet.app.declared.problems import Problem, refuse
from freshet.app.declared.spec import check_master
from freshet.app.remembered.restart import check_owner, check_stream, claim
from freshet.app.reports.feasible import Judgement
from freshet.app.running.admitting import check_admission, last_figures
from freshet.app.running.followers import followers_of
from freshet.app.running.installing import Installer
from freshet.app.running.join_memory import MemoryDivider
from freshet.app.running.loop import Loop
from freshet.app.running.observers import DecisionKeeper, Guarded, QuarantineTeller, Resharing
from freshet.app.running.optimizing import table_of
from freshet.app.running.outlets import Outlets, check_files
from freshet.app.running.run import Run
from freshet.app.running.run_parts import Parts
from freshet.app.running.tables import TableFeeds
from freshet.engine import Engine, LogQueues, RealClock
from freshet.engine.history_keeper import HistoryKeeper
from freshet.engine.optimizer.beta_keeper import BetaKeeper
from freshet.engine.optimizer.weight_keeper import WeightKeeper
from freshet.engine.periodic.window_sampler import WindowSampler
from freshet.log import Intake, Log
from freshet.model import ARRIVAL, FreshetError, Query, UserError
from freshet.policies import FreshnessAware, create
from freshet.policies.ageing import aged
from freshet.policies.periodic import PeriodicFirst, create_periodic
from freshet.quality.history import History
from freshet.quality.periodic import create_levels
from freshet.sources import Feeder, PushSource
from freshet.sources.mirror.source import MirrorSource
from freshet.spark.driver.suspects import Suspects
from freshet.spark.session.residency import wanted

if TYPE_CHECKING:
    from freshet.engine import Observer
    from freshet.spark.driver.executor import SparkExecutor
    from freshet.spark.session.embedded import SparkSession

Progress = Callable[[str], None]
"""Gets a few words on each stage of a start."""

WARM_UP: Final = 3
"""Rounds of empty jobs before the first tuple."""
LAST_WORDS: Final = 5.0
"""Seconds that a source gets to end before it is left alone."""


def start(
    app: App,
    policy: str,
    master: str | None,
    progress: Progress,
    try_again: bool,
    observers: Iterable[Observer] = (),
) -> Run:
    """Starts an application; if a part fails, closes what was opened before it."""
    with ExitStack() as stack:
        parts = _open(app, policy, master, stack, progress, try_again, observers)
        for feeder in parts.feeders.values():
            stack.callback(feeder.stop, LAST_WORDS)
            feeder.start()
        parts.loop.start()
        parts.tables.start()
        # From here on the run itself closes everything.
        return Run(app, parts, stack.pop_all().close)


def _open(
    app: App,
    policy: str,
    master: str | None,
    stack: ExitStack,
    progress: Progress,
    try_again: bool,
    observers: Iterable[Observer],
) -> Parts:
    from freshet.spark.driver.exporter import SparkExporter
    from freshet.spark.session.embedded import master_of, runs_already
    from freshet.spark.session.masters import check_reachable

    chosen = create(policy)
    checked, made = app.checked(), aged(chosen, app.settings.ageing)
    wished = {name: query.promises for name, query in checked.queries.items()}
    check_admission(app.settings.levels.admission, last_figures(app.report), wished, app.settings.reserve)
    table_of(app)  # refuses ranks that are not there before Spark starts
    if asked := master or os.environ.get("SPARK_MASTER"):
        check_master(asked)  # nothing has checked yet what the environment says
        if not runs_already():
            check_reachable(asked)
    # The lock first: a second instance is refused before it starts a Spark.
    log = stack.enter_context(Log.open(app.state))
    check_owner(app.state, app.name)
    for name, spec in app.streams.items():
        check_stream(log, name, spec.stream.schema)
    check_files(log, app.queries.values(), app.origin)
    fingerprints = {name: record.fingerprint for name, record in log.queries().items()}
    suspects = Suspects(app.state, fingerprints, try_again=try_again)
    session, executor, clock = _spark(app, master, suspects, stack, progress)
    expected = _expected(app, session, checked.queries.values())
    _check_formats(app, session)
    # Until here nothing of the application is in the folder: a start that fails leaves it to others.
    claim(app.state, app.name)
    for name, spec in app.streams.items():
        goes_by, ordered = spec.stream.event_time or ARRIVAL, spec.stream.ordered_by
        log.declare(name, spec.retention, clock=goes_by, kind="stream", ordered=ordered)
    queues = LogQueues(log)
    decisions, rows = DecisionKeeper(), app.settings.max_train_rows
    told: list[Observer] = [decisions, QuarantineTeller(), *map(Guarded, observers)]
    periodic = PeriodicFirst(create_periodic(app.settings.periodic), made, app.settings.reserve)
    engine = Engine(queues, executor, clock, made, most_rows=rows, observers=told, periodic=periodic)
    sampler = WindowSampler(engine.board.network, queues, log.folder)
    periodic.levels = create_levels(app.settings.levels, sampler)
    history = HistoryKeeper(History(), engine)
    if app.report is not None:
        engine.observers.append(history)
    loop = Loop(engine)
    tables = TableFeeds(log, app, lambda table: loop.ask(lambda: engine.board.streams_before(table)))
    stack.callback(tables.stop)
    installer = Installer(app, engine, log, session, expected, suspects.why_out)
    installer.park_others(checked.queries)
    outlets = Outlets(log, installer.notes, SparkExporter(session, app.state))
    stack.callback(outlets.stop, False)
    outlets.park_others(app.queries.values())
    queues.committed = outlets.wake
    installer.arrange(checked, app.queries)
    for name in checked.queries:
        installer.add(app.queries[name])
    memory = MemoryDivider(
        log, installer.schemas, app.settings.join_memory, app.settings.levels.admission, queues.notice
    )
    memory.check(checked.queries)
    installer.watch(memory.divide)
    if app.settings.share != "never":
        engine.observers.append(Resharing(engine, installer))
    for name in checked.queries:
        outlets.open(app.queries[name])
    weights = WeightKeeper(
        engine, second_of_day, lambda names: _followers(app, installer, outlets, names),
        lambda name, weight: installer.promise(name, weight=weight),
    )  # fmt: skip
    for name in checked.queries:
        weights.add(name, app.queries[name].weighing)
    engine.observers.append(weights)
    parts = Parts(log, queues, session, engine, loop, installer, outlets, tables, policy,
                  master_of(session), decisions, history, weights, executor.residents)  # fmt: skip
    parts.judgement, parts.admit = Judgement(app.settings.reserve, app.settings.balance), memory.admit
    if app.settings.balance is not None and isinstance(chosen, FreshnessAware):
        parts.balance = BetaKeeper(engine, app.settings.balance, chosen, app.settings.looks.every)
        engine.observers.append(parts.balance)
    _feed(app, parts, clock)
    return parts


def _expected(app: App, session: SparkSession, queries: Iterable[Query]) -> Mapping[str, pa.Schema]:
    """Asks Spark for the columns of all queries before any cursor is touched; raises what it refuses."""
    from freshet.spark.session.embedded import analysed

    schemas = {name: spec.stream.schema for name, spec in app.streams.items()}
    outputs, refused = analysed(session, queries, schemas)
    refuse((Problem(f"queries.{name}.sql", text) for name, text in refused.items()), app.origin)
    return outputs


def _check_formats(app: App, session: SparkSession) -> None:
    """Refuses sources whose formats this Spark does not know."""
    from freshet.spark.driver.ingest import knows_format
    from freshet.spark.session.packages import advice

    problems = []
    for name, spec in app.streams.items():
        declared = spec.source if isinstance(spec.source, Mapping) else {}
        if declared.get("kind") == "spark" and not knows_format(session, wanted := str(declared["format"])):
            problems.append(Problem(f"streams.{name}.source.format", f"Spark has no {wanted}: {advice(wanted)}"))
    refuse(problems, app.origin)


def _spark(
    app: App, master: str | None, suspects: Suspects, stack: ExitStack, progress: Progress
) -> tuple[SparkSession, SparkExecutor, RealClock]:
    """Starts Spark and what runs units on it."""
    from freshet.spark.driver.executor import SparkExecutor
    from freshet.spark.driver.residents.slots import residents_for
    from freshet.spark.session.embedded import embedded_session, message
    from freshet.spark.session.masters import why_not_taken
    from freshet.spark.session.residency import no_start

    progress("Spark starts")
    settings, given = app.settings.spark, app.session
    name, more = f"freshet {app.name}", partial(wanted, app.settings.resident, app.settings.workers, local=True)
    opened = embedded_session(name, master, settings, log_folder=app.state, given=given, residents=more)
    try:
        session = stack.enter_context(opened)
    except FreshetError:
        raise
    except Exception as error:
        told = app.state / "spark.out"
        reason = why_not_taken(error, master) or message(error)
        where = f" on {master}" if master else ""
        raise FreshetError(f"Spark does not start{where}: {reason} (what it printed is in {told})") from error
    count, none = residents_for(session, app.settings.resident, app.settings.workers)
    if not count and none is not None and isinstance(app.settings.resident, int):
        raise UserError(no_start(none))
    clock = RealClock()
    executor = SparkExecutor(
        session,
        app.state,
        slots=app.settings.workers,
        clock=clock,
        time_limit=app.settings.unit_timeout,
        rows_out=app.settings.max_rows_out_per_row,
        kept_bytes=app.settings.kept_state,
        suspects=suspects,
        residents=count,
        resident_port=app.settings.resident_port,
        no_residents=none,
    )
    stack.callback(executor.close)
    progress("Spark warms up")
    # The first jobs of a Spark take seconds: tuples that have already come should not wait for them.
    executor.warm_up(WARM_UP)
    return session, executor, clock


def second_of_day(now: float) -> float:
    """Seconds since midnight, by the clock of this machine."""
    local = time.localtime(now)
    return 3600.0 * local.tm_hour + 60.0 * local.tm_min + local.tm_sec


def _followers(app: App, installer: Installer, outlets: Outlets, names: Iterable[str]) -> dict[str, int]:
    """How many follow the outputs of queries: their sinks, the queries that read them, and readers elsewhere."""
    sinks = Counter(each["query"] for each in outlets.states().values())
    readers, elsewhere = installer.readers(), followers_of(app.state)
    return {name: sinks[name] + readers[name] + elsewhere.get(name, 0) for name in names}


def _feed(app: App, parts: Parts, clock: RealClock) -> None:
    def wake(stream: str) -> None:
        parts.queues.notice(stream)
        clock.wake()

    for name, spec in app.streams.items():
        source, intake = make_source(spec.source, spec.stream), Intake(parts.log, spec.stream)
        parts.feeders[name] = Feeder(source, intake, parts.log, name, wake=partial(wake, name))
        if isinstance(source, PushSource):
            parts.pushes[name] = source
        if isinstance(source, MirrorSource):
            parts.mirrors[name] = source
    parts.mirrors |= parts.tables.mirrors()

    def tell(queries: Mapping[str, Query]) -> None:
        for name, mirror in parts.mirrors.items():
            mirror.read_by(readers_of(name, queries))

    if parts.mirrors:
        parts.installer.watch(tell)
