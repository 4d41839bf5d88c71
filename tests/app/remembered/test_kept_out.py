"""A query that a run has died with stays out of the next ones, until somebody asks or its text changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.app import App, Run
from freshet.spark.driver.running import Running

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.timeout(900)]

TEXT = "SELECT k FROM s WHERE k % 2 = 0"


def make_app(folder: Path, text: str = TEXT) -> App:
    app = App("kept", state=folder / "state", master="local[2]")
    app.stream("s", "k int")
    app.query("good", "SELECT k FROM s WHERE k > 0")
    app.query("bad", text)
    return app


def push(run: Run) -> dict[str, tuple[str, int]]:
    run.push("s", [{"k": 1}, {"k": 2}])
    assert run.drain(240)
    return {name: (query["state"], run.read(name).num_rows) for name, query in run.meters()["queries"].items()}


def test_it_stays_out_until_somebody_asks_or_its_text_changes(tmp_path: Path) -> None:
    with make_app(tmp_path).start() as run:
        assert push(run) == {"good": ("active", 2), "bad": ("active", 1)}
    notes = Running(tmp_path / "state")
    notes.job(["bad"]).__enter__()
    notes.died("Spark's JVM has ended with exit code 52 (out of memory)", certain=True)
    for rows in (4, 6):
        with make_app(tmp_path).start() as run:
            assert push(run) == {"good": ("active", rows), "bad": ("quarantined", 1)}
            reason = run.meters()["queries"]["bad"]["reason"] or ""
        assert reason.startswith("Spark's JVM has ended with exit code 52 (out of memory) while this query ran alone")
        assert "--try-again" in reason
    with make_app(tmp_path, TEXT + " AND k > 1").start() as run:
        assert push(run) == {"good": ("active", 8), "bad": ("active", 5)}
    with make_app(tmp_path, TEXT + " AND k > 1").start() as run:
        assert push(run) == {"good": ("active", 10), "bad": ("active", 6)}


def test_a_query_that_was_asked_for_goes_on_from_its_place(tmp_path: Path) -> None:
    with make_app(tmp_path).start() as run:
        push(run)
    notes = Running(tmp_path / "state")
    notes.job(["bad"]).__enter__()
    notes.died("Spark's JVM has ended", certain=True)
    with make_app(tmp_path).start() as run:
        assert push(run)["bad"] == ("quarantined", 1)
    with make_app(tmp_path).start(try_again=True) as run:
        assert push(run) == {"good": ("active", 6), "bad": ("active", 3)}
