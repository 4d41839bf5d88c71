"""Thinning on Spark, in both physical forms, over restarts and kills: answers are those of log minus ledger."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.app.running.thinned import application, check, push

from freshet.log import LogReader
from freshet.model import UserError

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(0)
@pytest.mark.usefixtures("spark")
def test_answers_are_those_of_log_minus_ledger_in_both_forms(tmp_path: Path) -> None:
    for ratio in (0.3, 0.7):
        with application(tmp_path).start() as run:
            first = run.read("s").num_rows
            for query in ("compiled", "planned", "worthy", "sums"):
                run.thin(query, ratio)
            for number in range(3):
                push(run, first + 1000 * number, 1000)
                run.drain()
            run.thin("compiled", 1.0)
            push(run, first + 3000, 1000)
            run.drain()
            told = run.report()["queries"]
            entries = run.missing("compiled")
            assert entries[-1].end == run.read("s").num_rows - 1000
            assert 0.0 < told["compiled"]["completeness"] < 1.0
            assert told["planned"]["rows_thinned"] == sum(
                entry.rows for entry in run.missing("planned") if entry.first >= first
            )
            rules = [entry.rule for entry in run.missing("worthy") if entry.first >= first]
            assert str(rules[-1]).startswith('value 1 ["size",'), "values were seen, also where Spark runs the query"
            with pytest.raises(UserError, match="above 0"):
                run.thin("planned", 2.0)
    with LogReader(tmp_path / "state") as log:
        check(log)


@pytest.mark.timeout(0)  # it starts Spark twice, and a start takes minutes where others work
def test_a_kill_changes_nothing(tmp_path: Path) -> None:
    thinned_and_killed(tmp_path, [0.05])


@pytest.mark.long
@pytest.mark.timeout(0)
def test_kills_at_any_moment_change_nothing(tmp_path: Path) -> None:
    draw = random.Random(16)
    thinned_and_killed(tmp_path, [draw.random() for _ in range(12)])


def thinned_and_killed(folder: Path, waits: Sequence[float]) -> None:
    """Kills one process after the other, each so many seconds after it began to thin; the last run must be right."""
    for seed, wait in enumerate(waits):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.app.running.thinned", str(folder), str(seed)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert child.stdout is not None
        for _ in range(12):
            assert child.stdout.readline(), "it ended by itself"
        time.sleep(wait)
        child.kill()
        child.communicate()
    with application(folder).start() as run:
        run.drain()
        for query in ("compiled", "planned", "worthy", "sums"):  # a last entry of each, so that all are compared
            run.thin(query, 0.5)
        push(run, run.read("s").num_rows, 1000)
        run.drain()
    with LogReader(folder / "state") as log:
        check(log)
