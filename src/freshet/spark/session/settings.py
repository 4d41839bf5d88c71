"""The settings that Freshet asks of Spark, each with its reason."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from freshet.model import UserError
from freshet.spark.session.masters import addresses

DAEMON: Final = "freshet.spark.worker.daemon"

DAEMON_SETTING: Final = "spark.python.daemon.module"

SQL: Final = {
    # Evaluation errors are errors; the safe form of an expression turns them into NULL and counts them.
    "spark.sql.ansi.enabled": "true",
    # One zone for every machine that computes, so that a timestamp's fields do not depend on where it is read.
    "spark.sql.session.timeZone": "UTC",
    # (a * 9e18) * b overflows where Spark's reordered (a * b) * 9e18 does not: an answer must follow the query's text,
    # not what the optimizer makes of it in one plan and not in another.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ReorderAssociativeOperator",
    # Otherwise Spark computes the common part of two try_ forms once, outside of both, where an error is raised.
    "spark.sql.subexpressionElimination.enabled": "false",
    # A train crosses to a Python worker in one batch; the limit by bytes still holds (0 breaks createDataFrame).
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    # Offsets fit 32 bits in a train, and segments are declared with plain strings.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}

CORE: Final = {
    # The setting with the largest effect: over TCP every exchange with a Python worker waits 40 ms for a delayed ACK.
    "spark.python.unix.domain.socket.enabled": "true",
    DAEMON_SETTING: DAEMON,
    # If a worker ends with its task, the next task waits 300 ms for a new one.
    "spark.python.worker.reuse": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # An endless run makes jobs without end, and Spark keeps the last of them on the heap.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
}

# Many catalyst chains in one step make methods of more than 8000 bytes, which HotSpot would only interpret (compiled
# they take a quarter of the time for 250 expressions). The analysis of deep expressions needs a deep stack.
JAVA_OPTIONS: Final = "-XX:-DontCompileHugeMethods -Xss16m"

# Without these an answer would be wrong or a unit lost, so a session that lacks them is refused.
REQUIRED: Final = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")

# With an arena for each thread of a JVM, the C library would keep more and more free pages.
ARENAS: Final = "MALLOC_ARENA_MAX"
_LOCAL_IP: Final = "SPARK_LOCAL_IP"
_LOCAL: Final = re.compile(r"local(?:\[\s*(?P<slots>\d+|\*)\s*(?:,\s*\d+\s*)?\])?")
ASKED: Final = "spark.freshet.master"
"""The setting that holds the master that was asked for, if Spark was started with more slots than that."""

# What a lost setting costs; the settings that are not here only keep the terminal or the heap tidy.
COSTS: Final = {
    "spark.python.unix.domain.socket.enabled": "each exchange with a Python worker then waits some 40 ms",
    DAEMON_SETTING: "each new Python worker then loads Freshet for itself, and its first step takes longer",
    "spark.python.worker.reuse": "each task then starts a Python worker, which takes some 300 ms",
    "spark.sql.optimizer.excludedRules": "overflows may then come out differently in Spark's own form",
    "spark.sql.subexpressionElimination.enabled": "errors that should give NULL may then quarantine a query",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "a train then goes to a Python worker in pieces",
}

# Spark's defaults that are what Freshet asks for.
DEFAULTS: Final = {"spark.python.worker.reuse": "true"}


class SettingLost(UserWarning):
    """Spark runs without a setting that Freshet asked for: right, but slower."""


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuses settings of a user that would make answers wrong.

    >>> check_settings({"spark.sql.session.timeZone": "Asia/Tokyo"})
    Traceback (most recent call last):
    freshet.model.errors.UserError: spark.sql.session.timeZone must be UTC, else answers would be wrong: leave it out
    """
    for key in REQUIRED:
        if not is_same(settings.get(key, SQL[key]), SQL[key]):
            raise UserError(f"{key} must be {SQL[key]}, else answers would be wrong: leave it out")


def is_same(actual: str | None, wanted: str) -> bool:
    """Whether Spark reads two values of a setting alike; true and false may be in upper or lower case.

    >>> is_same("TRUE", "true"), is_same("utc", "UTC"), is_same(None, "true")
    (True, False, False)
    """
    if actual is not None and wanted in ("true", "false"):
        return actual.strip().lower() == wanted
    return actual == wanted


def in_process(master: str) -> bool:
    """Whether tasks run in the driver's own JVM, so that their Python workers have the driver's environment.

    >>> in_process("local[2]"), in_process("local-cluster[2,1,1024]"), in_process("spark://host:7077")
    (True, False, False)
    """
    return master.startswith("local") and not master.startswith("local-cluster")


def slots_of_local(master: str, cores: Callable[[], int]) -> int:
    """The slots of a local master; ``cores`` is asked for those of ``local[*]``.

    >>> slots_of_local("local", int), slots_of_local("local[3, 4]", int), slots_of_local("local[*]", lambda: 8)
    (1, 3, 8)
    """
    found = _LOCAL.fullmatch(master)
    told = found["slots"] if found else None
    return int(cores()) if told == "*" else int(told or 1)


def placed(master: str) -> dict[str, str]:
    """Settings that depend on where Spark runs.

    >>> sorted(placed("local[2]"))
    ['spark.driver.bindAddress', 'spark.driver.host', 'spark.executor.killOnFatalError.depth']
    """
    found: dict[str, str] = {}
    if master.startswith("local"):
        # A local Spark talks to nobody else, and a host name that resolves badly must not stop it.
        found |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if in_process(master):
        # An executor that runs out of memory ends itself. Here it would end the driver's JVM, which can go on: the
        # query fails, and its memory is free again.
        found["spark.executor.killOnFatalError.depth"] = "0"
    else:
        found |= {
            f"spark.executorEnv.{ARENAS}": os.environ.get(ARENAS, "2"),
            # Large trains are split into as many tasks as there are cores when the session is open: wait for the
            # executors that were asked for (by default half a minute at most).
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        }
    return found


def loopback(master: str, wanted: dict[str, str]) -> dict[str, str]:
    """Variables of the JVM that show Spark's web pages to this machine only, unless SPARK_LOCAL_IP is given.

    Spark has only this variable for that, no setting. It would also take the driver's address from it, so this adds the
    real address to ``wanted`` if executors on other machines must find the driver.

    >>> loopback("local[2]", {"spark.ui.enabled": "true"}), loopback("local[2]", {"spark.ui.enabled": "false"})
    ({'SPARK_LOCAL_IP': '127.0.0.1'}, {})
    """
    if wanted.get("spark.ui.enabled", "true").lower() != "true" or _LOCAL_IP in os.environ:
        return {}
    if not master.startswith("local"):
        wanted.setdefault("spark.driver.host", _outward(master))
    return {_LOCAL_IP: "127.0.0.1"}


def _outward(master: str) -> str:
    """The address at which other machines find this one."""
    # If the master has no address of its own, an address for documentation stands for all others (RFC 5737).
    target = next(iter(addresses(master)), ("192.0.2.1", 9))
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(target)  # nothing is sent: the system only chooses the way
        return str(probe.getsockname()[0])
    return socket.gethostname()
