"""Who a run died with: found over restarts, and kept out of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from freshet.spark.driver.running import Running, last_words
from freshet.spark.driver.suspects import STAYS_OUT, Suspects

TEXTS = {"good": "1", "bad": "2"}


def die(state: Path, *queries: str, reason: str | None = None, certain: bool = False) -> None:
    """What a process leaves that is killed while a job of these queries runs."""
    notes = Running(state)
    notes.job(queries).__enter__()
    if reason is not None:
        notes.died(reason, certain)


def test_a_run_that_ends_well_leaves_nobody_to_suspect(tmp_path: Path) -> None:
    notes = Running(tmp_path)
    with notes.job(["good", "bad"]):
        assert last_words(tmp_path).queries == ("bad", "good")
    assert last_words(tmp_path).queries == ()
    assert not Suspects(tmp_path, TEXTS).alone


def test_a_job_that_only_fails_leaves_nobody_to_suspect(tmp_path: Path) -> None:
    notes = Running(tmp_path)
    with pytest.raises(ValueError, match="wrong"), notes.job(["bad"]):
        raise ValueError("wrong")
    notes.failed()
    assert last_words(tmp_path).queries == ()


def test_after_a_jvm_has_died_each_that_ran_runs_alone_and_the_one_is_kept_out(tmp_path: Path) -> None:
    die(tmp_path, "good", "bad", reason="Spark's JVM has ended", certain=True)
    suspects = Suspects(tmp_path, TEXTS)
    assert suspects.alone == {"good", "bad"}
    suspects.clear(["good"])
    die(tmp_path, "bad", reason="Spark's JVM has ended", certain=True)
    again = Suspects(tmp_path, TEXTS)
    assert not again.alone
    assert again.why_out("good", "1") is None
    reason = again.why_out("bad", "2")
    assert reason is not None
    assert reason.startswith("Spark's JVM has ended while this query ran alone")
    assert reason.endswith(STAYS_OUT)


def test_it_stays_out_until_its_text_changes_or_somebody_asks(tmp_path: Path) -> None:
    die(tmp_path, "bad", reason="Spark's JVM has ended", certain=True)
    for _ in range(3):
        assert Suspects(tmp_path, TEXTS).why_out("bad", "2")
    assert Suspects(tmp_path, TEXTS).why_out("bad", "another text") is None
    assert Suspects(tmp_path, TEXTS, try_again=True).why_out("bad", "2") is None
    assert Suspects(tmp_path, TEXTS).why_out("bad", "2") is None


def test_a_kill_from_outside_is_held_against_nobody_at_first(tmp_path: Path) -> None:
    for _ in range(20):
        die(tmp_path, "bad")
        suspects = Suspects(tmp_path, TEXTS)
        assert not suspects.alone
        suspects.clear(["bad"])  # a unit of it came to its end before the next kill


def test_who_takes_the_jvm_along_again_and_again_without_an_end_is_found(tmp_path: Path) -> None:
    die(tmp_path, "good", "bad", reason="Spark's JVM has ended with exit code -9")
    assert not Suspects(tmp_path, TEXTS).alone
    die(tmp_path, "good", "bad", reason="Spark's JVM has ended with exit code -9")
    suspects = Suspects(tmp_path, TEXTS)
    assert suspects.alone == {"good", "bad"}
    suspects.clear(["good"])
    die(tmp_path, "bad", reason="Spark's JVM has ended with exit code -9")
    reason = Suspects(tmp_path, TEXTS).why_out("bad", "2")
    assert reason is not None
    assert reason.startswith("Spark's JVM has ended with exit code -9")


def test_whoever_ran_when_the_driver_was_killed_runs_alone_and_is_never_kept_out(tmp_path: Path) -> None:
    for deaths in range(1, 20):
        die(tmp_path, "good" if deaths > 2 else "bad", "bad")
        suspects = Suspects(tmp_path, TEXTS)
        assert ("bad" in suspects.alone) == (deaths >= 2)
        assert [suspects.why_out(name, text) for name, text in TEXTS.items()] == [None] * len(TEXTS)


def test_work_that_queries_share_keeps_all_of_them_out_where_it_dies_alone(tmp_path: Path) -> None:
    die(tmp_path, "good", "bad", "third", reason="Spark's JVM has ended", certain=True)
    suspects = Suspects(tmp_path, TEXTS)
    suspects.clear(["third"])
    die(tmp_path, "good", "bad", reason="Spark's JVM has ended", certain=True)
    again = Suspects(tmp_path, TEXTS)
    assert not again.alone
    assert all(again.why_out(name, text) for name, text in TEXTS.items())


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"deaths": 3}', json.dumps({"deaths": {"a": "x"}, "out": {}})])
def test_files_that_a_power_cut_has_spoilt_blame_nobody(tmp_path: Path, text: str) -> None:
    die(tmp_path, "bad", reason="x", certain=True)
    for file in (tmp_path / "running").iterdir():
        file.write_text(text if not text.startswith("[") else "")
    (tmp_path / "suspects.json").write_text(text)
    suspects = Suspects(tmp_path, TEXTS)
    assert not suspects.alone
    assert suspects.why_out("bad", "2") is None
