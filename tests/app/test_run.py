"""Whole applications on Spark: their outputs are what plain Python computes from what the log holds."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.app.monitor import Reached, bag, check_answers, drained, monitor, wait_for

from freshet.app import App, Run
from freshet.model import FreshetError, UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def check_reasons(run: Run) -> None:
    decisions = run.decisions()
    assert [moment for moment, _ in decisions] == sorted(moment for moment, _ in decisions)
    assert {query for _, reason in decisions for each in reason.first for query in each.queries} & {"large", "odd"}
    assert run.report()["latest_decision"] == str(decisions[-1][1])


def test_from_a_source_through_queries_on_queries_to_a_file(tmp_path: Path) -> None:
    reached = Reached()
    with monitor(tmp_path).start(observers=[reached]) as run:
        assert run.wait(120), "the source has a limit, so it ends"
        wait_for(lambda: drained(run), run)
        check_answers(run)
        assert reached.ends.items() >= {"large": 3000, "odd": 3000}.items()
        wait_for(run.sunk, run)
        assert len((tmp_path / "large.jsonl").read_text().splitlines()) == run.read("large").num_rows
        assert run.read("packets").num_rows == 3000
        check_reasons(run)
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


def test_whoever_only_drains_is_told_once_of_a_quarantined_query(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("told", state=tmp_path / "state", master="local[2]")
    app.stream("s", "k string, v int")
    app.query("mapped", "SELECT map(k, v) AS m FROM s")  # a NULL key raises, and there is no try_map
    app.query("plain", "SELECT v FROM s")
    with app.start() as run:
        run.push("s", [{"k": None, "v": 1}])
        assert run.drain(120)
        assert (run.read("mapped").num_rows, run.read("plain").num_rows) == (0, 1)
        [warning] = told_of(caplog)
        assert warning.startswith("query mapped is quarantined: ")
        assert "NULL_MAP_KEY" in warning
        run.drop_query("mapped")
        run.add_query("mapped", "SELECT map(k, v) AS m FROM s")
        assert run.drain(120)
        assert told_of(caplog) == [warning, warning], "it failed a second time"
    assert len(told_of(caplog)) == 2


def told_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("freshet.app")]


def test_spark_that_ran_before_runs_on(spark: SparkSession, tmp_path: Path) -> None:
    app = App("guest", state=tmp_path / "state", master="local[2]")
    app.stream("s", "k int")
    with app.start():
        pass
    assert spark.range(3).count() == 3


CURVES = """
[app]
policy = "slope-slack-push(1)"

[spark]
master = "local[2]"

[streams.s]
schema = "k int"

[queries.tight]
sql = "SELECT k FROM s WHERE k > 1"
curve = [[0, 1.0], ["1 minute", 1.0], ["2 minutes", 0.0]]

[queries.hopeless]
sql = "SELECT k FROM s"
curve = [[0, 0.0]]

[queries.plain]
sql = "SELECT k FROM s"
"""


@pytest.mark.parametrize("policy", ["slope-slack-push(1)", "fixed-priority", "bucketing-fused"])
def test_latency_curves_from_a_file(policy: str, tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text(CURVES.replace("slope-slack-push(1)", policy))
    with App.from_toml(tmp_path / "app.toml").start() as run:
        run.push("s", [{"k": 1}, {"k": 2}, {"k": 3}])
        assert run.drain(120)
        qos = {name: query["qos"] for name, query in run.meters()["queries"].items()}
        assert qos == {"tight": {"mean": 1.0, "count": 2, "late": 0}, "hopeless": {"mean": 0.0, "count": 3, "late": 0},
                       "plain": None}  # fmt: skip
        assert run.meters()["total"]["qos"] == {"average": 0.5, "per_tuple": 0.4, "late": 0}
        with pytest.raises(UserError, match="query tight: a latency curve never rises"):
            run.set_curve("tight", [(0, 0.1), (1, 1)])
        run.set_curve("tight", [(0, 0.5)])
        run.set_curve("hopeless", None)
        with pytest.raises(
            UserError, match=r"^query tight: expect.latncy: there is no such measure \(there are: latency"
        ):
            run.set_expectation("tight", "latncy", "1 s")
        run.set_expectation("tight", "latency", {"class": "must", "points": [(0, "2 s"), ("10 s", "1 s")]})
        run.set_expectation("tight", "memory", "1 MB")
        run.set_expectation("tight", "memory", None)
        board = run._parts.engine.board
        expected = board.queries[board.numbers["tight"]].promises.expect
        assert [wish.text() for wish in expected] == ["latency 2 s at 0 s, 1 s at 10 s (must, weight 1)"]
        run.add_query("late", "SELECT k FROM s", curve=[("0 s", 0.25)])
        run.push("s", [{"k": 4}])
        assert run.drain(120)
        qos = {name: query["qos"] for name, query in run.meters()["queries"].items()}
        assert qos == {"tight": {"mean": 0.5, "count": 1, "late": 0}, "hopeless": None, "plain": None,
                       "late": {"mean": 0.25, "count": 4, "late": 0}}  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["total"]["qos"]["per_tuple"] == pytest.approx((0.5 + 4 * 0.25) / 5)
