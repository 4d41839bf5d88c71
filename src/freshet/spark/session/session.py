"""Spark sessions: the one place that opens them, with the settings that matter."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import freshet
from freshet.log.store.private import make_folder, open_private, umask_of
from freshet.model import UserError
from freshet.model.messages import masked_value
from freshet.spark.session.gateway import given_up, launch
from freshet.spark.session.java import ensure_java
from freshet.spark.session.settings import (
    ARENAS,
    ASKED,
    CORE,
    COSTS,
    DAEMON,
    DAEMON_SETTING,
    DEFAULTS,
    JAVA_OPTIONS,
    REQUIRED,
    SQL,
    SettingLost,
    check_settings,
    in_process,
    is_same,
    loopback,
    placed,
    slots_of_local,
)
from freshet.spark.session.shipping import PackageMissing, load_package, ship

__all__ = ["SettingLost", "check_session", "join_session", "open_session"]

_LOGGER: Final = logging.getLogger(__name__)
_EXECUTOR_OPTIONS: Final = "spark.executor.extraJavaOptions"
Residency = Callable[[int], int]
"""The number of residents that a run on a number of cores wants."""


def _none(cores: int) -> int:
    return 0


def open_session(
    app_name: str,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    log_folder: Path | None = None,
    residents: Residency = _none,
) -> SparkSession:
    """Opens Spark, or a session of its own on a Spark that already runs in this process.

    A session of its own has its own settings, and none of the temporary functions of others. To use such functions in
    queries, register them on the session returned, or use :func:`join_session`.

    Args:
        app_name: Shown by cluster managers.
        master: ``local[N]`` or a cluster; None: ``SPARK_MASTER`` or all cores of this machine.
        settings: Settings of the user; they win over those chosen here.
        log_folder: Folder for ``spark.log`` (Spark's messages, bounded) and ``spark.out`` (what the JVM and the
            Python workers print); None: standard error. Only a JVM that is started by this call can be told.
        residents: Says how many residents a run on a number of cores wants: a Spark that is started here in this
            process has a slot more for each.
    """
    check_settings(settings or {})
    master = master or os.environ.get("SPARK_MASTER") or "local[*]"
    wanted = {**CORE, **SQL, **placed(master), **(settings or {})}
    _quieten()
    running = SparkContext._active_spark_context
    with given_up():
        if running is None:
            _open(app_name, master, wanted, log_folder, residents)
        else:
            _join(running)
        session = SparkSession.builder.getOrCreate()
        cores = session.sparkContext.defaultParallelism
    # More partitions than cores only add tasks of a few milliseconds each (790 -> 33 ms for a small shuffle).
    wanted.setdefault("spark.sql.shuffle.partitions", str(cores))
    if running is not None:
        session = session.newSession()
    for key, value in wanted.items():
        if key in SQL or key == "spark.sql.shuffle.partitions":
            session.conf.set(key, value)
    check_session(session, wanted)
    return session


def join_session(session: SparkSession) -> SparkSession:
    """Takes a session that somebody else opened, and leaves it to them in the end.

    Raises:
        UserError: Answers would be wrong with its settings.
    """
    check_session(session)
    with given_up():
        _join(session.sparkContext)
    return session


def check_session(session: SparkSession, wanted: Mapping[str, str] | None = None) -> list[str]:
    """Returns the settings that were lost (to a Spark that was already running, or to a cluster's defaults), and warns
    of those that a user asked for or that cost something.

    Raises:
        UserError: Answers would be wrong without the setting.
    """
    if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true":
        raise UserError("PYSPARK_PIN_THREAD=false mixes up the units of different workers: unset it")
    found = {**DEFAULTS, **dict(session.sparkContext.getConf().getAll())}
    lost = []
    for key, value in {**CORE, **SQL, **(wanted or {})}.items():
        if key.endswith(".extraJavaOptions"):
            continue
        actual = session.conf.get(key, None) if key.startswith("spark.sql.") else found.get(key)
        if is_same(actual, value):
            continue
        if key in REQUIRED and value == SQL[key]:
            raise UserError(f"Spark runs with {key}={actual}, but Freshet's answers need {key}={value}")
        lost.append(key)
        if key in COSTS or key not in {**CORE, **placed("local")}:
            cost = f": {COSTS[key]}" if key in COSTS else ""
            shown, asked = masked_value(key, actual), masked_value(key, value)
            warnings.warn(f"Spark runs with {key}={shown} instead of {asked}{cost}", SettingLost, stacklevel=3)
    return lost


def _open(app_name: str, master: str, wanted: dict[str, str], log_folder: Path | None, residents: Residency) -> None:
    """Starts Spark; if executors cannot run Freshet's daemon, starts it a second time with Spark's own."""
    context = _start(app_name, master, wanted, log_folder, residents)
    if in_process(master):
        return
    try:
        ship(context)
        load_package(context)
    except PackageMissing as missing:
        context.stop()
        if wanted[DAEMON_SETTING] != DAEMON:
            raise
        # Executors are told once, when they start, which daemon to use.
        wanted[DAEMON_SETTING] = "pyspark.daemon"
        _open(app_name, master, wanted, log_folder, residents)
        warnings.warn(
            f"executors cannot import {DAEMON}, so their Python workers load Freshet one by one, and small steps take"
            f" longer; to get it back, install freshet for {context.pythonExec} on every machine of the cluster,"
            " or let that Python heed PYTHONPATH",
            SettingLost,
            stacklevel=3,
        )
        _LOGGER.debug("without the daemon: %s", missing)
    except BaseException:
        context.stop()
        raise


def _join(running: SparkContext) -> None:
    """Brings the package to a Spark that somebody else started."""
    if in_process(running.master or ""):
        with suppress(PackageMissing):
            load_package(running)
            return
    ship(running)
    load_package(running)


def _start(
    app_name: str, master: str, wanted: dict[str, str], log_folder: Path | None, residents: Residency
) -> SparkContext:
    ensure_java()
    os.environ.setdefault(ARENAS, "2")
    if "spark.pyspark.python" in wanted:
        # Only spark-submit would look at the setting.
        os.environ["PYSPARK_PYTHON"] = wanted["spark.pyspark.python"]
    # Otherwise Spark takes the first python3 of the path, which may have no Arrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if in_process(master) and wanted[DAEMON_SETTING] == DAEMON:
        _make_importable()
        if not _importable(os.environ["PYSPARK_PYTHON"]):
            wanted[DAEMON_SETTING] = "pyspark.daemon"
            warnings.warn(f"{DAEMON} cannot be imported by workers", SettingLost, stacklevel=3)
    alone = loopback(master, wanted)
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName(app_name)
    conf.setAll(list(wanted.items()))
    conf.set("spark.driver.extraJavaOptions", _java_options(wanted, log_folder))
    if log_folder is not None:
        # Hadoop gives the progress of sources the permissions of this setting, whatever those of the process are.
        conf.setIfMissing("spark.hadoop.fs.permissions.umask-mode", f"{umask_of(log_folder):03o}")
    if not in_process(master):
        # The user's come last, and win.
        conf.set(_EXECUTOR_OPTIONS, " ".join(filter(None, [JAVA_OPTIONS, wanted.get(_EXECUTOR_OPTIONS)])))
    with _own_interrupt(), _output(log_folder) as streams:
        gateway = None if SparkContext._gateway else launch(conf, streams, alone)
        if in_process(master):
            _add_slots(conf, gateway or SparkContext._gateway, master, residents)
        context = SparkContext(conf=conf, gateway=gateway)
    # It would print a trace when the JVM has ended; the executor says that in a sentence.
    server: Any = context._accumulatorServer
    server.handle_error = lambda request, address: _LOGGER.debug("accumulators: the JVM has ended", exc_info=True)
    return context


def _add_slots(conf: SparkConf, gateway: Any, master: str, residents: Residency) -> None:
    """Gives a local Spark a slot for each resident on top of its cores, which still size trains and shuffles."""
    cores = slots_of_local(master, gateway.jvm.Runtime.getRuntime().availableProcessors)
    more = residents(cores)
    if more:
        failures = master.partition(",")[2].rstrip("] ") or "1"
        conf.setMaster(f"local[{cores + more},{failures}]").set(ASKED, master)
        conf.setIfMissing("spark.default.parallelism", str(cores))


def _java_options(wanted: Mapping[str, str], log_folder: Path | None) -> str:
    options = [JAVA_OPTIONS, wanted.get("spark.driver.extraJavaOptions", "")]
    if log_folder is not None:
        make_folder(log_folder)
        layout = Path(str(files("freshet.spark.session") / "log4j2.properties"))
        options.insert(0, shlex.quote(f"-Dlog4j2.configurationFile={layout.as_uri()}"))
        options.insert(0, shlex.quote(f"-Dfreshet.spark.log={(log_folder / 'spark.log').resolve()}"))
    return " ".join(filter(None, options))


@contextmanager
def _output(log_folder: Path | None) -> Iterator[dict[str, int]]:
    """Where the JVM prints: a file of its own, so that the terminal stays with Freshet."""
    if log_folder is None:
        yield {}
        return
    with os.fdopen(open_private(log_folder / "spark.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as file:
        # Files that Spark itself writes to the folder (its log, the progress of sources) are as private as the rest.
        yield {"stdout": file.fileno(), "stderr": file.fileno(), "umask": umask_of(log_folder)}


def _quieten() -> None:
    """Keeps PySpark from printing the traces of exceptions that it also raises."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Keeps Ctrl-C as it was: Spark's handler cancels all jobs, while a graceful stop lets them finish."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _make_importable() -> None:
    """Lets workers import this package from where the driver did, even if it is not installed there."""
    root = str(Path(freshet.__file__).parents[1])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, root])


def _importable(python: str) -> bool:
    if python == sys.executable:
        return True
    command = [python, "-c", f"import {DAEMON}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
