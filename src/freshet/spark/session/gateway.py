"""The JVM of a Spark: how it is started, and ended where its start is given up."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyspark.java_gateway
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext

from freshet.model.telling import masked_value

_POLITE: Final = 5.0
"""Seconds that a JVM gets to clean up after itself."""


def launch(conf: SparkConf, options: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    """Starts a JVM with options of :class:`subprocess.Popen` and variables that only it gets, and connects with it; one
    whose start fails or is interrupted is ended."""
    told = SparkConf(loadDefaults=False)
    for key, value in conf.getAll():
        # What starts the JVM can be seen in the list of processes. The context hears the rest later, from us.
        if masked_value(key, value) == value:
            told.set(key, value)
    started: list[subprocess.Popen[bytes]] = []

    def start(command: list[str], **given: Any) -> subprocess.Popen[bytes]:
        given["env"] = {**given["env"], **environment}
        started.append(subprocess.Popen(command, **given))
        return started[-1]

    # PySpark tells nobody which process it waits for.
    module: Any = pyspark.java_gateway
    before, module.Popen = module.Popen, start
    try:
        # In a session of its own the JVM does not hear the signals that a terminal or a supervisor sends to the whole
        # process group: it is needed until what waits is drained. It ends when its standard input does, whatever
        # becomes of this process.
        return module.launch_gateway(told, {**options, "start_new_session": True})
    except BaseException:
        for process in started:
            _end(process)
        raise
    finally:
        module.Popen = before


@contextmanager
def given_up() -> Iterator[None]:
    """Where what is done inside raises, the JVM that was started meanwhile is ended, and with it Spark.

    An error of Java keeps its text there, so that is asked for before.
    """
    before = SparkContext._gateway
    try:
        yield
    except Py4JJavaError as error:
        if before is not None:
            raise
        reason = _reason(error)
        give_up()
        raise NotStarted(reason) from None
    except BaseException:
        if before is None:
            give_up()
        raise


class NotStarted(Exception):
    """Java's reason why Spark does not start."""


def _reason(error: Py4JJavaError) -> str:
    try:
        return root_cause(str(error))
    except Exception:  # the JVM has ended by itself
        return "its JVM has ended"


def root_cause(text: str) -> str:
    r"""What a trace of Java says in the end.

    >>> root_cause("An error occurred.\n: java.lang.A: no\n\tat x\nCaused by: java.net.B: refused\n\t... 3 more")
    'B: refused'
    """
    causes = [line for line in text.splitlines() if line.startswith((": ", "Caused by: "))]
    found = causes[-1].split(": ", 1)[1] if causes else next(iter(text.splitlines()), "")
    return re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z])", "", found)


def give_up() -> None:
    """Ends the JVM, in whatever state it is: the connection to it may be in the middle of something."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        _end(process)
    context = SparkContext._active_spark_context
    if context is not None:
        with suppress(Exception):
            context.stop()
    SparkContext._gateway = SparkContext._jvm = None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a JVM and the scripts that start it: they have a process group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLITE)
            return
