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
from freshet.app.spec import SinkLike
from freshet.engine import Event
from freshet.engine.events import Committed
from freshet.log import Retention
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


class Reached:
    """Notes how far the stream of the monitor was read, by the outputs that came of it."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}

    def tell(self, event: Event) -> None:
        for chain in event.chains if isinstance(event, Committed) else ():
            self.ends |= {name: train.end for train in chain.trains for name in chain.writes}


def test_from_a_source_through_queries_on_queries_to_a_file(tmp_path: Path) -> None:
    run, reached = monitor(tmp_path).start(), Reached()
    with run:
        run.observe(reached)
        assert run.wait(120), "the source has a limit, so it ends"
        wait_for(lambda: drained(run), run)
        check_answers(run)
        assert reached.ends.items() >= {"large": 3000, "odd": 3000}.items()
        wait_for(run.sunk, run)
        assert len((tmp_path / "large.jsonl").read_text().splitlines()) == run.read("large").num_rows
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
            "query odd is dropped: its output stays readable; put back unchanged, it goes on where it was"
        ]
        run.push("s", [{"k": k} for k in range(10, 20)])
    with app().start() as run:
        assert run.changes == {"all": "unchanged"}, "what is out is told once"
        assert run.notes == []
    with app("odd").start() as run:
        assert run.changes == {"all": "unchanged", "odd": "back"}
        assert run.notes == ["query odd is back: it goes on where it was; it missed nothing",
                             "sink odd/jsonl is back: it goes on where it was"]  # fmt: skip
        run.drain(120)
        assert sorted(keys(run, "odd")) == list(range(1, 20, 2))
    assert sorted(lines(out)) == list(range(1, 20, 2))
    with app("odd", sink=False).start() as run:
        assert run.notes == ["sink odd/jsonl is dropped: put back, it goes on where it was"]
        run.push("s", [{"k": k} for k in range(20, 30)])
    with app("odd").start() as run:
        assert run.notes == ["sink odd/jsonl is back: it goes on where it was"]
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
        assert run.notes == ["query few is back: it goes on where it was; 2 tuples came and went while it was out"]
        run.push("s", [{"k": 4}])
        run.drain(120)
        assert keys(run, "few") == [1, 4]
        (loss,) = run._parts.log.ledger()
        assert (loss.reader, loss.stream, loss.first, loss.end) == ("few.project", "s", 1, 3)
        # Changed, it starts anew, and with other columns its old output makes way; before anything is lost it is asked.
        run.drop_query("few")
        with pytest.raises(UserError):
            run.add_query("few", "SELECT array(k)[0] + map(1, k) AS x FROM s")
        run.add_query("few", "SELECT k FROM s")
        assert run.notes[-1] == "query few is back: it goes on where it was; it missed nothing"
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
        run.add_query("late", "SELECT k FROM s", curve=[("0 s", 0.25)])
        run.push("s", [{"k": 4}])
        assert run.drain(120)
        qos = {name: query["qos"] for name, query in run.meters()["queries"].items()}
        assert qos == {"tight": {"mean": 0.5, "count": 1, "late": 0}, "hopeless": None, "plain": None,
                       "late": {"mean": 0.25, "count": 4, "late": 0}}  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["total"]["qos"]["per_tuple"] == pytest.approx((0.5 + 4 * 0.25) / 5)
