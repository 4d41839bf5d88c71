"""Fixtures that several packages of tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A slow machine is no reason to fail.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a JVM that soon ends: Java would spend a third of its time on code that is fast, and hardly ever run."""
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)

LONGEST = (
    "tests/engine/test_invariance.py",
    "tests/cluster/test_large_trains.py",
    "tests/bench/test_benches.py",
    "tests/cluster/test_shipping.py",
    "tests/cluster/test_cluster.py",
    "tests/cli/test_run.py",
    "tests/spark/test_session.py",
    "tests/cli/test_demo.py",
    "tests/reproduce/test_rtstream.py",
    "tests/reproduce/test_fas.py",
    "tests/reproduce/test_mavstream.py",
    "tests/reproduce/test_aurora.py",
    "tests/engine/test_periodic.py",
    "tests/spark/test_blame.py",
    "tests/cli/test_starting.py",
    "tests/bench/test_freshness.py",
    "tests/bench/test_qos.py",
    "tests/kernels/test_calls_spark.py",
    "tests/spark/test_driver_killed.py",
)
"""Files that take half a minute and more, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the longest files first. A process takes whole files, so one that began last would be left alone."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(LONGEST)))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark of a test run; a test that stops it or needs other settings starts its own process."""
    from freshet.spark.session.session import open_session

    # Two cores, and slots for the residents of applications; the executors of other tests have none.
    folder = tmp_path_factory.mktemp("spark")
    session = open_session("freshet tests", "local[2]", log_folder=folder, residents=lambda cores: cores)
    yield session
    session.stop()
