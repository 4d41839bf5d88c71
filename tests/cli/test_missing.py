"""What answers lack, as a person reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from freshet.cli.main import app as command
from freshet.log import Log
from freshet.model import ARRIVAL, Commit, Missing

APP = """
[streams.s]
schema = "v int"

[queries.q]
sql = "SELECT v FROM s"
overload = ["defer", "thin"]
value = "v"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.toml"
    path.write_text(APP)
    with Log.open(tmp_path / "state", now=lambda: 1_704_110_400.0) as log:
        log.declare("s", kind="stream")
        log.declare("q", kind="output")
        log.start_reader("q.project", "s", owner="q")
        log.append("s", pa.table({"v": list(range(10)), ARRIVAL: [1] * 10}))
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(command, list(map(str, words)))


def test_nothing_is_missing(file: Path) -> None:
    found = run("read", file, "q", "--missing")
    assert (found.exit_code, found.stdout) == (0, "")
    assert f"{file}: nothing is missing in the answers of q" in found.stderr


def test_entries_are_shown_in_all_forms(file: Path) -> None:
    entry = Missing("q", "q.project", "s", "thinned", 0, 8, 5, 0.5, "hash 1", "by hand")
    with Log.open(file.parent / "state", now=lambda: 1_704_110_400.0) as log:
        log.commit([Commit(cursors=(("q.project", "s", 0, 8),), missing=(entry,))])
    head, _, row = run("read", file, "q", "--missing").stdout.splitlines()
    assert head.split() == [
        "kind",
        "stream",
        "first",
        "end",
        "rows",
        "kept",
        "rule",
        "reason",
        "edge",
        "since",
        "until",
    ]
    assert row.split()[:6] == ["thinned", "s", "0", "8", "5", "0.5"]
    [line] = run("read", file, "q", "--missing", "--as", "jsonl").stdout.splitlines()
    told = json.loads(line)
    assert (told["rows"], told["rule"], told["reason"], told["edge"]) == (5, "hash 1", "by hand", "q.project")
    assert told["since"].startswith("2024-01-01")
    assert run("read", file, "q", "--missing", "--as", "csv").stdout.splitlines()[1].startswith("thinned,s,0,8,5,0.5,")


def test_what_makes_no_sense_is_refused(file: Path) -> None:
    for words, text in (
        (("s", "--missing"), "s is not a query, and only queries have answers"),
        (("q", "--missing", "--last", "3"), "--missing shows everything that is known of q: leave --last out"),
        (("p", "--missing"), "there is no query, stream or table 'p'"),
    ):
        found = run("read", file, *words)
        assert found.exit_code != 0
        assert text in str(found.exception or found.output)


def test_explain_says_where_and_how_a_query_may_be_thinned(file: Path) -> None:
    shown = run("explain", file).stdout
    assert (
        "under overload it may be thinned at its own edges: s by v, the least first (it shares no operators)" in shown
    )
