"""A session for the time of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from freshet.model import Network, Query
from freshet.spark.analysis import Analysis
from freshet.spark.installation import Installation
from freshet.spark.session import open_session

__all__ = ["DataFrame", "SparkSession", "embedded_session", "outputs_of"]


@contextmanager
def embedded_session(
    app_name: str,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    log_folder: Path | None = None,
) -> Iterator[SparkSession]:
    """Opens a session, and stops Spark at the end where it did not run before; see :func:`open_session`."""
    ran = SparkContext._active_spark_context is not None
    session = open_session(app_name, master, settings, log_folder=log_folder)
    try:
        yield session
    finally:
        if not ran:
            with suppress(OSError):  # a JVM that has ended is stopped already
                session.stop()


def outputs_of(
    session: SparkSession, queries: Iterable[Query], streams: Mapping[str, pa.Schema]
) -> dict[str, pa.Schema]:
    """The columns of the queries' outputs, without running or installing anything.

    Raises:
        UserError: Spark does not accept an expression.
    """
    network = Network()
    for query in queries:
        network.add(query)
    installation = Installation(Analysis(session))
    installation.extend(network.nodes, streams)
    return dict(installation.outputs)
