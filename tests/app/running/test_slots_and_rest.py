"""An application on a Spark with one slot, and one that has nothing to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from freshet.app import App
from freshet.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_with_one_slot_there_are_no_residents_and_everything_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.app.running.one_slot", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    answers = told["answers"]
    assert sorted(answers["plain"]) == [3, 13, 23, 33, 43, 53]
    assert answers["sums"] == [sum(range(first, first + 10)) for first in range(0, 50, 10)]
    assert sorted(answers["own"]) == [0, 1, 2, 3, 4]
    assert told["residents"]["wanted"] == 0
    assert told["residents"]["reason"] == "Spark has one slot, which is left to jobs"
    assert "resident" not in told["ways"]


def test_what_is_compiled_goes_to_residents_also_beside_what_is_not(spark: SparkSession, tmp_path: Path) -> None:
    app = App("mixed", state=tmp_path / "state", spark=spark, policy="everything")
    app.stream("s", "v bigint")
    app.query("plain", "SELECT v FROM s WHERE v > 1")
    app.query("other", "SELECT crc32(cast(v AS string)) AS c FROM s WHERE v > 1")
    with app.start() as run:
        while not run.report()["residents"]["present"]:
            time.sleep(0.1)
        for batch in range(3):
            run.push("s", [{"v": batch}, {"v": 2}])
            assert run.drain()
        assert [row["v"] for row in run.read("plain").to_pylist()] == [2, 2, 2, 2]
        assert run.read("other").num_rows == 4
        ways = {way: told["calls"] for way, told in run.report()["ways"].items()}
    assert ways == {"resident": 3, "staged": 3}


def test_an_application_with_nothing_to_do_costs_next_to_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    turn = Engine.turn

    def counted(engine: Engine) -> None:
        nonlocal turns
        turns += 1
        turn(engine)

    monkeypatch.setattr(Engine, "turn", counted)
    app = App("rest", state=tmp_path / "state")
    app.stream("s", "v bigint")
    app.query("q", "SELECT v FROM s WHERE v > 1")
    with app.start() as run:
        run.push("s", [{"v": 1}, {"v": 2}])
        assert run.drain()
        residents = [psutil.Process(each["process"]) for each in run.report()["residents"]["present"]]
        assert residents

        def spent() -> tuple[int, float, float]:
            cpu = sum(sum(each.cpu_times()[:2]) for each in residents)
            return turns, cpu, time.process_time()

        def rests() -> bool:
            before = spent()
            time.sleep(4.0)
            woken, resident, driver = (now - then for now, then in zip(spent(), before, strict=True))
            # Reports and the like ask the engine once in a while; who looks again and again does so forty times. A
            # resident has two ticks of the system's clock; the driver writes reports, and looks at what to keep.
            return woken <= 10 and resident <= 0.02 and driver <= 0.2

        # What the last step has set going comes to its end, and this process may have other things to do.
        assert any(rests() for _ in range(10))
