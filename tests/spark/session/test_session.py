from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from freshet.model import UserError
from freshet.spark.session.session import SettingLost, check_session, open_session

pytestmark = pytest.mark.spark


def test_nothing_is_lost(spark: SparkSession):
    assert check_session(spark) == []
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_workers_have_everything_loaded_before_the_fork(spark: SparkSession):
    def loaded(batches):
        import gc
        import sys

        import pyarrow as pa

        for _ in batches:
            pass
        parent = "freshet.spark.worker.vectorised" in sys.modules
        yield pa.RecordBatch.from_pydict({"loaded": [parent], "frozen": [gc.get_freeze_count() > 0]})

    rows = spark.range(0, 1, 1, 1).mapInArrow(loaded, "loaded boolean, frozen boolean").collect()
    assert [tuple(row) for row in rows] == [(True, True)]


def test_a_second_session_has_settings_of_its_own(spark: SparkSession):
    other = open_session("another", settings={"spark.sql.shuffle.partitions": "7"})
    assert other.sparkContext is spark.sparkContext
    assert other.conf.get("spark.sql.shuffle.partitions") == "7"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_lost_setting_is_told(spark: SparkSession):
    wanted = {"spark.ui.enabled": "true", "spark.python.worker.reuse": "false", "spark.mine": "1"}
    with pytest.warns(SettingLost) as told:
        lost = check_session(spark, wanted)
    assert lost == ["spark.python.worker.reuse", "spark.ui.enabled", "spark.mine"]
    assert [str(each.message) for each in told] == [
        "Spark runs with spark.python.worker.reuse=true instead of false: "
        "each task then starts a Python worker, which takes some 300 ms",
        "Spark runs with spark.mine=None instead of 1",
    ]


def test_a_session_that_would_answer_wrongly_is_refused(spark: SparkSession):
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with pytest.raises(UserError, match="timeZone"):
        check_session(other)
    with pytest.raises(UserError, match="timeZone must be UTC, else answers would be wrong"):
        open_session("tokyo", settings={"spark.sql.session.timeZone": "Asia/Tokyo"})


def test_what_the_python_of_a_spark_that_ran_before_lacks_is_told(tmp_path: Path):
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    program = """
        from pyspark.sql import SparkSession
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        from freshet.model import UserError
        from freshet.spark.session.session import open_session
        try:
            open_session("late")
            print("it runs")
        except UserError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        env={**os.environ, "PYSPARK_PYTHON": str(bare)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"their Python ({bare}) needs numpy, pandas, pyarrow and sqlglot" in done.stdout


def test_the_terminal_stays_clean_and_interrupts_stay_ours(tmp_path: Path):
    program = f"""
        import signal, sys, warnings
        from pathlib import Path
        warnings.simplefilter("error")
        before = signal.getsignal(signal.SIGINT)
        from freshet.spark.session.session import open_session
        session = open_session("quiet", "local[1]", log_folder=Path({str(tmp_path)!r}))
        assert signal.getsignal(signal.SIGINT) is before
        try:
            session.range(3).selectExpr("raise_error('loud') AS x").collect()
        except Exception as error:
            print("caught")
        try:
            session.range(3).selectExpr("no_such_function(id)")
        except Exception as error:
            print("caught")
        session.stop()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "caught\ncaught\n", "")
    assert "loud" in (tmp_path / "spark.log").read_text()
    assert signal.getsignal(signal.SIGINT) is not None


SIGNALLED = """
import os, signal, sys, time
from pathlib import Path
from freshet.spark.session.session import open_session

heard = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: heard.append(number))
session = open_session("signalled", "local[1]", log_folder=Path(sys.argv[1]))
session.range(3).mapInArrow(lambda batches: batches, "id long").count()
print("ready", flush=True)
while len(heard) < 2:
    time.sleep(0.05)
time.sleep(0.5)
print("drained", session.range(100).mapInArrow(lambda batches: batches, "id long").count(), flush=True)
sys.stdin.read()
session.stop()
"""


@contextmanager
def signalled(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A driver with a process group of its own that has heard SIGINT and SIGTERM, and all that it started."""
    command = [sys.executable, "-c", SIGNALLED, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as driver:  # type: ignore[call-overload]
        try:
            assert driver.stdout.readline() == "ready\n"
            started = psutil.Process(driver.pid).children(recursive=True)
            for number in (signal.SIGINT, signal.SIGTERM):
                os.killpg(driver.pid, number)
            assert driver.stdout.readline() == "drained 100\n"
            yield driver, started
        finally:
            driver.kill()


def test_a_signal_to_the_whole_group_leaves_spark_to_the_driver(tmp_path: Path):
    with signalled(tmp_path) as (driver, started):
        assert any("java" in process.name() for process in started)
        assert driver.communicate() == ("", "")
        assert driver.returncode == 0
        assert psutil.wait_procs(started, timeout=600)[1] == []


@pytest.mark.long  # test_driver_killed.py kills a driver, too
def test_spark_ends_with_a_driver_that_is_killed(tmp_path: Path):
    with signalled(tmp_path) as (driver, started):
        driver.kill()
        assert psutil.wait_procs(started, timeout=600)[1] == []


def test_a_jvm_that_ends_leaves_no_trace_on_the_terminal(tmp_path: Path):
    with signalled(tmp_path) as (driver, started):
        (jvm,) = [process for process in started if "java" in process.name()]
        jvm.kill()
        until = time.monotonic() + 600
        while jvm.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
            time.sleep(0.05)
        _, errors = driver.communicate()
        assert "socketserver" not in errors
