"""Why a job failed: because a chain raised, or for a reason that is no chain's fault (then the unit runs again)."""

from __future__ import annotations

import errno
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JNetworkError

if TYPE_CHECKING:
    from pyspark import SparkContext

_MARK: Final = "try the unit again: "
_LONGEST: Final = 400
STOPPED: Final = "Spark was stopped"
"""The reason if Spark is gone, or is about to go."""
SILENT: Final = "Spark's JVM does not answer"
"""The reason if a call was cut off. A JVM that is about to end may still answer the next one."""

# What Spark says when it, and not our code, gave up. Texts, because Spark has no error class for most of them.
_RETRY: Final = (
    (re.compile(rf"No space left on device|\[Errno (?:{errno.ENOSPC}|{errno.EDQUOT})\]"), "the disk is full"),
    (re.compile(r"SparkContext (?:was|has been) (?:shut ?down|stopped)|stopped SparkContext"), STOPPED),
    (re.compile(r"SPARK_JOB_CANCELLED|cancelled part of cancelled job|TASK_CANCELLED|was cancelled"), "cancelled"),
    (re.compile(r"ExecutorLostFailure|FetchFailed|executor .{0,80}lost|Failed to connect to "), "an executor was lost"),
)  # fmt: skip
# The text of an error in an expression may hold anything, even data, but it begins with an error class. These classes
# are Spark's own.
_CLASS: Final = re.compile(r"(?:^|: )\[(?P<name>[A-Z][A-Z0-9_.]+)\]", re.MULTILINE)
_SPARKS_OWN: Final = re.compile("CANCEL|PYTHON|EXECUTOR|FETCH|SHUFFLE|SPARK")
# Spark has tried such a task several times, and each time its executor died with it.
_KILLS: Final = re.compile(r"failed (?:[3-9]|\d\d+) times.{0,400}exited caused by one of the running tasks", re.DOTALL)
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_DYING: Final = 90.0
"""Seconds to wait for a JVM that does not answer to end, so that its exit code is known. Spark takes half a minute to
shut down if it waits for the very thread that asked it to."""
_FROM_OUTSIDE: Final = (-9, -15, 137, 143)
"""Exit codes of a JVM that somebody killed."""
_MEANING: Final = {52: " (out of memory)", 3: " (out of memory)", 134: " (it crashed)", -6: " (it crashed)"}
_CALLED: Final = re.compile(r"An error occurred while calling [^\n]*\n: (?:[\w.$]*[.$])?(?P<cause>[^\n]+)")
_ABORTED: Final = re.compile(r"most recent failure: [^\n]*?\): (?:[\w.$]+: )?(?P<cause>[^\n]*)")


class Retry(Exception):
    """The unit cannot run now, and no chain is to blame. A task can raise it: the driver recognises its text."""

    def __init__(self, reason: str) -> None:
        super().__init__(_MARK + reason)
        self.reason = reason

    def __reduce__(self) -> tuple[type[Retry], tuple[str]]:
        return Retry, (self.reason,)


class Apart(Retry):
    """Chains of several queries, at these places, failed together; to find whose fault it was they must run apart."""

    def __init__(self, reason: str, places: tuple[int, ...]) -> None:
        super().__init__(reason)
        self.places = places


@contextmanager
def no_blame(what: str) -> Iterator[None]:
    """Turns an error of a file system into a reason to try again: it is no chain's fault."""
    try:
        yield
    except OSError as error:
        raise Retry(f"{what}: {error}") from error


def retry_reason(error: BaseException) -> str | None:
    """The reason to try again; None if a chain is to blame.

    >>> retry_reason(RuntimeError("Job 3 cancelled part of cancelled job group u1"))
    'cancelled'
    >>> retry_reason(ZeroDivisionError("division by zero")) is None
    True
    """
    if isinstance(error, Retry):
        return error.reason
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return SILENT
    text = str(error)
    if _is_chains_own(text):
        return None
    if _MARK in text:
        return text.split(_MARK, 1)[1].splitlines()[0]
    return next((reason for pattern, reason in _RETRY if pattern.search(text)), None)


def _is_chains_own(text: str) -> bool:
    found = _CLASS.search(text)
    return _KILLS.search(text) is not None or (found is not None and _SPARKS_OWN.search(found["name"]) is None)


def message(error: BaseException) -> str:
    r"""One line that a person can read, without traces.

    >>> message(RuntimeError("[USER_RAISED_EXCEPTION] too hot SQLSTATE: P0001"))
    '[USER_RAISED_EXCEPTION] too hot'
    >>> message(RuntimeError("An exception was thrown from the Python worker:\n ...\nValueError: no such day"))
    'ValueError: no such day'
    """
    text = str(error).strip() or type(error).__name__
    if aborted := _ABORTED.search(text):
        text = aborted["cause"]
    elif called := _CALLED.match(text):
        text = called["cause"]
    if "Traceback (most recent call last)" in text or "Python worker" in text:
        # The last line that is no trace of Java holds the exception itself.
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("\tat ", "Caused by"))]
        text = _STATE.sub("", lines[-1]) or lines[-1]
    line = next(iter(_STATE.sub("", text).strip().splitlines()), type(error).__name__)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def end_of_jvm(code: int | None) -> tuple[str, bool]:
    """How Spark's JVM has ended, from its exit code, and whether what it ran is certainly to blame.

    >>> end_of_jvm(52), end_of_jvm(137), end_of_jvm(None)
    (("Spark's JVM has ended with exit code 52 (out of memory)", True), ("Spark's JVM has ended with exit code 137",
    False), ("Spark's JVM does not answer", False))
    """
    if code is None:
        return "Spark's JVM does not answer", False
    return f"Spark's JVM has ended with exit code {code}{_MEANING.get(code, '')}", code not in _FROM_OUTSIDE


def how_jvm_ended(context: SparkContext) -> tuple[str, bool] | None:
    """The same for the JVM of a Spark; None: it has not ended, and is not about to."""
    process = getattr(context._gateway, "proc", None)
    if _goes_on(context) and (process is None or process.poll() is None):
        return None
    code = None
    with suppress(subprocess.TimeoutExpired):
        code = None if process is None else process.wait(_DYING)
    return None if code is None and _goes_on(context) else end_of_jvm(code)


def _goes_on(context: SparkContext) -> bool:
    """Whether the JVM answers and is not shutting down. One that shuts down answers, but its jobs fail somehow."""
    try:
        return not context._jvm.org.apache.spark.util.ShutdownHookManager.inShutdown()  # type: ignore[union-attr]
    except Exception:
        return False
