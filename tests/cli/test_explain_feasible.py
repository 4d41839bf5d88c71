"""``freshet explain --feasible``, and the line of the live table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Command
from tests.cli.test_live import report, shown

from freshet.app.reports.feasible import line_of_verdicts, situation_of
from freshet.cli.explaining.feasible import feasible_text
from freshet.cli.live import line
from freshet.model import Curve, Expectations, Promises, UserError
from freshet.quality.feasibility import verdicts

APP = """
[streams.packets]
schema = "host string, size int"

[queries.alarm]
sql = "SELECT host FROM packets WHERE size > 50"
curve = [[0, 1.0], ["20 ms", 1.0], ["25 ms", 0.0]]

[queries.daily]
sql = "SELECT host, size FROM packets WHERE size > 5"
"""


def measured(rate: float, cost: float, overhead: float, status: str = "stopped", workers: int = 1) -> dict[str, Any]:
    """The part of a report that verdicts rest on."""

    def query(name: str) -> dict[str, Any]:
        shown = {"cost_s": cost, "tuples_in": 1000, "selectivity": 0.5}
        rates = {"in_per_s": rate, "recent_in_per_s": 2.0 * rate, "out_per_s": rate, "recent_out_per_s": 2.0 * rate}
        response = {"count": 1000, "p95_s": 3.0, "recent_p95_s": 4.0}
        operators = {f"{name}.filter_1": shown, "shared": shown}
        return {"tuples_in": 1000, "throughput": rates, "response": response, "operators": operators}

    return {
        "status": status,
        "queries": {name: query(name) for name in ("alarm", "daily")},
        "overhead": {"per_call_s": overhead},
        "workers": {"workers": workers},
    }


def test_rates_of_the_last_seconds_while_it_runs_and_shared_work_once() -> None:
    promises = {name: Promises() for name in ("alarm", "daily")}
    ended = situation_of(measured(100.0, 0.001, 0.01), promises)
    running = situation_of(measured(100.0, 0.001, 0.01, "running"), promises)
    assert ended is not None
    assert running is not None
    # One operator of its own, and half of a shared one.
    assert ended.queries[0].work == pytest.approx(0.0015)
    assert ended.load == pytest.approx(0.3)
    assert running.load == pytest.approx(0.6)
    assert [each.queries[0].measured for each in (ended, running)] == [3.0, 4.0]
    assert situation_of(measured(0.0, 0.001, 0.01), promises) is None


def test_it_says_what_is_feasible_and_what_would_help(tmp_path: Path, command: Command) -> None:
    app = tmp_path / "app.toml"
    app.write_text(APP)
    (tmp_path / "report.json").write_text(json.dumps(measured(100.0, 0.001, 0.01)))
    done = command("explain", app, "--feasible")
    assert done.returncode == 0, done.stderr
    assert "alarm  curve, full worth up to 20 ms  no" in done.stdout
    assert "let its worth last for" in done.stdout
    assert "30 % of the workers' time, and 10 ms for each step" in done.stdout
    less = command("explain", app, "alarm", "--feasible", "--load", "0.05", "--json")
    assert [each["feasible"] for each in json.loads(less.stdout)["verdicts"]] == ["yes"]


def test_what_was_measured_can_put_an_expectation_in_doubt(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(measured(1.0, 0.001, 0.01)))
    promises = {"alarm": Promises(curve=Curve.deadline(1.0))}
    told = feasible_text(path, promises, ["alarm"], 1.0, as_json=False)
    assert "alarm  curve, full worth up to 1 s  unknown" in told
    assert "alarm: p95 was 3 s, and rates, costs and overhead do not explain that" in told
    situation = situation_of(json.loads(path.read_text()), promises)
    assert situation is not None
    assert line_of_verdicts(verdicts(situation)).startswith(
        "slower than it should be: alarm (curve, full worth up to 1 s): p95 was 3 s"
    )
    # It says nothing of a load that was not measured, nor of a curve that would be kept all the same.
    assert "yes" in feasible_text(path, promises, ["alarm"], 1.5, as_json=False)
    assert "yes" in feasible_text(path, {"alarm": Promises(curve=Curve.deadline(4.0))}, ["alarm"], 1.0, as_json=False)


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "run the application for a while first"), ("[]", "no report of a run"), ("{", "no JSON")],
)
def test_without_figures_it_says_so(tmp_path: Path, text: str | None, told: str) -> None:
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=told):
        feasible_text(path, {"alarm": Promises(curve=Curve.deadline(1.0))}, ["alarm"], 1.0, False)


def test_it_judges_what_queries_expect(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(measured(100.0, 0.001, 0.01)))
    promises = {"alarm": Promises(expect=Expectations.parse({"latency": "1 ms"}))}
    told = feasible_text(path, promises, ["alarm"], 1.0, as_json=False)
    assert "alarm  latency 1 ms (best-effort)  no" in told
    assert "to keep all promises" in told
    assert "alarm: its own step takes" in told


def test_it_judges_the_bound_of_the_application_and_says_who_ignores_curves(tmp_path: Path, command: Command) -> None:
    app = tmp_path / "app.toml"
    app.write_text('[app]\npolicy = "fas-mcq"\nexpect = {response = "1 ms"}\n' + APP)
    (tmp_path / "report.json").write_text(json.dumps(measured(100.0, 0.001, 0.01) | {"policy": "fas-mcq"}))
    done = command("explain", app, "--feasible")
    assert done.returncode == 0, done.stderr
    assert "all queries  response at most 1 ms" in done.stdout
    assert "and a response at most 1 ms" in done.stdout.splitlines()[0]
    assert "the policy fas-mcq does not look at curves" in done.stdout.splitlines()[-1]
    told = json.loads(command("explain", app, "--feasible", "--json").stdout)
    assert [each["query"] for each in told["verdicts"]] == ["alarm", "all queries"]
    assert told["note"].startswith("the policy fas-mcq")
    # What takes longer than the promise at any rate leaves no room.
    row = next(line for line in done.stdout.splitlines() if line.startswith("all queries"))
    assert row.endswith("  -")
    alone = json.loads(command("explain", app, "alarm", "--feasible", "--json").stdout)
    assert [each["query"] for each in alone["verdicts"]] == ["alarm"]


def test_without_promises_there_is_nothing_to_judge(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(measured(100.0, 0.001, 0.01)))
    told = feasible_text(path, {"alarm": Promises()}, ["alarm"], 1.0, as_json=False)
    assert told.startswith("no query has a promise that can be told in advance")


def test_bad_options_are_one_line(tmp_path: Path, command: Command) -> None:
    app = tmp_path / "app.toml"
    app.write_text(APP)
    for arguments, told in ((("--load", "2"), "--load is for --feasible"), (("--feasible", "--load", "0"), "above 0")):
        done = command("explain", app, *arguments)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert told in done.stderr


def test_the_live_table_and_the_line_name_what_cannot_be_kept() -> None:
    verdict = {
        "query": "q0", "promise": "curve, full worth up to 20 ms", "feasible": "no", "expected": "", "room": 0.4,
        "reason": "its own step takes 40 ms", "advice": "let its worth last for 50 ms",
    }  # fmt: skip
    told = "not feasible: q0 (curve, full worth up to 20 ms): its own step takes 40 ms; let its worth last for 50 ms"
    assert any(told in each for each in shown(40, 140, feasible=[verdict]))
    assert told in line(report(1, feasible=[verdict]))
    assert "barely feasible: q0" in line(report(1, feasible=[verdict | {"feasible": "barely"}]))
    assert "feasible" not in line(report(1, feasible=[verdict | {"feasible": "yes"}]))
