"""A session for the time of a run."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from freshet.model import Network, Query, UserError
from freshet.spark.driver.analysis import Analysis
from freshet.spark.driver.failures import message
from freshet.spark.driver.installation import Installation
from freshet.spark.session.gateway import give_up
from freshet.spark.session.session import Residency, join_session, open_session
from freshet.spark.session.settings import ASKED

__all__ = [
    "DataFrame",
    "SparkSession",
    "analysed",
    "embedded_session",
    "master_of",
    "message",
    "output_of",
    "runs_already",
]


def runs_already() -> bool:
    """Whether a Spark runs in this process."""
    return SparkContext._active_spark_context is not None


def master_of(session: SparkSession) -> str:
    """The master that was asked for."""
    context = session.sparkContext
    return str(context.getConf().get(ASKED, context.master))


STOP_PATIENCE: Final = 15.0
"""Seconds that Spark gets to stop."""


@contextmanager
def embedded_session(
    app_name: str,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    log_folder: Path | None = None,
    given: SparkSession | None = None,
    residents: Residency = lambda cores: 0,
) -> Iterator[SparkSession]:
    """Opens a session, or takes the given one, and stops Spark at the end unless it ran before; see
    :func:`open_session`."""
    ran = runs_already()
    if given:
        session = join_session(given)
    else:
        session = open_session(app_name, master, settings, log_folder=log_folder, residents=residents)
    try:
        yield session
    except BaseException as error:
        # After an interrupt the connection to the JVM may be in the middle of a call, and the user should not wait.
        if not ran and not isinstance(error, Exception):
            give_up()
            ran = True
        raise
    finally:
        if not ran:
            _stop(session)


def _stop(session: SparkSession) -> None:
    """Stops Spark; kills the JVM if it does not answer."""

    def stop() -> None:
        with suppress(OSError):  # a JVM that has ended is stopped already
            session.stop()

    process = getattr(session.sparkContext._gateway, "proc", None)
    stopping = threading.Thread(target=stop, name="freshet-stop-spark", daemon=True)
    stopping.start()
    stopping.join(STOP_PATIENCE)
    if stopping.is_alive() and process is not None:
        process.kill()
        stopping.join(STOP_PATIENCE)


def output_of(spark: SparkSession | Analysis, query: Query, streams: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of a query's output, without running or installing anything.

    Raises:
        UserError: Spark does not accept an expression.
    """
    network, installation = Network(), Installation(Analysis(spark) if isinstance(spark, SparkSession) else spark)
    network.add(query)
    installation.extend(network, streams)
    return installation.columns.outputs(network)[query.name]


def analysed(
    session: SparkSession, queries: Iterable[Query], streams: Mapping[str, pa.Schema]
) -> tuple[dict[str, pa.Schema], dict[str, str]]:
    """The columns of each query's output, and why Spark refuses the others. Nothing runs or is installed.

    Each query must come after those that it reads. A query that reads a refused one is in neither result.
    """
    outputs: dict[str, pa.Schema] = {}
    refused: dict[str, str] = {}
    analysis = Analysis(session)
    for query in queries:
        known = {**streams, **outputs}
        if not all(stream in known for stream in query.graph.streams):
            continue
        try:
            outputs[query.name] = output_of(analysis, query, known)
        except UserError as error:
            refused[query.name] = f"Spark refuses it: {str(error).removeprefix(f'query {query.name}: ')}"
    return outputs, refused
