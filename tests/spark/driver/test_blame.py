"""Whose fault a failed unit is: mistakes of our own are found by bisecting, too, and nothing is tried for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness, query, with_arrivals, write_train

from freshet.model import Train, UnitResult, UserError, parse_schema
from freshet.spark.driver.installation import Installation
from freshet.spark.driver.results import Outcome, combine
from freshet.spark.driver.suspects import Suspects
from freshet.spark.worker.spec import Spec

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCHEMA = parse_schema("k bigint")


def install(harness: Harness, **predicates: str) -> Train:
    harness.install({"s": SCHEMA}, *(query(name, "s", text) for name, text in predicates.items()))
    return write_train(harness.state, "s", with_arrivals(pa.table({"k": list(range(10))}, schema=SCHEMA)))


def run(harness: Harness, train: Train, *names: str) -> dict[str, str | None]:
    result: UnitResult = harness.run(harness.unit(train, *names))
    assert result.retry is None
    return {name: done.failure for name, done in zip(names, result.chains, strict=True)}


def raise_for(number: int, original: Any) -> Any:
    """A function of ours that has a mistake where the operator with a number comes in."""

    def broken(self: Any, numbers: Sequence[int]) -> Any:
        if number in numbers:
            raise KeyError("a mistake of ours")
        return original(self, numbers)

    return broken


def test_a_mistake_before_the_jobs_is_the_failure_of_the_chains_that_it_is_about(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = install(harness, one="k > 1", two="k > 2", three="k > 3")
    monkeypatch.setattr(Installation, "form", raise_for(harness.network.root("two"), Installation.form))
    assert run(harness, train, "one", "two", "three") == {"one": None, "two": "'a mistake of ours'", "three": None}


def test_a_mistake_in_building_results_is_the_failure_of_the_chains_that_it_is_about(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = install(harness, one="k > 1", two="k > 2", three="k > 3")
    bad = harness.network.root("two")

    def broken(chain: Any, *rest: Any) -> Any:
        if chain.nodes == (bad,):
            raise ZeroDivisionError("a mistake of ours")
        return combine(chain, *rest)

    monkeypatch.setattr("freshet.spark.driver.course.combine", broken)
    assert run(harness, train, "one", "two", "three") == {"one": None, "two": "a mistake of ours", "three": None}


def test_a_mistake_that_is_about_nobody_ends_the_tries_all_the_same(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = install(harness, one="k > 1")
    monkeypatch.setattr(Outcome, "merge", lambda self, other: 1 / 0)
    assert run(harness, train, "one") == {"one": "division by zero"}


def test_a_query_that_cannot_be_told_to_workers_is_refused_and_the_others_run(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = install(harness, good="k > 1")
    parse = Spec.parse

    def broken(text: str) -> Spec:
        if "spoilt" in text:
            raise ValueError("workers would not read this")
        return parse(text)

    monkeypatch.setattr(Spec, "parse", broken)
    with pytest.raises(UserError, match="query bad: it cannot be told to workers"):
        harness.install({}, query("bad", "s", "'spoilt' <> 'x'"))
    harness.install({}, query("later", "s", "k > 2"))
    assert run(harness, train, "good", "later") == {"good": None, "later": None}


def test_a_chain_that_takes_too_long_fails_and_a_later_unit_runs(spark: SparkSession, tmp_path: Path) -> None:
    with Harness(spark, tmp_path, time_limit=4.0) as harness:
        train = install(harness, slow="java_method('java.lang.Thread', 'sleep', 3600000L) = 'x'")
        assert run(harness, train, "slow") == {"slow": "a unit took longer than 4 s (unit_timeout)"}
    with Harness(spark, tmp_path) as harness:
        assert run(harness, install(harness, good="k > 1"), "good") == {"good": None}


DIES = """
import shutil, sys
from pathlib import Path
import pyarrow as pa
from tests.spark.kit import Harness, query, with_arrivals, write_train
from freshet.model import FreshetError, parse_schema
from freshet.spark.session.session import open_session
from freshet.spark.driver.suspects import Suspects

state, schema = Path(sys.argv[1]), parse_schema("k bigint")
suspects = Suspects(state, {"good": "1", "bad": "2"})
print(sorted(suspects.alone), suspects.why_out("good", "1"), suspects.why_out("bad", "2"), flush=True)
session = open_session("dies", "local[1]", log_folder=state)
harness = Harness(session, state, suspects=suspects)
texts = {"bad": "java_method('java.lang.System', 'exit', 52) = 'x'", "good": "initcap('a') = 'A'"}
harness.install({"s": schema}, *(query(name, "s", text) for name, text in texts.items()))
shutil.rmtree(state / "segments")  # a train has the same name in every process
(state / "segments").mkdir()
train = write_train(state, "s", with_arrivals(pa.table({"k": [1]}, schema=schema)))
try:
    # As the engine does: suspects are not in a unit with others.
    for names in [["bad"], ["good"]] if harness.executor.alone else [["bad", "good"]]:
        print(harness.run(harness.unit(train, *names)))
except FreshetError as error:
    print(error, flush=True)
harness.executor.close()
"""


@pytest.mark.timeout(600)
def test_who_takes_the_jvm_along_is_found_over_restarts(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]

    def start() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", DIES, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])},
        )
        return done.stdout.splitlines()

    died = "Spark's JVM has ended with exit code 52 (out of memory) (see spark.out in the state folder)"
    first, second = start(), start()
    assert first[0] == "[] None None"
    assert second[0] == "['bad', 'good'] None None", (first, second)
    assert all(lines[-1] == f"{died}; start again to go on" for lines in (first, second)), (first, second)
    third = Suspects(tmp_path, {"good": "1", "bad": "2"})
    assert third.why_out("good", "1") is None
    assert third.why_out("bad", "2") is not None
