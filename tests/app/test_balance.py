"""Automatic beta on Spark: an expectation that cannot be kept moves beta to its end, and the report says so."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import freshet
from freshet.model import UserError


@pytest.mark.spark
def test_beta_is_found_while_it_runs(tmp_path: Path) -> None:
    app = freshet.App(
        "balance", state=tmp_path / "state", master="local[2]", policy="fas-mcq", look_every="200 ms",
        expect={"response": "10 us"}, ageing="1 min",
    )  # fmt: skip
    app.stream("s", "v int")
    app.query("q", "SELECT v FROM s")
    with app.start() as run:
        for value in range(600):
            run.push("s", [{"v": value}])
            balance = run.report()["balance"]
            assert balance is not None
            if balance["beta"] == 0.0:
                break
            time.sleep(0.05)
        run.set_policy("fas-mcq(0.7)")
        told = run.report()["balance"]
        assert told is not None
        assert told["beta"] == 0.0
        assert told["looks"] >= 7
        assert told["observed"] is not None
        assert told["bound"] == "response at most 10 us"
        assert run.report()["settings"]["expect"] == "response at most 10 us"


@pytest.mark.parametrize(
    ("policy", "expect", "told"),
    [
        ("fcfs", {"response": "1 s"}, "expect is for the policy fas-mcq, and this is fcfs"),
        ("fas-mcq", {"response": "soon"}, "soon"),
        ("fas-mcq", {"latency": "1 s"}, "expect is"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, policy: str, expect: dict[str, str | float], told: str) -> None:
    with pytest.raises(UserError, match=told):
        freshet.App("a", state=tmp_path, policy=policy, expect=expect)


def test_a_file_with_a_wrong_expectation_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "app.toml"
    path.write_text(
        '[app]\npolicy = "fas-mcq"\nexpect = {freshness = 3}\n[streams.s]\nschema = "v int"\n'
        '[queries.q]\nsql = "SELECT v FROM s"\n'
    )
    with pytest.raises(UserError, match=r"app\.expect: .*freshness is a share between 0 and 1, not 3"):
        freshet.App.from_toml(path)
