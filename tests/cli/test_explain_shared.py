"""What ``freshet explain`` says of curves and of work that queries share."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from freshet.app import App
from freshet.app.remembered.restart import remember
from freshet.app.remembered.sharing import write_figures
from freshet.cli.explaining.explain import explain
from freshet.log import Log
from freshet.model import ARRIVAL
from freshet.policies.sharing import OperatorFigures

APP = """
[app]
share = "always"

[streams.s]
schema = "k int, v int"

[queries.a]
sql = "SELECT k FROM s WHERE v > 1 AND k > 3"
curve = [[0, 1.0], ["500 ms", 0.0]]

[queries.b]
sql = "SELECT v FROM s WHERE v > 1 AND k > 3"
weight = 0.5

[queries.c]
sql = "SELECT v * 2 AS w FROM s WHERE v>1"
curve = [[0, 1.0], [1, 1.0], [2, 0.0]]

[queries.d]
sql = "SELECT v FROM s"
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.toml"
    path.write_text(APP)
    return path


def test_expectations_are_shown(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app.write_text(
        APP + 'expect.latency = "2 s"\nexpect.memory = {class = "must", points = [[0, "2 MB"], [9, "1 MB"]]}\n'
    )
    explain(app, "d")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "  expects latency 2 s (best-effort, weight 0.5)",
        "  expects memory 2 MB at 0 s, 1 MB at 9 s (must, weight 1)",
    ]


def test_a_curve_and_the_shared_graph(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain(app, "a")
    text = capsys.readouterr().out
    assert "  latency curve: utility 1 at 0 s, 0 at 500 ms\n" in text
    query, step, outer, inner, _ = text.rstrip("\n").split("\n\n")
    assert query.startswith("query a (")
    assert "  computes v > 1 once for a, b, c" in step.splitlines()
    first, second = (part.partition(" ")[0] for part in (outer, inner))
    assert query.splitlines()[-2:] == [f"  shares {first} with b, c", f"  shares {second} with b"]
    assert outer.splitlines() == [
        f"{first} (weight 1), for a, b, c",
        "  sum of their latency curves: utility 2 at 0 s, 1 at 500 ms, 1 at 1 s, 0 at 2 s",
        "  v > 1",
        "  reads s",
        f"  read by {second}",
        "  read by c.project",
    ]
    assert inner.splitlines()[0] == f"{second} (weight 1), for a, b"
    assert inner.splitlines()[-3:] == [f"  reads {first}", "  read by a.project", "  read by b.project"]


def sharing(capsys: pytest.CaptureFixture[str], app: Path, query: str) -> list[str]:
    """What is said of what a query shares."""
    explain(app, query)
    return [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  shares ")]


def test_a_query_that_shares_nothing_is_told_why(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sharing(capsys, app, "d") == ["shares nothing: no other query has an operator of it"]
    strict = '[queries.e]\nsql = "SELECT v FROM s"\non_error = "fail"'
    app.write_text(f"{APP}{strict}")
    assert sharing(capsys, app, "e") == ['shares nothing: its on_error is "fail"']
    app.write_text(APP.replace("always", "auto"))
    assert sharing(capsys, app, "a") == ["shares nothing: nothing has been measured of a.filter_1 yet"]
    app.write_text(APP.replace('share = "always"', ""))
    assert sharing(capsys, app, "a") == ['shares nothing: share is "never"']


def test_figures_that_speak_against_it_are_shown(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app.write_text(APP.replace("always", "auto"))
    names = [f"{query}.{name}" for query in "abc" for name in ("filter_1", "filter_2", "project")]
    (app.parent / "state").mkdir()
    write_figures(app.parent / "state", dict.fromkeys(names, OperatorFigures(1e-7, 1.0, 10_000.0)))
    assert sharing(capsys, app, "c") == [
        "shares nothing: it is not worth it: sharing c.filter_1 would save 2 ms a second, and its queues cost 30 ms"
    ]


def test_a_query_that_stands_elsewhere_is_told_so(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = App.from_toml(app)
    with Log.open(made.state) as log:
        log.declare("s")
        log.append("s", pa.table({"k": [1], "v": [2], ARRIVAL: [1]}))
        query = made.checked().queries["a"]
        log.start_reader("a.filter_1", "s", "latest")
        remember(log, query, query.graph, begins=True)
    assert sharing(capsys, app, "a") == ["shares nothing: a.filter_1 is at another tuple than the same of b"]
    [line] = sharing(capsys, app, "c")
    assert line.endswith("with b")


def test_two_with_the_same_text_share_everything(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app.write_text(APP + '[queries.e]\nsql = "SELECT v FROM s"')
    explain(app, "e")
    *_, operator, _ = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert operator.splitlines()[-2:] == ["  read by the output d", "  read by the output e"]
