"""Steps of many chains over a long train: tasks get some of the chains each."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness, query, write_train
from tests.spark.residents.test_residents import SCHEMA, Hooked, rows, sleep_while_there

from freshet.model import UnitResult

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

NAMES = [f"q{number}" for number in range(16)]


OUT = [7, 7, 7, 7] + 12 * [6]
"""Rows of each of them from a hundred."""


@pytest.fixture
def two(spark: SparkSession, tmp_path: Path) -> Iterator[Harness]:
    with Harness(spark, tmp_path, residents=2) as harness:
        assert harness.pool.wait_until_there(300.0)
        harness.install({"s": SCHEMA}, *(query(name, "s", f"v % 16 = {number}") for number, name in enumerate(NAMES)))
        yield harness


def divide_all(harness: Harness) -> None:
    """From now on trains of any size are long."""
    harness.executor.jobs.split_tuples = harness.executor.jobs.split_effort = 0


def check(harness: Harness, result: UnitResult) -> None:
    for number, name in enumerate(NAMES):
        found = harness.read(result, name)
        assert found is not None
        assert found["v"].to_pylist() == list(range(number, 100, 16))
    mine = result.chains[: len(NAMES)]
    assert [each.rows_out for each in mine] == OUT
    assert all(run.rows_in == 100 and run.seconds > 0 for each in mine for run in each.operators)


def test_each_resident_runs_some_of_the_chains(two: Harness) -> None:
    divide_all(two)
    train = write_train(two.state, "s", rows())
    result = two.run(two.unit(train, *NAMES))
    check(two, result)
    assert result.way == "resident"
    halves = [{member[0] for member in file.members} for file in result.files]
    assert sorted(halves, key=min) == [set(NAMES[::2]), set(NAMES[1::2])]
    # Chains that take tuples from each other stay together.
    two.install({}, query("behind", "q0", "v > 50"))
    unit = two.unit(train, *NAMES)
    both = two.run(replace(unit, chains=(*unit.chains, two.chain("behind", 0))))
    check(two, both)
    assert both.chains[-1].rows_out == len([v for v in range(0, 100, 16) if v > 50])
    [first] = [file for file in both.files if any(member[0] == "q0" for member in file.members)]
    assert "behind" in [member[0] for member in first.members]


def test_while_one_resident_is_busy_the_other_runs_all_parts(two: Harness, tmp_path: Path) -> None:
    hooked = Hooked(two, tmp_path, sleep_while_there)
    long = hooked.submit("q")
    hooked.process()
    divide_all(two)
    before = two.pool.dispatches
    result = two.run(two.unit(hooked.train, *NAMES))
    check(two, result)
    assert len(result.files) == 2
    assert two.pool.dispatches - before == 2
    assert len(two.pool.idle()) == 1, "the other one has worked all the time"
    hooked.mark.unlink()
    assert hooked.check(long).way == "resident"


def test_a_resident_that_is_killed_takes_no_part_with_it(two: Harness, tmp_path: Path) -> None:
    hooked = Hooked(two, tmp_path, sleep_while_there)
    divide_all(two)
    unit = hooked.submit("q", *NAMES)
    os.kill(hooked.process(), signal.SIGKILL)
    hooked.mark.unlink()
    result = hooked.check(unit)
    assert result.way == "vectorised"
    assert [each.rows_out for each in result.chains] == [10, *OUT]
    assert two.executor.residents()["given_back"] == 1
