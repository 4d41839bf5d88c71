"""Starting an application: every part is made, connected and started, in the order in which they need each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from freshet.app.app import App
from freshet.app.installing import Installer
from freshet.app.loop import Loop
from freshet.app.making import make_source
from freshet.app.outlets import Outlets
from freshet.app.parts import Parts
from freshet.app.restart import check_stream, remembered
from freshet.app.run import Run
from freshet.engine import Engine, LogQueues, RealClock
from freshet.log import Intake, Log
from freshet.model import Query
from freshet.policies import create
from freshet.sources import Feeder, PushSource

if TYPE_CHECKING:
    from freshet.spark.embedded import SparkSession
    from freshet.spark.executor import SparkExecutor

WARM_UP: Final = 3
"""Rounds of empty jobs before the first tuple."""


def start(app: App, *, policy: str | None = None, master: str | None = None) -> Run:
    """Starts an application; what was opened is closed again where a later part fails."""
    with ExitStack() as stack:
        parts = _open(app, policy or app.settings.policy, master or app.settings.master, stack)
        for feeder in parts.feeders.values():
            stack.callback(feeder.stop)
            feeder.start()
        parts.loop.start()
        # From here on the run itself closes everything.
        return Run(app, replace(parts, close=stack.pop_all().close))


def _open(app: App, policy: str, master: str | None, stack: ExitStack) -> Parts:
    checked, made = app.checked().queries, create(policy)
    # The lock first: a second instance is refused before it starts a Spark.
    log = stack.enter_context(Log.open(app.state))
    for name, spec in app.streams.items():
        check_stream(log, name, spec.stream.schema)
        log.declare(name, spec.retention)
    session, executor, clock = _spark(app, master, stack)
    queues = LogQueues(log)
    engine = Engine(queues, executor, clock, made, most_rows=app.settings.max_train_rows)
    schemas = {name: spec.stream.schema for name, spec in app.streams.items()}
    installer = Installer(engine, log, schemas, _expected(log, session, checked.values(), schemas))
    installer.forget_others(checked)
    outlets = Outlets(log, installer.notes)
    stack.callback(outlets.stop, False)
    outlets.forget_others(app.queries.values())
    queues.committed = outlets.wake
    for name in checked:
        installer.add(app.queries[name])
    for name in checked:
        outlets.open(app.queries[name])
    parts = Parts(log, queues, session, engine, Loop(engine), installer, outlets, policy,
                  str(session.sparkContext.master), lambda: None)  # fmt: skip
    _feed(app, parts, clock)
    return parts


def _expected(
    log: Log, session: SparkSession, queries: Iterable[Query], schemas: Mapping[str, pa.Schema]
) -> Mapping[str, pa.Schema]:
    """Where queries ran before, asks Spark about all of them before any cursor is touched: it may refuse one."""
    from freshet.spark.embedded import outputs_of

    return outputs_of(session, queries, schemas) if remembered(log) else {}


def _spark(app: App, master: str | None, stack: ExitStack) -> tuple[SparkSession, SparkExecutor, RealClock]:
    from freshet.spark.embedded import embedded_session
    from freshet.spark.executor import SparkExecutor

    opened = embedded_session(f"freshet {app.name}", master, app.settings.spark, log_folder=app.state)
    session, clock = stack.enter_context(opened), RealClock()
    executor = SparkExecutor(session, app.state, slots=app.settings.workers, wake=clock.wake)
    stack.callback(executor.close)
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
