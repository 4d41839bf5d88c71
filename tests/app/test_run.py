"""Whole applications on Spark: their outputs are what plain Python computes from what the log holds."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from freshet.app import App, Run
from freshet.model import FreshetError, UserError
from freshet.sinks import Token

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def monitor(folder: Path, rows: int = 3000) -> App:
    app = App("monitor", state=folder / "state", report=folder / "report.json", master="local[2]")
    source = {"kind": "generator", "rate": 20_000, "limit": rows, "seed": 7}
    app.stream("packets", "id bigint, host string, size int", source=source)
    app.query("large", "SELECT id, host, size FROM packets WHERE size > 50 AND host <> 'a'",
              sinks=[{"kind": "jsonl", "path": folder / "large.jsonl"}])  # fmt: skip
    app.query("odd", "SELECT host, size * 2 AS twice FROM packets WHERE size % 2 = 1")
    app.query(
        "both", "SELECT host, size FROM large WHERE size > 70 UNION ALL SELECT host, twice FROM odd WHERE twice < 40"
    )
    return app


def check_answers(run: Run) -> None:
    packets = run.read("packets").to_pylist()
    large = [row for row in packets if row["size"] > 50 and row["host"] != "a"]
    odd = [(row["host"], row["size"] * 2) for row in packets if row["size"] % 2 == 1]
    both = [(row["host"], row["size"]) for row in large if row["size"] > 70] + [pair for pair in odd if pair[1] < 40]
    assert bag(run.read("large")) == Counter((row["id"], row["host"], row["size"]) for row in large)
    assert bag(run.read("odd")) == Counter(odd)
    assert bag(run.read("both")) == Counter(both)
    assert both


def wait_for(what: Callable[[], bool], run: Run) -> None:
    until = time.monotonic() + 120
    while not what():
        assert time.monotonic() < until, run.report()
        run.wait(0.05)


def drained(run: Run) -> bool:
    return bool(run.meters()["total"]["waiting"] == 0)


def test_from_a_source_through_queries_on_queries_to_a_file(tmp_path: Path) -> None:
    run = monitor(tmp_path).start()
    with run:
        assert run.wait(120), "the source has a limit, so it ends"
        wait_for(lambda: drained(run), run)
        check_answers(run)
        assert run.read("packets").num_rows == 3000
        assert Counter(tuple(row) for row in run.dataframe("both").collect()) == bag(run.read("both"))
        assert run.dataframe("large").schema.simpleString() == "struct<id:bigint,host:string,size:int>"
        expected = run.read("large").to_pylist()
    written = [json.loads(line) for line in (tmp_path / "large.jsonl").read_text().splitlines()]
    assert written == expected
    report = json.loads((tmp_path / "report.json").read_text())
    assert report == run.report()
    assert report["status"] == "stopped"
    assert report["changes"] == {"large": "new", "odd": "new", "both": "new"}
    assert report["streams"]["packets"]["tuples"] == 3000
    assert report["queries"]["large"]["tuples_in"] == 3000
    assert report["queries"]["large"]["tuples_out"] == len(expected)
    assert report["sinks"]["large/jsonl"]["rows"] == len(expected)
    assert report["sources"]["packets"]["rows"] == 3000
    assert report["total"]["waiting"] == 0


def test_a_restart_with_a_changed_app(tmp_path: Path) -> None:
    def app(*queries: tuple[str, str], **options: Any) -> App:
        made = App("changing", state=tmp_path / "state", master="local[2]")
        made.stream("s", "k int")
        for name, sql in queries:
            made.query(name, sql, **options.get(name, {}))
        return made

    first = app(
        ("same", "SELECT k FROM s WHERE k > 0"),
        ("changed", "SELECT k FROM s WHERE k > 1"),
        ("other", "SELECT k FROM s"),
        ("gone", "SELECT k FROM s"),
    )
    with first.start() as run:
        run.push("s", [{"k": 1}, {"k": 2}])
    with pytest.raises(FreshetError, match="takes no pushes"):
        run.push("s", [{"k": 3}])
    again = app(
        ("same", "select k from s where k > 0"),
        ("changed", "SELECT k FROM s WHERE k > 0"),
        ("other", "SELECT k * 10 AS tens FROM s"),
        ("new", "SELECT k FROM s"),
        ("late", "SELECT k FROM s"),
        late={"start": "latest"},
    )
    with again.start() as run:
        assert run.changes == {"same": "unchanged", "changed": "changed", "other": "changed", "new": "new",
                               "late": "new", "gone": "dropped"}  # fmt: skip
        run.push("s", [{"k": 3}])
        wait_for(lambda: drained(run), run)
        outputs = {name: [next(iter(row.values())) for row in run.read(name).to_pylist()] for name in again.queries}
    assert outputs == {
        "same": [1, 2, 3],
        "changed": [2, 1, 2, 3],  # started anew, behind what was there
        "other": [10, 20, 30],  # its columns changed, so the old output made way
        "new": [1, 2, 3],
        "late": [3],
    }
    assert any("gone is dropped" in note for note in run.notes)
    assert any("other has other columns now: 2 tuples" in note for note in run.notes)
    refused = app(("same", "SELECT k FROM s WHERE k > 0"), ("changed", "SELECT array(k)[0] + map(1, k) AS x FROM s"))
    with pytest.raises(UserError):
        refused.start()
    with again.start() as run:
        assert set(run.changes.values()) == {"unchanged"}, "a start that failed has changed nothing"
    other = App("changing", state=tmp_path / "state", master="local[2]")
    other.stream("s", "k int, v int")
    with pytest.raises(UserError, match=r"stream s: its log holds tuples with the schema \(k int\)"):
        other.start()


def test_a_second_instance_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    app = App("one", state=tmp_path / "state", master="local[2]")
    app.stream("s", "k int")
    app.query("q", "SELECT k FROM s")
    with app.start() as run:
        with pytest.raises(UserError, match="is in use by process"):
            app.start()
        run.push("s", [{"k": 1}])
        wait_for(lambda: run.read("q").num_rows == 1, run)


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
        with pytest.raises(UserError, match="few is there already"):
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


def test_an_error_of_the_engine_surfaces_and_all_is_closed(tmp_path: Path) -> None:
    app = App("doomed", state=tmp_path / "state", report=tmp_path / "report.json", master="local[2]")
    app.stream("s", "k int")
    app.query("q", "SELECT k FROM s")
    run = app.start()

    def break_it() -> None:
        def decide(view: object) -> None:
            raise ValueError("no idea")

        run._parts.engine.policy.decide = decide  # type: ignore[method-assign, assignment]

    run._parts.loop.ask(break_it)
    run.push("s", [{"k": 1}])
    with pytest.raises(RuntimeError, match="the engine failed: no idea"):
        run.wait(120)
    with pytest.raises(RuntimeError, match="the engine failed: no idea"):
        run.stop()
    assert run.report()["status"] == "failed"
    assert json.loads((tmp_path / "report.json").read_text())["error"] == "no idea"
    with app.start() as again:
        wait_for(lambda: again.read("q").num_rows == 1, again)
        assert again.changes == {"q": "unchanged"}


def test_a_failing_query_is_quarantined_and_a_restart_gives_it_another_try(tmp_path: Path) -> None:
    app = App("strict", state=tmp_path / "state", master="local[2]")
    app.stream("s", "k int")
    app.query("strict", "SELECT 10 / k AS x FROM s", on_error="fail")
    app.query("lenient", "SELECT 10 / k AS x FROM s")
    with app.start() as run:
        run.push("s", [{"k": 0}])
        wait_for(lambda: run.read("lenient").num_rows == 1, run)
        wait_for(lambda: run.meters()["queries"]["strict"]["state"] == "quarantined", run)
        assert run.read("strict").num_rows == 0
    with app.start() as run:
        assert run.changes["strict"] == "unchanged"
        wait_for(lambda: run.meters()["queries"]["strict"]["state"] == "quarantined", run)


def test_spark_that_ran_before_runs_on(spark: SparkSession, tmp_path: Path) -> None:
    app = App("guest", state=tmp_path / "state", master="local[2]")
    app.stream("s", "k int")
    with app.start():
        pass
    assert spark.range(3).count() == 3
