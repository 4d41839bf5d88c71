"""The optimizer on Spark, from an application file: it switches, remembers, explains itself, and is calibrated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.app.monitor import wait_for
from tests.app.watched import APP, written

from freshet.app import App, Run
from freshet.app.remembered.looks import read_looks
from freshet.app.remembered.ranks import MeasuredRanks
from freshet.app.running.calibrating import calibrate
from freshet.cli.explaining.decisions import decisions_text
from freshet.cli.explaining.explain import explain
from freshet.model import MEASURES, UserError
from freshet.quality.snapshots import PromiseSnapshot

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return written(tmp_path)


def promise(run: Run, query: str) -> PromiseSnapshot:
    told = run.meters()["queries"][query]["promise"]
    assert told is not None
    return told


def test_a_file_with_expectations_is_optimized_and_says_why(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with App.from_toml(app).start() as run:
        wait_for(lambda: promise(run, "archive")["looks"] > 1 and promise(run, "alarm")["switches"] == 1, run)
        # Another process reads the same files while it runs.
        assert "pcs -> segment" in decisions_text(run.app.state, ["alarm"], as_json=False)
    report = run.report()
    alarm, archive = (report["queries"][name]["promise"] for name in ("alarm", "archive"))
    assert alarm is not None
    assert archive is not None
    # When it began, nothing waited; of the two, only memory is violated.
    assert (alarm["strategy"], alarm["switches"], alarm["pinned"]) == ("segment", 1, False)
    assert alarm["measures"]["memory"]["violated_s"] > 0.0
    assert alarm["measures"]["latency"]["violated_s"] == 0.0
    assert (archive["strategy"], archive["switches"], archive["pinned"]) == ("segment", 0, True)
    assert report["queries"]["plain"]["promise"] is None
    assert report["optimizer"] is not None
    assert report["optimizer"]["mode"] == "act"
    assert {query["waiting"] for query in report["queries"].values()} == {0}
    explain(app, "alarm")
    assert "tuples/s of work" in capsys.readouterr().out
    explain(app, "archive", decisions=True, json=True)
    told = json.loads(capsys.readouterr().out)
    assert {(look["query"], look["strategy"], look["applied"]) for look in told} == {("archive", "segment", False)}


def test_strategy_and_age_survive_a_restart_and_a_new_text_begins_anew(app: Path) -> None:
    with App.from_toml(app).start() as run:
        wait_for(lambda: promise(run, "alarm")["switches"] == 1, run)
    before = [each.look for each in read_looks(run.app.state) if each.query == "alarm"]
    with App.from_toml(app).start() as run:
        assert promise(run, "alarm")["strategy"] == "segment"
        wait_for(lambda: promise(run, "alarm")["looks"] > 0, run)
    after = [each.look for each in read_looks(run.app.state) if each.query == "alarm"]
    new = after[len(before) :]
    assert {look.strategy for look in new} == {"segment"}
    assert new[0].age > before[-1].age
    app.write_text(APP.replace("size > 50", "size > 60"))
    with App.from_toml(app).start() as run:
        assert promise(run, "alarm")["strategy"] == "pcs"


def test_a_query_may_come_to_expect_something_while_it_runs(tmp_path: Path) -> None:
    made = App("later", state=tmp_path / "state", master="local[2]", look_every="200 ms")
    made.stream("s", "k int")
    made.query("q", "SELECT k FROM s WHERE k > 0")
    with made.start() as run:
        assert run.report()["optimizer"] is None
        run.set_expectation("q", "latency", "1 us")
        run.add_query("pinned", "SELECT k FROM s", strategy="segment")
        run.push("s", [{"k": number} for number in range(100)])
        wait_for(lambda: promise(run, "q")["looks"] > 0, run)
        assert promise(run, "q")["strategy"] == "pcs"
        assert promise(run, "pinned")["strategy"] == "segment"
        run.set_policy("fcfs")
        with pytest.raises(UserError, match="query q: strategy: there is no policy 'fastest'"):
            run.set_strategy("q", "fastest")
        with pytest.raises(UserError, match="there is no query 'p'"):
            run.set_strategy("p", "pcs")
        run.set_strategy("q", "segment")
        run.set_strategy("pinned", None)
        run.push("s", [{"k": 7}])
        assert run.drain(120)
        assert promise(run, "q")["strategy"] == "segment"
        assert promise(run, "q")["pinned"]
        assert run.meters()["queries"]["pinned"]["promise"] is None
        assert run.read("q").num_rows == 100
        assert run.read("pinned").num_rows == 101
    assert run.report()["optimizer"] is not None


def test_calibrate_measures_each_strategy_over_what_the_log_has_kept(tmp_path: Path) -> None:
    def made(ranks: object, sinks: tuple[object, ...] = ()) -> App:
        one = App("tuned", state=tmp_path / "state", master="local[2]", look_every="250 ms", ranks=ranks)  # type: ignore[arg-type]
        one.stream("s", "k int")
        one.query("q", "SELECT k FROM s WHERE k > 0", expect={"latency": "1 s"}, sinks=sinks)  # type: ignore[arg-type]
        one.query("plain", "SELECT k FROM s WHERE k > 1")
        return one

    given: list[object] = []
    table = {name: {"pcs": 2, "segment": 1} for name in MEASURES}
    app = made(table, sinks=(lambda rows, token: given.append(rows),))
    with app.start():
        pass
    with pytest.raises(UserError, match="has no tuples to replay"):
        calibrate(app, 1.0, lambda strategy, share: None)
    with app.start() as run:
        run.push("s", [{"k": number} for number in range(1000)])
        assert run.drain(120)
    assert len(given) > 0
    given.clear()
    told: list[tuple[str, float]] = []
    found = calibrate(app, 1.0, lambda strategy, share: told.append((strategy, share)))
    assert not given, "sinks get nothing"
    assert [strategy for strategy, _ in told] == sorted(strategy for strategy, _ in told)
    assert told[-1] == ("segment", 1.0)
    assert found.figures.keys() == {"q"}
    assert found.figures["q"].keys() == {"pcs", "segment"}
    assert all(figure is not None for each in found.figures["q"].values() for figure in each.values())
    assert MeasuredRanks.read(app.state).tables() == found.tables()
    with made("measured").start() as run:
        assert promise(run, "q")["strategy"] in ("pcs", "segment")
