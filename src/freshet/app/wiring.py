"""Starting an application: every part is made, connected and started, in the order in which they need each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from freshet.app.app import App
from freshet.app.endpoints import make_source
from freshet.app.installing import Installer
from freshet.app.loop import Loop
from freshet.app.observers import QuarantineTeller, Resharing
from freshet.app.outlets import Outlets, check_files
from freshet.app.problems import Problem, refuse
from freshet.app.restart import check_owner, check_stream, claim
from freshet.app.run import Parts, Run
from freshet.app.spec import check_master
from freshet.app.tables import Tables
from freshet.engine import Engine, LogQueues, RealClock
from freshet.log import Intake, Log
from freshet.model import ARRIVAL, FreshetError, Query
from freshet.policies import create
from freshet.sources import Feeder, PushSource
from freshet.spark.driver.suspects import Suspects

if TYPE_CHECKING:
    from freshet.spark.driver.executor import SparkExecutor
    from freshet.spark.session.embedded import SparkSession

Progress = Callable[[str], None]
"""Is told what a start is about, a few words each."""

WARM_UP: Final = 3
"""Rounds of empty jobs before the first tuple."""
LAST_WORDS: Final = 5.0
"""Seconds that a source gets to end before it is left alone."""


def start(app: App, policy: str, master: str | None, progress: Progress, try_again: bool) -> Run:
    """Starts an application; what was opened is closed again where a later part fails."""
    # Whatever the environment says has not been looked at before.
    if wanted := master or os.environ.get("SPARK_MASTER"):
        check_master(wanted)
    with ExitStack() as stack:
        parts = _open(app, policy, master, stack, progress, try_again)
        for feeder in parts.feeders.values():
            stack.callback(feeder.stop, LAST_WORDS)
            feeder.start()
        parts.loop.start()
        parts.tables.start()
        # From here on the run itself closes everything.
        return Run(app, parts, stack.pop_all().close)


def _open(app: App, policy: str, master: str | None, stack: ExitStack, progress: Progress, try_again: bool) -> Parts:
    from freshet.spark.driver.exporter import SparkExporter
    from freshet.spark.session.embedded import runs_already
    from freshet.spark.session.masters import check_reachable

    checked, made = app.checked(), create(policy)
    if (wanted := master or os.environ.get("SPARK_MASTER")) and not runs_already():
        check_reachable(wanted)
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
        log.declare(name, spec.retention, clock=spec.stream.event_time or ARRIVAL, kind="stream")
    queues = LogQueues(log)
    engine = Engine(
        queues, executor, clock, made, most_rows=app.settings.max_train_rows, observers=[QuarantineTeller()]
    )
    loop = Loop(engine)
    tables = Tables(log, app, lambda table: loop.ask(lambda: engine.board.streams_before(table)))
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
    if app.settings.share != "never":
        engine.observers.append(Resharing(engine, installer))
    for name in checked.queries:
        outlets.open(app.queries[name])
    parts = Parts(log, queues, session, engine, loop, installer, outlets, tables, policy,
                  str(session.sparkContext.master))  # fmt: skip
    _feed(app, parts, clock)
    return parts


def _expected(app: App, session: SparkSession, queries: Iterable[Query]) -> Mapping[str, pa.Schema]:
    """Asks Spark for the columns of all queries before any cursor is touched; what it refuses are problems."""
    from freshet.spark.session.embedded import analysed

    schemas = {name: spec.stream.schema for name, spec in app.streams.items()}
    outputs, refused = analysed(session, queries, schemas)
    refuse((Problem(f"queries.{name}.sql", text) for name, text in refused.items()), app.origin)
    return outputs


def _check_formats(app: App, session: SparkSession) -> None:
    """Refuses sources of formats that this Spark has not."""
    from freshet.spark.driver.ingest import knows_format
    from freshet.spark.session.packages import advice

    wanted = {
        name: str(spec.source["format"])
        for name, spec in app.streams.items()
        if isinstance(spec.source, Mapping) and spec.source.get("kind") == "spark"
    }
    problems = (
        Problem(f"streams.{name}.source.format", f"Spark has no {format_}: {advice(format_)}")
        for name, format_ in wanted.items()
        if not knows_format(session, format_)
    )
    refuse(problems, app.origin)


def _spark(
    app: App, master: str | None, suspects: Suspects, stack: ExitStack, progress: Progress
) -> tuple[SparkSession, SparkExecutor, RealClock]:
    from freshet.spark.driver.executor import SparkExecutor
    from freshet.spark.session.embedded import embedded_session, message
    from freshet.spark.session.masters import why_not_taken

    progress("Spark starts")
    settings, given = app.settings.spark, app.session
    opened = embedded_session(f"freshet {app.name}", master, settings, log_folder=app.state, given=given)
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
        wake = partial(_wake, parts.queues, clock, name)
        parts.feeders[name] = Feeder(source, Intake(parts.log, spec.stream), parts.log, name, wake=wake)
        if isinstance(source, PushSource):
            parts.pushes[name] = source


def _wake(queues: LogQueues, clock: RealClock, stream: str) -> None:
    queues.notice(stream)
    clock.wake()
