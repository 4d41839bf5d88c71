"""What ``freshet explain`` says of curves and of work that queries share."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.cli.explain import explain

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


def test_a_curve_and_the_shared_graph(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain(app, "a")
    text = capsys.readouterr().out
    assert "  latency curve: utility 1 at 0 s, 0 at 500 ms\n" in text
    query, step, outer, inner = text.rstrip("\n").split("\n\n")
    assert query.startswith("query a (")
    assert "  computes v > 1 once for a, b, c" in step.splitlines()
    assert outer.splitlines() == [
        "shared operator 1 (weight 1), for a, b, c",
        "  sum of their latency curves: utility 2 at 0 s, 1 at 500 ms, 1 at 1 s, 0 at 2 s",
        "  v > 1",
        "  reads s",
        "  read by shared operator 2",
        "  read by c, which adds c.project",
    ]
    assert inner.splitlines()[0] == "shared operator 2 (weight 1), for a, b"
    assert inner.splitlines()[-3:] == [
        "  reads shared operator 1",
        "  read by a, which adds a.project",
        "  read by b, which adds b.project",
    ]


def test_only_what_is_shared_and_only_where_it_is_asked_for(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain(app, "d")
    assert "shared operator" not in capsys.readouterr().out
    app.write_text(APP.replace('share = "always"', ""))
    explain(app)
    assert "shared operator" not in capsys.readouterr().out
