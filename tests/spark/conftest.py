from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness


@pytest.fixture
def harness(spark: SparkSession, tmp_path: Path) -> Iterator[Harness]:
    with Harness(spark, tmp_path) as one:
        yield one
