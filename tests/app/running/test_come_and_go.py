"""Queries and sinks that come, go and come back while an application runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.app.monitor import wait_for

from freshet.app import App, Run
from freshet.app.declared.spec import SinkLike
from freshet.log import Retention
from freshet.model import UserError
from freshet.sinks import Token

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def test_queries_come_and_go_while_it_runs(tmp_path: Path) -> None:
    app = App("living", state=tmp_path / "state", master="local[2]")
    app.stream("s", "k int")
    app.query("all", "SELECT k FROM s")
    seen: list[tuple[int, int, list[int]]] = []

    def keep(table: pa.Table, token: Token) -> None:
        seen.append((token.first, token.end, table.column("k").to_pylist()))

    with app.start() as run:
        run.push("s", [{"k": 1}, {"k": 2}])
        run.add_query("few", "SELECT k FROM all WHERE k > 1", sinks=[keep])
        wait_for(lambda: run.read("few").num_rows == 1, run)
        with pytest.raises(UserError, match="all is read by few"):
            run.drop_query("all")
        with pytest.raises(UserError, match="few already exists"):
            run.add_query("few", "SELECT k FROM s")
        with pytest.raises(UserError, match="unknown column"):
            run.add_query("wrong", "SELECT w FROM s")
        with pytest.raises(UserError, match="there is no policy"):
            run.set_policy("none")
        run.set_policy("fcfs")
        run.set_weight("few", 0.25)
        run.push("s", [{"k": 3}])
        wait_for(lambda: run.read("few").num_rows == 2, run)
        assert run.meters()["queries"]["few"]["weight"] == 0.25
        assert run.report()["policy"] == "fcfs"
        run.drop_query("few")
        assert [k for _, _, keys in seen for k in keys] == [2, 3], "its sink got all that it had written"
        run.push("s", [{"k": 4}])
        wait_for(lambda: run.read("all").num_rows == 4, run)
        assert run.read("few").column("k").to_pylist() == [2, 3]
        run.add_query("few", "SELECT k FROM s WHERE k > 3", start="earliest")
        wait_for(lambda: run.read("few").num_rows == 3, run)
        assert run.read("few").column("k").to_pylist() == [2, 3, 4]


def test_a_query_that_is_added_is_checked_as_a_declared_one(tmp_path: Path) -> None:
    (tmp_path / "hosts.csv").write_text("host\na\n")
    app = App("checked", state=tmp_path / "state", master="local[2]")
    app.stream("s", "k int")
    app.table("hosts", tmp_path / "hosts.csv", schema="host string")
    file: dict[str, object] = {"kind": "jsonl", "path": str(tmp_path / "all.jsonl")}
    app.query("every", "SELECT k FROM s", sinks=[file])
    keyed = {"kind": "table", "path": str(tmp_path / "out.db"), "table": "t", "keys": ["w"]}
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("S", {}, "query S: there is a stream s already"),
        ("Hosts", {}, "query Hosts: there is a table hosts already"),
        ("Every", {}, "query Every: there is a query every already"),
        ("FEW", {}, "query FEW: there is a query few already"),
        ("__shared_1", {}, "'__shared_1' cannot name a query"),
        ("q", {"weight": "much"}, "query q: weight 'much' is outside"),
        ("q", {"start": "newest"}, "query q: start must be 'earliest' or 'latest', not 'newest'"),
        ("q", {"on_error": "raise"}, "query q: on_error must be 'null' or 'fail', not 'raise'"),
        ("q", {"sinks": {"kind": "memory"}}, "query q: sinks must be a list"),
        ("q", {"retention": Retention(bound_bytes=0)}, "query q: retention: a bound of 0 bytes"),
        ("q", {"sinks": [file]}, r"queries.q.sinks\[0\].path: is the file of queries.every.sinks\[0\] already"),
        ("q", {"sinks": [keyed]}, r"queries.q.sinks\[0\].keys: the query has no column 'w'"),
    ]
    with app.start() as run:
        run.add_query("few", "SELECT k FROM s WHERE k > 1")
        run.drop_query("few")
        for name, options, text in wrong:
            with pytest.raises(UserError, match=text):
                run.add_query(name, "SELECT k FROM s", **options)
        run.add_query("few", "SELECT k FROM s WHERE k > 1")
        run.push("s", [{"k": 1}, {"k": 2}])
        run.drain()
        assert run.read("few").column("k").to_pylist() == [2]
        assert set(run.meters()["queries"]) == {"every", "few"}


def lines(path: Path) -> list[int]:
    return [json.loads(line)["k"] for line in path.read_text().splitlines()]


def keys(run: Run, query: str) -> list[int]:
    return list(run.read(query).column("k").to_pylist())


def test_a_query_that_is_taken_out_and_put_back_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "odd.jsonl"

    def app(*names: str, sink: bool = True) -> App:
        made = App("coming", state=tmp_path / "state", master="local[2]", policy="baat")
        made.stream("s", "k int")
        made.query("all", "SELECT k FROM s")
        if "odd" in names:
            sinks = [{"kind": "jsonl", "path": out}] if sink else []
            made.query("odd", "SELECT k FROM s WHERE k % 2 = 1 AND k > 0", sinks=sinks)
        return made

    with app("odd").start() as run:
        run.push("s", [{"k": k} for k in range(10)])
    with app().start() as run:
        assert run.changes == {"all": "unchanged", "odd": "dropped"}
        assert [note for note in run.notes if "odd" in note] == [
            "query odd is dropped: its output stays readable; put it back unchanged, and it continues where it was"
        ]
        run.push("s", [{"k": k} for k in range(10, 20)])
    with app().start() as run:
        assert run.changes == {"all": "unchanged"}, "what is out is told once"
        assert run.notes == []
    with app("odd").start() as run:
        assert run.changes == {"all": "unchanged", "odd": "back"}
        assert run.notes == ["query odd is back: it continues where it was; it missed nothing",
                             "sink odd/jsonl is back: it continues where it was"]  # fmt: skip
        run.drain(120)
        assert sorted(keys(run, "odd")) == list(range(1, 20, 2))
    assert sorted(lines(out)) == list(range(1, 20, 2))
    with app("odd", sink=False).start() as run:
        assert run.notes == ["sink odd/jsonl is dropped: put it back, and it continues where it was"]
        run.push("s", [{"k": k} for k in range(20, 30)])
    with app("odd").start() as run:
        assert run.notes == ["sink odd/jsonl is back: it continues where it was"]
    assert sorted(lines(out)) == list(range(1, 30, 2))
    # The same file without what is known about it: nobody can tell which rows it holds.
    other = app("odd")
    other.state = tmp_path / "other"
    with pytest.raises(UserError, match=r"queries.odd.sinks\[0\].path: file .* holds lines already, and this sink did"):
        other.start()
    assert sorted(lines(out)) == list(range(1, 30, 2))


def test_queries_and_sinks_that_come_and_go_all_the_time_repeat_and_lose_nothing(tmp_path: Path) -> None:
    app = App("restless", state=tmp_path / "state", master="local[2]", policy="baat")
    app.stream("s", "k int")
    out, seen = tmp_path / "odd.jsonl", list[Token]()

    def add(run: Run) -> None:
        sinks: list[SinkLike] = [{"kind": "jsonl", "path": out}, {"kind": "memory"}, keep]
        run.add_query("odd", "SELECT k FROM s WHERE k % 2 = 1 AND k >= 0", sinks=sinks)

    def keep(table: pa.Table, token: Token) -> None:
        seen.append(token)

    expected: list[int] = []
    for part in range(2):
        with app.start() as run:
            for turn in range(6):
                add(run)
                first = len(expected)
                run.push("s", [{"k": k} for k in range(first, first + 40)])
                expected += range(first, first + 40)
                # At any moment: tuples may be in a unit, or between two operators.
                time.sleep(0.03 * turn)
                run.drop_query("odd")
            add(run)
            assert run.changes["odd"] == "back"
            back = sum(note.startswith("query odd is back") for note in run.notes)
            assert back == 6 + part, "in the first run it was new once"
            # The memory of a sink begins anew with each of them, and all that came before may have been handed over.
            run.push("s", [{"k": k} for k in range(len(expected), len(expected) + 40)])
            expected += range(len(expected), len(expected) + 40)
            assert run.drain(120)
            wait_for(lambda: run.memory("odd").rows()[-1:] == run.read("odd").to_pylist()[-1:], run)
    wanted = [k for k in expected if k % 2]
    assert lines(out) == sorted(lines(out)) == wanted
    assert {token.first for token in seen} <= {0, *(token.end for token in seen)}
    with pytest.raises(UserError, match="query odd has no sink other of the kind memory"):
        run.memory("odd", "other")


def test_what_came_and_went_while_a_query_was_out_is_told(tmp_path: Path) -> None:
    app = App("gap", state=tmp_path / "state", master="local[2]")
    app.stream("s", "k int", retention=Retention(history_age=0.0, history_bytes=0))
    app.query("all", "SELECT k FROM s", retention=Retention(history_age=0.0, history_bytes=0))
    out = tmp_path / "all.jsonl"
    with app.start() as run:
        run.add_query("few", "SELECT k FROM s")
        run.push("s", [{"k": 1}])
        run.drain(120)
        run.drop_query("few")
        run.push("s", [{"k": 2}, {"k": 3}])
        run.drain(120)
        wait_for(lambda: run._parts.log.oldest("s") == 3, run)
        run.add_query("few", "SELECT k FROM s")
        assert run.notes == ["query few is back: it continues where it was; 2 tuples came and went while it was out"]
        run.push("s", [{"k": 4}])
        run.drain(120)
        assert keys(run, "few") == [1, 4]
        (loss,) = run._parts.log.ledger()
        assert (loss.edge, loss.stream, loss.first, loss.end) == ("few.project", "s", 1, 3)
        # Changed, it starts anew, and with other columns its old output makes way; before anything is lost it is asked.
        run.drop_query("few")
        with pytest.raises(UserError):
            run.add_query("few", "SELECT array(k)[0] + map(1, k) AS x FROM s")
        run.add_query("few", "SELECT k FROM s")
        assert run.notes[-1] == "query few is back: it continues where it was; it missed nothing"
        run.drop_query("few")
        run.add_query("few", "SELECT k * 2 AS twice FROM s")
        assert run.notes[-1] == "query few has other columns now: 2 tuples of its old output are removed"
        out.write_text("somebody's\n")
        with pytest.raises(UserError, match=r"queries.late.sinks\[0\].path: file .* holds lines already"):
            run.add_query("late", "SELECT k FROM s", sinks=[{"kind": "jsonl", "path": out}])
        assert "late" not in run.meters()["queries"]
        run.add_query("late", "SELECT k FROM s", sinks=[{"kind": "jsonl", "path": out, "append": True}])
        run.push("s", [{"k": 5}])
    assert out.read_text() == 'somebody\'s\n{"k": 5}\n'
