"""``freshet report``: a table of a report, a page of a history, one line for what is neither."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import Command

from freshet.policies import FirstComeFirstServed
from freshet.quality.history import History
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World


@pytest.fixture
def history(tmp_path: Path) -> Path:
    query = SimulatedQuery.straight("alerts", "s", [Profile(0.01)])
    world = World({"s": np.linspace(0.0, 5.0, 60)}, [query], FirstComeFirstServed(), history=History(every=0.05))
    world.run()
    path = tmp_path / "sim.history.json"
    path.write_text(json.dumps(world.course("night")))
    return path


def test_a_page_of_a_simulated_run(history: Path, command: Command) -> None:
    done = command("report", history, "--html", "--to", history.parent / "night.html")
    assert done.returncode == 0, done.stderr
    assert "freshness of alerts" in (history.parent / "night.html").read_text()


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("{", (), "this is no JSON"),
        ("[]", (), "this is no report"),
        ("{}", (), "this is no report of a run"),
        ("{}", ("--html",), "neither the report of a run nor its history"),
        ('{"total": {}}', ("--html",), "its history is not there (report.history.json"),
        ('{"times": []}', ("--html",), "this is no history"),
        ("{}", ("--to", "x.html"), "--to is for --html"),
        ("{}", ("--html", "night.html"), "report.json --html --to night.html"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, text: str, arguments: tuple[str, ...], told: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "report.json"
    path.write_text(text)
    done = command("report", path, *arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_not_there(tmp_path: Path, command: Command) -> None:
    done = command("report", tmp_path / "no.json")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No such file" in done.stderr
