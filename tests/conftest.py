"""Fixtures that several packages of tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests import java_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A slow machine is no reason to fail.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

LONGEST = (
    "tests/cluster/test_cluster.py",
    "tests/cluster/test_shipping.py",
    "tests/bench/test_benches.py",
    "tests/spark/driver/test_blame.py",
    "tests/cluster/test_residents_in_local_cluster.py",
    "tests/reproduce/test_fas.py",
    "tests/cli/test_demo.py",
    "tests/cli/test_run.py",
    "tests/engine/test_invariance.py",
    "tests/spark/session/test_session.py",
    "tests/cluster/test_large_trains.py",
    "tests/bench/test_periodic.py",
    "tests/reproduce/test_rtstream.py",
    "tests/reproduce/test_mavstream.py",
    "tests/spark/test_large_texts.py",
    "tests/app/running/test_killed_files.py",
    "tests/app/running/test_thinning.py",
    "tests/app/remembered/test_put_back.py",
    "tests/cli/test_starting.py",
    "tests/bench/test_qos.py",
    "tests/bench/test_freshness.py",
    "tests/quality/feasibility/test_knee.py",
    "tests/sources/mirror/test_worth.py",
    "tests/app/running/test_slots_and_rest.py",
    "tests/sources/mirror/test_audits.py",
)
"""Files that take half a minute and more, the longest first."""


def pytest_configure(config: pytest.Config) -> None:
    """Gives the JVMs of all tests their options. A run of several processes first makes the archive of Spark's classes,
    if there is none; it soon pays."""
    archive = java_classes.place(Path(__file__).parents[1] / "build" / "tests")
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput") and not archive.exists():
        java_classes.make(archive)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", java_classes.options(archive))


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: tests wait for other processes, for clocks, and for the disk."""
    return (os.cpu_count() or 1) + 1


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
