"""What ``freshet explain`` says of work that a step does once for several queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.cli.explaining.explain import explain

STREAMS = """
[streams.s]
schema = "ts timestamp, k string, port int, v int"
event_time = "ts"
lateness = "5 s"

[streams.t]
schema = "k string, w int"
"""
QUERIES = {
    "low": "SELECT k, v * 2 AS d FROM s WHERE v > 1 AND port < 1024",
    "high": "SELECT k, v * 2 AS e FROM s WHERE v > 1 AND port >= 1024",
    "minute": "SELECT k, sum(v) AS v FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k",
    "quarter": "SELECT k, count(*) AS n, avg(v) AS m FROM s [RANGE 15 SECONDS SLIDE 5 SECONDS] GROUP BY k",
    "ports": "SELECT port, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY port",
    "all": "SELECT count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 40 SECONDS] WHERE v > 7",
    "most": "SELECT max(v) AS v FROM s [RANGE 30 SECONDS SLIDE 30 SECONDS] WHERE v > 7",
    "spark": "SELECT k FROM s WHERE v > 1 AND k RLIKE '^a+'",
    "lone": "SELECT k FROM t WHERE w > 1",
    "over": "SELECT k FROM low WHERE d > 10",
    "released": "SELECT k FROM s [RANGE 1 MINUTE] WHERE v > 1 PERIOD 10 SECONDS",
}
STEP = [
    "a step over s that runs several of low, high, minute, quarter, ports, all, most",
    "  reads its train once for all of them",
    "  computes v > 1 once for low, high",
    "  computes v * 2 once for low, high",
    "  computes v > 7 once for all, most",
    "  computes partial answers of 5 s for each k once for minute, quarter",
    "  computes partial answers of 10 s once for all, most",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.toml"


def steps(
    path: Path, queries: dict[str, str], capsys: pytest.CaptureFixture[str], name: str | None = None
) -> list[str]:
    """The parts on common steps."""
    path.write_text(STREAMS + "".join(f'[queries.{name}]\nsql = "{sql}"\n' for name, sql in queries.items()))
    explain(path, name)
    return [part for part in capsys.readouterr().out.rstrip("\n").split("\n\n") if part.startswith("a step over")]


def test_expressions_and_panes_that_several_queries_have(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [step] = steps(path, QUERIES, capsys)
    # What only Spark can compute runs in a job of its own, a stream with one reader has nothing in common, and an
    # instance of a periodic query reads a window of its own.
    assert step.splitlines() == STEP


def test_of_one_query_only_the_steps_that_it_is_in(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [step.splitlines() for step in steps(path, QUERIES, capsys, "ports")] == [STEP]
    for other in ("spark", "lone", "over"):
        assert steps(path, QUERIES, capsys, other) == []


def test_queries_with_nothing_but_their_train_in_common(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries = {"one": "SELECT k FROM s WHERE v > 1", "two": "SELECT k, v FROM s WHERE v > 2"}
    [step] = steps(path, queries, capsys)
    assert step.splitlines() == [
        "a step over s that runs several of one, two",
        "  reads its train once for all of them",
    ]


def test_panes_after_other_filters_or_by_other_keys_are_not_common(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "SELECT {0}, sum(v) AS v FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS] WHERE port < {1} GROUP BY {0}"
    queries = {"one": text.format("k", 5), "two": text.format("k", 6), "three": text.format("port", 5)}
    [step] = steps(path, queries, capsys)
    assert step.splitlines()[2:] == ["  computes port < 5 once for one, three"]


def test_long_lists_are_cut(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ", ".join(f"v + {number} AS c{number}" for number in range(1, 26))
    [step] = steps(path, {f"q{number}": f"SELECT {columns} FROM s" for number in range(10)}, capsys)
    lines = step.splitlines()
    names = "q0, q1, q2, q3, q4, q5, q6, q7 and 2 more"
    assert lines[0] == f"a step over s that runs several of {names}"
    assert lines[2] == f"  computes v + 1 once for {names}"
    assert (len(lines), lines[-1]) == (23, "  and 5 more")
