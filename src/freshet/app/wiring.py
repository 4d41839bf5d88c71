"""Starting an application: every part is made, connected and started, in the order in which they need each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from freshet.app.app import App
from freshet.app.figures import read_figures
from freshet.app.installing import Installer
from freshet.app.loop import Loop
from freshet.app.making import make_source
from freshet.app.outlets import Outlets, check_files
from freshet.app.parts import Parts
from freshet.app.problems import InvalidApp, Problem
from freshet.app.resharing import Resharing
from freshet.app.restart import check_owner, check_stream, claim, texts
from freshet.app.run import Run
from freshet.app.run_quarantine import QuarantineTeller
from freshet.app.spec import check_master
from freshet.app.tables import Tables
from freshet.engine import Engine, LogQueues, RealClock
from freshet.engine.tables import streams_before
from freshet.log import Intake, Log
from freshet.model import ARRIVAL, FreshetError, Query
from freshet.policies import create
from freshet.sources import Feeder, PushSource
from freshet.spark.suspects import Suspects

if TYPE_CHECKING:
    from freshet.spark.embedded import SparkSession
    from freshet.spark.executor import SparkExecutor

Progress = Callable[[str], None]
"""Is told what a start is about, a few words each."""

WARM_UP: Final = 3
"""Rounds of empty jobs before the first tuple."""
LAST_WORDS: Final = 5.0
"""Seconds that a source gets to end before it is left alone."""


def start(
    app: App,
    *,
    policy: str | None = None,
    master: str | None = None,
    progress: Progress | None = None,
    try_again: bool = False,
) -> Run:
    """Starts an application; what was opened is closed again where a later part fails."""
    chosen = master or app.settings.master
    # Whatever the environment says has not been looked at before.
    if wanted := chosen or os.environ.get("SPARK_MASTER"):
        check_master(wanted)
    with ExitStack() as stack:
        tell = progress or (lambda text: None)
        parts = _open(app, policy or app.settings.policy, chosen, stack, tell, try_again)
        for feeder in parts.feeders.values():
            stack.callback(feeder.stop, LAST_WORDS)
            feeder.start()
        parts.loop.start()
        parts.tables.start()
        # From here on the run itself closes everything.
        return Run(app, replace(parts, close=stack.pop_all().close))


def _open(app: App, policy: str, master: str | None, stack: ExitStack, progress: Progress, try_again: bool) -> Parts:
    found, made = app.checked(), create(policy)
    checked = found.queries
    _check_master(master)
    # The lock first: a second instance is refused before it starts a Spark.
    log = stack.enter_context(Log.open(app.state))
    check_owner(app.state, app.name)
    for name, spec in app.streams.items():
        check_stream(log, name, spec.stream.schema)
    check_files(log, app.queries.values(), app.origin)
    suspects = Suspects(app.state, texts(log), try_again=try_again)
    session, executor, clock = _spark(app, master, suspects, stack, progress)
    schemas = {name: spec.stream.schema for name, spec in app.streams.items()}
    expected = _expected(app, session, checked.values(), schemas)
    _check_formats(app, session)
    # Until here nothing of the application is in the folder: a start that fails leaves it to others.
    claim(app.state, app.name)
    for name, spec in app.streams.items():
        log.declare(name, spec.retention, clock=spec.stream.event_time or ARRIVAL, kind="stream")
    queues = LogQueues(log)
    engine = Engine(
        queues, executor, clock, made, most_rows=app.settings.max_train_rows, observers=[QuarantineTeller()]
    )
    streams = {name: spec.stream for name, spec in app.streams.items()}
    loop = Loop(engine)
    tables = Tables(
        log,
        app.tables.values(),
        app.streams,
        lambda table: loop.ask(lambda: streams_before(engine.board, table)),
        app.origin,
    )
    stack.callback(tables.stop)
    columns = {name: spec.schema for name, spec in app.tables.items()}
    installer = Installer(
        engine,
        log,
        streams,
        expected,
        partial(_look_up, session),
        columns,
        suspects.why_out,
        app.settings.share,
        read_figures(app.state),
    )
    installer.park_others(checked)
    outlets = Outlets(log, installer.notes)
    stack.callback(outlets.stop, False)
    outlets.park_others(app.queries.values())
    queues.committed = outlets.wake
    installer.arrange(found, app.queries)
    for name in checked:
        installer.add(app.queries[name])
    if app.settings.share != "never":
        engine.observers.append(Resharing(engine, installer))
    for name in checked:
        outlets.open(app.queries[name])
    parts = Parts(log, queues, session, engine, loop, installer, outlets, tables, policy,
                  str(session.sparkContext.master), lambda: None)  # fmt: skip
    _feed(app, parts, clock)
    return parts


def _expected(
    app: App, session: SparkSession, queries: Iterable[Query], schemas: Mapping[str, pa.Schema]
) -> Mapping[str, pa.Schema]:
    """Asks Spark about all queries before any cursor is touched.

    Raises:
        InvalidApp: With every query that Spark refuses.
    """
    from freshet.spark.embedded import analysed

    outputs, refused = analysed(session, queries, schemas)
    if refused:
        raise InvalidApp([Problem(f"queries.{name}.sql", text) for name, text in refused.items()], app.origin)
    return outputs


def _check_master(master: str | None) -> None:
    """Looks whether a master can be reached, unless a Spark runs already."""
    from freshet.spark.embedded import runs_already
    from freshet.spark.masters import check_reachable

    wanted = master or os.environ.get("SPARK_MASTER")
    if wanted and not runs_already():
        check_reachable(wanted)


def _check_formats(app: App, session: SparkSession) -> None:
    """Refuses sources of formats that this Spark has not."""
    from freshet.spark.ingest import knows_format
    from freshet.spark.packages import advice

    wanted = {
        name: str(spec.source["format"])
        for name, spec in app.streams.items()
        if isinstance(spec.source, Mapping) and spec.source.get("kind") == "spark"
    }
    problems = [
        Problem(f"streams.{name}.source.format", f"Spark has no {format_}: {advice(format_)}")
        for name, format_ in wanted.items()
        if not knows_format(session, format_)
    ]
    if problems:
        raise InvalidApp(problems, app.origin)


def _look_up(session: SparkSession, query: Query, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    from freshet.spark.embedded import output_of

    return output_of(session, query, schemas)


def _spark(
    app: App, master: str | None, suspects: Suspects, stack: ExitStack, progress: Progress
) -> tuple[SparkSession, SparkExecutor, RealClock]:
    from freshet.spark.embedded import embedded_session, message
    from freshet.spark.executor import SparkExecutor
    from freshet.spark.masters import why_not_taken

    progress("Spark starts")
    opened = embedded_session(f"freshet {app.name}", master, app.settings.spark, log_folder=app.state)
    try:
        session = stack.enter_context(opened)
    except FreshetError:
        raise
    except Exception as error:
        told = app.state / "spark.out"
        reason = why_not_taken(error, master) or message(error)
        where = f" on {master}" if master else ""
        raise FreshetError(f"Spark does not start{where}: {reason} (what it printed is in {told})") from error
    clock = RealClock()
    executor = SparkExecutor(
        session,
        app.state,
        slots=app.settings.workers,
        wake=clock.wake,
        time_limit=app.settings.unit_timeout,
        rows_out=app.settings.max_rows_out_per_row,
        suspects=suspects,
    )
    stack.callback(executor.close)
    progress("Spark warms up")
    # The first jobs of a Spark take seconds; tuples that have already come should not have to wait for that.
    executor.warm_up(WARM_UP)
    return session, executor, clock


def _feed(app: App, parts: Parts, clock: RealClock) -> None:
    for name, spec in app.streams.items():
        source = make_source(spec.source, spec.stream)
        parts.feeders[name] = Feeder(
            source, Intake(parts.log, spec.stream), parts.log, name, wake=_waker(parts.queues, clock, name)
        )
        if isinstance(source, PushSource):
            parts.pushes[name] = source


def _waker(queues: LogQueues, clock: RealClock, stream: str) -> Callable[[], None]:
    def wake() -> None:
        queues.notice(stream)
        clock.wake()

    return wake
