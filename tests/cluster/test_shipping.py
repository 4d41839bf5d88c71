"""Applications on a cluster whose Python has no Freshet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.bare import heedless, python_without
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.large import CHUNKS
from tests.cluster.large_run import check, running

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bare")


@pytest.fixture(scope="module")
def bare_workers(folder: Path) -> Iterator[Cluster]:
    with cluster(folder, installed=False) as found:
        yield found


@pytest.fixture(scope="module")
def bare_python(folder: Path) -> Path:
    python = python_without(folder / "bare", "freshet")
    tried = subprocess.run([python, "-c", "import freshet"], cwd=folder, env={}, capture_output=True, check=False)
    assert b"No module named 'freshet'" in tried.stderr
    return python


def test_executors_without_freshet_are_sent_it_and_lose_nothing(
    tmp_path: Path, bare_workers: Cluster, bare_python: Path
):
    pythons = run_app(tmp_path, bare_workers, bare_python)
    check(tmp_path)
    assert {module for module, _ in pythons} == {"freshet.spark.worker.daemon"}
    assert {arenas for _, arenas in pythons} == {os.environ.get("MALLOC_ARENA_MAX", "2")}
    assert "SettingLost" not in (tmp_path / "driver.err").read_text()


@pytest.mark.long  # the last test has executors with the daemon of PySpark, too
def test_executors_that_cannot_import_the_daemon_fall_back(
    tmp_path: Path, folder: Path, bare_workers: Cluster, bare_python: Path
):
    pythons = run_app(tmp_path, bare_workers, heedless(folder, bare_python))
    check(tmp_path)
    assert {module for module, _ in pythons} == {"pyspark.daemon"}
    told = (tmp_path / "driver.err").read_text()
    assert "SettingLost: executors cannot import freshet.spark.worker.daemon" in told
    assert "install freshet" in told


def run_app(folder: Path, workers: Cluster, python: Path) -> set[tuple[str, str]]:
    """Runs the 25 queries; returns which module their Python processes ran, and with how many arenas."""
    pythons = set()
    with running(folder, workers.master, named(python)) as app:
        for _ in range(CHUNKS):
            app.push()
            app.answered()
            pythons |= workers.environments("MALLOC_ARENA_MAX")
    return pythons


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        # tests/spark/session/test_session.py has a Python that lacks packages, too.
        pytest.param(
            "sqlglot",
            r"executors cannot import sqlglot: their Python \(.*\) needs numpy, pandas, pyarrow and sqlglot",
            marks=pytest.mark.long,
        ),
        (None, "executors have no Python at .*/nowhere"),
    ],
)
def test_what_executors_lack_is_told(
    tmp_path: Path, folder: Path, bare_workers: Cluster, lacks: str | None, words: str
):
    python = python_without(folder / f"no-{lacks}", lacks) if lacks else tmp_path / "nowhere"
    program = f"""
import re, sys
from pathlib import Path
from pyspark import SparkContext
from freshet.model import UserError
from freshet.spark.session.session import open_session
settings = {{"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m", **{named(python)!r}}}
try:
    open_session("lacking", {bare_workers.master!r}, settings, log_folder=Path({str(tmp_path)!r}))
except UserError as error:
    assert re.search({words!r}, str(error)), error
    assert SparkContext._active_spark_context is None
    print("told")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "told\n", done.stderr


OWN_SPARK = """
import sys, warnings
from pyspark.sql import SparkSession
from freshet.spark.session.java import ensure_java
from freshet.spark.session.session import SettingLost, open_session

ensure_java()
builder = SparkSession.builder.master(sys.argv[1]).config("spark.driver.host", "127.0.0.1")
mine = builder.config("spark.executor.memory", "512m").getOrCreate()
with warnings.catch_warnings(record=True) as lost:
    warnings.simplefilter("always", SettingLost)
    session = open_session("guest")

def whose(batches):
    import freshet
    import pyarrow as pa

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"file": [freshet.__file__]})

((file,),) = session.range(0, 1, 1, 1).mapInArrow(whose, "file string").collect()
print(".zip/freshet" in file, any("daemon.module" in str(one.message) for one in lost))
mine.stop()
"""


def test_a_spark_that_somebody_else_has_started_is_sent_the_package(bare_workers: Cluster, bare_python: Path):
    environment = os.environ | {"PYSPARK_PYTHON": str(bare_python)}
    command = [sys.executable, "-c", OWN_SPARK, bare_workers.master]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "True True\n", done.stderr[-3000:]


def named(python: Path) -> dict[str, str]:
    return {"spark.pyspark.python": str(python)}
