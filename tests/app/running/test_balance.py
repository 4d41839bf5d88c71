"""Automatic beta on Spark: it follows load steps, and the report says so; wrong expectations are refused."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import freshet
from freshet.bench.freshness.queries import chain
from freshet.model import UserError

ROWS = pa.table({"v": np.random.default_rng(1).random(100_000)})


@pytest.mark.long  # it loads Spark until answers are late; engine/optimizer/test_beta.py does it in simulated time
@pytest.mark.spark
def test_beta_follows_load_steps(tmp_path: Path) -> None:
    """With little to do it is as fresh as can be, under an overload as quick as can be, and back again."""
    app = freshet.App(
        "balance", state=tmp_path / "state", master="local[2]", policy="fas-mcq", look_every="200 ms",
        expect={"response": "2 s"}, ageing="1 min",
    )  # fmt: skip
    app.stream("s", "v double")
    for number in range(3):
        app.query(f"q{number}", f"SELECT v FROM s WHERE {chain('v', 'v', 96, 3.01 + number)} < 0.01")
    with app.start() as run:
        betas = [1.0]

        def look() -> float:
            balance = run.report()["balance"]
            assert balance is not None
            if balance["beta"] != betas[-1]:
                betas.append(balance["beta"])
            return betas[-1]

        def calm() -> None:
            """Little comes until beta is at its fresh end."""
            for _ in range(200):
                run.push("s", ROWS.slice(0, 1000))
                run.drain()
                time.sleep(0.1)
                if look() == 1.0:
                    return
            pytest.skip("even without load, answers take longer than the bound on this machine")

        calm()
        while look() > 0.4:
            # However long it takes: the load is what counts, not the time.
            run.push("s", ROWS)
            time.sleep(0.02)
        run.drain()
        calm()
        run.set_policy("fas-mcq(0.7)")
        told = run.report()["balance"]
        assert told is not None
        assert told["beta"] == 1.0
        assert told["observed"] is not None
        assert told["bound"] == "response at most 2 s"
        assert run.report()["settings"]["expect"] == "response at most 2 s"
        # Down and up again, and never far at once: several looks lie between.
        assert min(betas) <= 0.4
        assert len(betas) >= 3


@pytest.mark.parametrize(
    ("policy", "expect", "told"),
    [
        ("fcfs", {"response": "1 s"}, "^expect: only the policy fas-mcq has a beta to find, and this is fcfs$"),
        ("fas-mcq", {"response": "soon"}, "soon"),
        ("fas-mcq", {"latency": "1 s"}, "^expect: must be"),
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
