"""Fixtures that several packages of tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A slow machine is no reason to fail.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark of a test run; a test that stops it or needs other settings starts its own process."""
    from freshet.spark.session.session import open_session

    # Two cores, and slots for the residents of applications; the executors of other tests have none.
    folder = tmp_path_factory.mktemp("spark")
    session = open_session("freshet tests", "local[2]", log_folder=folder, residents=lambda cores: cores)
    yield session
    session.stop()
