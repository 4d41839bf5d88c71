"""Why instances were late: what they waited for, what was predicted and left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from freshet import App
from freshet.cli.explaining.misses import misses_text
from freshet.model import Promises, UserError
from freshet.model.promises.level_settings import LevelSettings
from freshet.quality.feasibility import QueryDemand, Situation, verdicts
from freshet.quality.periodic import create_levels
from freshet.testing import LocalRun
from freshet.testing.local_run import START


def test_late_instances_say_what_ran_while_they_waited(tmp_path: Path) -> None:
    app = App("p")
    app.stream("s", "k string, v int")
    for name in ("one", "two"):
        app.query(name, "SELECT k, count(*) AS n FROM s [RANGE 2 s] GROUP BY k PERIOD 2 s DEADLINE 1 s")
    with LocalRun(app) as run:
        run.engine._periodic.levels = levels = create_levels(LevelSettings())
        for second in range(1, 9):
            run.push("s", [{"k": "a", "v": 1}], at=START + second)
        run.engine.clock.wait(START + 9.5)  # all releases are late by now
        run.drain()
        found = {name: levels.snapshot(name) for name in ("one", "two")}
    one = found["one"]
    assert one is not None
    assert one["missed"] == one["instances"] == 4
    late = [miss["late_s"] or 0.0 for miss in one["misses"]]
    assert late == sorted(late, reverse=True)
    assert all(miss["waited_s"] >= 1.0 and miss["dropped"] == 0.0 for miss in one["misses"])
    report = tmp_path / "report.json"
    told = {name: {"instances": each} for name, each in found.items()}
    report.write_text(json.dumps({"queries": told, "overhead": {}, "workers": {}}))
    text = misses_text(report, ["one"], as_json=False)
    assert text.startswith("query one: 4 of 4 instances were not answered by their deadline\n  released")
    assert len(text.splitlines()) == 6
    assert json.loads(misses_text(report, ["two"], as_json=True)).keys() == {"two"}
    with pytest.raises(UserError, match="--misses takes its figures from a report"):
        misses_text(None, ["one"], as_json=False)


@pytest.mark.parametrize(("reserve", "feasible"), [(0.0, "yes"), (0.5, "no")])
def test_instances_have_what_the_reserve_leaves(reserve: float, feasible: str) -> None:
    periodic = QueryDemand("p", 10.0, 0.0, Promises(period=1.0), instance=0.6)
    continuous = QueryDemand("c", 10.0, 0.001, Promises())
    [verdict] = verdicts(Situation((periodic, continuous), overhead=0.0, reserve=reserve))
    assert verdict.feasible == feasible
    [alone] = verdicts(Situation((periodic,), overhead=0.0, reserve=reserve))
    assert alone.feasible == "yes"
