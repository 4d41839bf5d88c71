"""The JVM of a Spark: how it starts, and how it ends if its start is given up."""

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

from freshet.model.messages import masked_value

_POLITE: Final = 5.0
"""Seconds that a JVM gets to clean up after itself."""


def launch(conf: SparkConf, options: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    """Starts a JVM with options of :class:`subprocess.Popen` and variables of its own, and connects with it; ends it if
    the start fails or is interrupted."""
    told = SparkConf(loadDefaults=False)
    for key, value in conf.getAll():
        # The list of processes shows the command that starts the JVM. The context gets the secrets later, from us.
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
        # In a session of its own the JVM does not get the signals that a terminal or a supervisor sends to the whole
        # process group: a drain still needs it. It ends when its standard input ends, so with this process.
        return module.launch_gateway(told, {**options, "start_new_session": True})
    except BaseException:
        for process in started:
            _end(process)
        raise
    finally:
        module.Popen = before


@contextmanager
def given_up() -> Iterator[None]:
    """Ends Spark with its JVM if an error is raised inside, unless the JVM ran before."""
    before = SparkContext._gateway
    try:
        yield
    except BaseException as error:
        if before is not None:
            raise
        # The JVM holds the text of an error of Java, so it must be read before the end.
        reason = _reason(error) if isinstance(error, Py4JJavaError) else None
        give_up()
        if reason is None:
            raise
        raise NotStarted(reason) from None


class NotStarted(Exception):
    """Java's reason why Spark does not start."""


def _reason(error: Py4JJavaError) -> str:
    try:
        return root_cause(str(error))
    except Exception:  # the JVM has ended by itself
        return "its JVM has ended"


def root_cause(text: str) -> str:
    r"""The last cause in a trace of Java.

    >>> root_cause("An error occurred.\n: java.lang.A: no\n\tat x\nCaused by: java.net.B: refused\n\t... 3 more")
    'B: refused'
    """
    causes = [line for line in text.splitlines() if line.startswith((": ", "Caused by: "))]
    found = causes[-1].split(": ", 1)[1] if causes else next(iter(text.splitlines()), "")
    return re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z])", "", found)


def give_up() -> None:
    """Ends the JVM, whatever it is doing: the connection to it may be in the middle of a call."""
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
