"""Formats of Spark that come in packages of their own; known without a Spark."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGES: Final = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    "avro": "org.apache.spark:spark-avro_2.13:{spark}",
    "delta": "io.delta:delta-spark_2.13:VERSION",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-{series}_2.13:VERSION",
    "hudi": "org.apache.hudi:hudi-spark{series}-bundle_2.13:VERSION",
    "pulsar": "io.streamnative.connectors:pulsar-spark-connector_2.13:VERSION",
    "mongodb": "org.mongodb.spark:mongo-spark-connector_2.13:VERSION",
    "aws-kinesis": "com.qubole.spark:spark-sql-kinesis_2.13:VERSION",
}
"""The package that brings each format."""

_SETTINGS: Final = ("spark.jars.packages", "spark.jars", "spark.driver.extraClassPath")
_VARIABLES: Final = ("PYSPARK_SUBMIT_ARGS", "SPARK_CLASSPATH", "SPARK_DIST_CLASSPATH")


def why_missing(format_: str, settings: Mapping[str, str]) -> str | None:
    """Why Spark will not know a format; None if it will, or if only Spark can tell.

    >>> why_missing("rate", {}) is None, why_missing("kafka", {"spark.jars": "/opt/own.jar"}) is None
    (True, True)
    """
    package = PACKAGES.get(format_.lower())
    if package is None or any(settings.get(key) for key in _SETTINGS):
        return None
    jar = re.split("_2|{", package.split(":")[1])[0]
    if any(_elsewhere(jar)):
        return None
    return f"Spark has no {format_} of its own: {advice(format_)}"


def advice(format_: str) -> str:
    """What to write so that Spark knows a format."""
    spark = _version()
    text = PACKAGES.get(format_.lower(), "GROUP:ARTIFACT:VERSION")
    package = text.format(spark=spark, series=".".join(spark.split(".")[:2]))
    return f'name its package in [spark.settings]: "spark.jars.packages" = "{package}"'


def _elsewhere(jar: str) -> Iterator[bool]:
    """Whether anything outside the application may bring a jar whose name begins like this."""
    # A Spark that runs in this process has its own.
    pyspark = sys.modules.get("pyspark")
    yield pyspark is not None and pyspark.SparkContext._active_spark_context is not None
    yield any(os.environ.get(name) for name in _VARIABLES)
    for home in _homes():
        yield any((home / "jars").glob(f"{jar}*.jar"))
        conf = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
        yield conf.is_file() and any(key in conf.read_text(errors="replace") for key in _SETTINGS)


def _homes() -> Iterator[Path]:
    given, found = os.environ.get("SPARK_HOME"), find_spec("pyspark")
    if given:
        yield Path(given)
    elif found is not None and found.origin is not None:
        yield Path(found.origin).parent


def _version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "VERSION"
