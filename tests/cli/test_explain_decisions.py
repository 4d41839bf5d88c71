"""How `freshet explain --decisions` tells of the optimizer, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.app.watched import APP, written
from tests.cli.commands import Command, freshet_command

from freshet.app.remembered.looks import LookWriter
from freshet.cli.explaining.decisions import decisions_text
from freshet.quality.optimizer import Look, MeasureLook


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return written(tmp_path)


def test_decisions_are_a_table(tmp_path: Path) -> None:
    late = MeasureLook("latency", "must", 1.0, observed=3.0, expected=2.0, ahead=2.0, violated=True, weight=1.0)
    small = MeasureLook("memory", "best-effort", 0.5, observed=1e6, expected=2e6, ahead=2e6, violated=False)
    look = Look(0.0, 3.0, "segment", "pcs", "best", (late, small), {"segment": 0.25, "pcs": 1.0}, applied=False)
    LookWriter(tmp_path).add("q", look)
    head, row = decisions_text(tmp_path, ["q"], as_json=False).splitlines()
    assert head.split() == ["time", "query", "age", "measures", "scores", "strategy", "rule"]
    assert "latency 3 s > 2 s (must 1), memory 1 MB of 2 MB (best-effort)" in row
    assert "segment 0.25 pcs 1" in row
    assert row.endswith("segment -> pcs  best, not done")
    assert "has not looked" in decisions_text(tmp_path, ["other"], as_json=False)
    assert json.loads(decisions_text(tmp_path, ["q"], as_json=True))[0]["rule"] == "best"


def test_only_the_latest_looks_are_kept_and_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    looks = [Look(float(number), 3.0, "segment", "segment", "satisfied") for number in range(40)]
    writer = LookWriter(tmp_path, most_bytes=2000)
    for look in looks[:-1]:
        writer.add("q", look)
    with (tmp_path / "looks.jsonl").open("a") as file:
        file.write('{"query": "q", "ti')
    LookWriter(tmp_path, most_bytes=2000).add("q", looks[-1])
    kept = [look["time"] for look in json.loads(decisions_text(tmp_path, ["q"], as_json=True))]
    assert kept == [float(number) for number in range(40 - len(kept), 40)]
    assert 2 < len(kept) < 40


@pytest.mark.parametrize(
    ("line", "place", "text"),
    [
        ('optimizer = "on"', "app.optimizer", "'act', 'advise' or 'off'"),
        ('ranks = "guessed"', "app.ranks", "'shipped', 'measured', 'predict' or a table of ranks"),
        (
            "ranks = {latency = {pcs = 2, segment = 1}, memory = {pcs = 1}}",
            "app.ranks",
            "the rank of segment is missing",
        ),
        ("ranks = {latency = {pcs = 2, fastest = 1}}", "app.ranks", "there is no policy 'fastest'"),
        ("ranks = {latency = {pcs = 2, segment = 1}}", "queries.alarm", "the decision table has no ranks for memory"),
    ],
)
def test_what_is_wrong_is_one_line(app: Path, line: str, place: str, text: str, command: Command) -> None:
    app.write_text(APP.replace("[app]\n", f"[app]\n{line}\n"))
    done = command("check", app)
    assert done.returncode == 2
    [told] = done.stderr.splitlines()
    assert f": {place}: " in told
    assert text in told


@pytest.mark.parametrize(
    ("expect", "place", "text"),
    [
        (
            "latency = {intervals = [[[0, 2], [9, 1]], [[5, 1], [20, 1]]]}",
            "expect.latency",
            "intervals[1] begins at 5 s",
        ),
        ('latency = {points = [["10 s", 1], [5, 2]]}', "expect.latency", "points[1] goes back from 10 s to 5 s"),
        ('latency = "0 s"', "expect.latency", "a latency of 0 s cannot be expected"),
        ("memory = {points = [[0, 0]]}", "expect.memory", "points[0]: a memory of 0 cannot be expected"),
        ('latncy = "1 s"', "expect.latncy", "unknown key (did you mean 'latency'?)"),
        ('latency = {class = "msut", points = "1 s"}', "expect.latency", "there is no class 'msut'"),
    ],
)
def test_a_wrong_expectation_is_one_line(app: Path, expect: str, place: str, text: str, command: Command) -> None:
    app.write_text(APP.replace('expect.latency = "1 us"', f"expect.{expect}"))
    done = command("check", app)
    assert done.returncode == 2
    [told] = done.stderr.splitlines()
    assert f": queries.archive.{place}: " in told
    assert text in told


def test_a_strategy_that_is_no_policy_is_refused(app: Path, command: Command) -> None:
    app.write_text(APP.replace('strategy = "segment"', 'strategy = "fastest"'))
    done = command("check", app)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "queries.archive.strategy: there is no policy 'fastest'" in done.stderr


def test_measured_ranks_must_have_been_measured(app: Path) -> None:
    app.write_text(APP.replace("[app]\n", '[app]\nranks = "measured"\n'))
    done = freshet_command("run", app, "--for", "1s")
    assert done.returncode == 2
    assert "nothing was measured: run `freshet calibrate APP.toml`" in done.stderr


def test_json_is_for_decisions(app: Path, command: Command) -> None:
    done = command("explain", app, "--json")
    assert (done.returncode, done.stderr) == (
        2,
        "--json is for --decisions, --feasible and --misses: use one of them, too\n",
    )
