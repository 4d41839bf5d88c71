"""What is checked over a whole application: every problem in one round, masters, settings, the order of outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.app import App, InvalidApp
from freshet.app.declared.file import parse_leniently
from freshet.app.declared.spec import check_master
from freshet.log import Retention
from freshet.model import UserError


def test_no_problem_hides_another(tmp_path: Path) -> None:
    """One of every sort at once: keys, units, schema, SQL, sources, sinks, files, parts that are not run yet."""
    (tmp_path / "folder").mkdir()
    path = tmp_path / "app.toml"
    path.write_text(
        """
[app]
nme = "x"
report = "folder"
[spark]
master = "lcal"
[streams.a]
schema = "ts timestamp, v int"
event_time = "t"
source = {kind = "generator", rate = "many"}
[streams.b]
schem = "v int"
source = {kind = "genrator"}
[streams.c]
schema = "v itn"
source = {kind = "generator", rate = -1}
[queries.weight]
sql = "SELECT x FROM a"
weight = 2
[queries.none]
sinks = [{kind = "jsonl"}]
[queries.later]
sql = "SELECT v, ts AS n FROM a PERIOD 10 SECONDS"
[queries.on_later]
sql = "SELECT m FROM later"
[queries.unknowable]
sql = "SELECT anything FROM b"
"""
    )
    with pytest.raises(InvalidApp) as caught:
        App.from_toml(path).check()
    assert [problem.place for problem in caught.value.problems] == [
        "app.nme",
        "spark.master",
        "streams.b.schema",
        "streams.b.schem",
        "queries.weight.weight",
        "queries.none.sql",
        "streams.a",
        "streams.b.source.kind",
        "streams.c",
        "streams.c.source.rate",
        "queries.none.sinks[0].path",
        "queries.weight.sql",
        "queries.later.sql",
        "streams.a.source.rate",
        "app.report",
    ]


def test_what_is_right_in_a_wrong_file_is_kept() -> None:
    read = parse_leniently(
        '[app]\nstate = "here"\nworkers = "two"\n[streams]\ns = 5\n[queries.q]\nsql = 7\nweight = 0.5'
    )
    assert (read.file.app.state, read.file.app.workers) == ("here", 2)
    assert read.file.queries["q"].weight.other == 0.5
    assert read.broken == {"s", "q"}
    assert [problem.line() for problem in read.problems] == [
        "app.workers: must be a whole number, not 'two'",
        "streams.s: must be a table, not 5",
        "queries.q.sql: must be a text in quotes, not 7",
    ]


def test_tables_that_are_no_tables_are_said_once() -> None:
    read = parse_leniently('app = 5\nstreams = "s"\n[queries.q]\nsql = "SELECT 1"\nsinks = ["x", {kind = "memory"}]')
    assert [problem.line() for problem in read.problems] == [
        "app: must be a table, not 5",
        "streams: must be a table, not 's'",
        "queries.q.sinks[0]: must be a table, not 'x'",
    ]


def test_a_window_by_the_order_of_an_output_that_has_none_is_refused() -> None:
    app = App("orders")
    app.stream("a", "ts timestamp, k int", event_time="ts", lateness="1 s")
    app.stream("b", "ts timestamp, k int", event_time="ts", lateness="1 s")
    app.query("pairs", "SELECT a.ts, a.k FROM a [RANGE 1 MINUTE] JOIN b [RANGE 1 MINUTE] ON a.k = b.k")
    app.query("odd", "SELECT ts, k FROM pairs WHERE k % 2 = 1")
    app.query("minutes", "SELECT count(*) AS n FROM odd [RANGE 1 MINUTE SLIDE 1 MINUTE]")
    app.query("last", "SELECT sum(k) AS k FROM odd [ROWS 3]")
    app.query("counts", "SELECT k, count(*) AS n, window_end FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k")
    app.query("means", "SELECT k, avg(n) AS m FROM counts [PARTITION BY k ROWS 3] GROUP BY k")
    app.query("largest", "SELECT max(n) AS m FROM counts [RANGE 1 HOUR]")
    with pytest.raises(InvalidApp) as caught:
        app.check()
    told = {problem.place: problem.text.splitlines()[0] for problem in caught.value.problems}
    order = "the order in which these rows were written"
    cause = f"the answer would depend on {order}, and that is not the same in every run"
    remedy = "it needs a window with a SLIDE, as in [RANGE 1 MINUTE SLIDE 10 SECONDS]"
    assert told == {
        "queries.last.sql": f"line 1: {cause}: {remedy}",
        "queries.largest.sql": f"line 1: {cause}: {remedy}, or GROUP BY k",
    }


@pytest.mark.parametrize(
    "master",
    ["local", "local[4]", "local[*]", "local[2,3]", "local[*, 3]", "local-cluster[2,1,1024]", "spark://host:7077",
     "spark://a:7077,b:7077", "yarn", "k8s://https://host:6443"],
)  # fmt: skip
def test_masters_that_spark_knows(master: str) -> None:
    assert check_master(master) == master


@pytest.mark.parametrize(
    "master", ["", "lcal[2]", "local[0]", "local[]", "local[2", "spark://host", "yarn-client", "mesos://x"]
)
def test_masters_that_it_does_not(master: str) -> None:
    with pytest.raises(UserError, match="is not a Spark master"):
        check_master(master)
    with pytest.raises(UserError, match="is not a Spark master"):
        App("x", master=master)


def test_a_bound_of_nothing_is_refused_in_python_too() -> None:
    app = App("x")
    with pytest.raises(UserError, match="would never take anything in"):
        app.stream("s", "v int", retention=Retention(bound_bytes=0))


def test_without_streams_there_is_none_to_choose_from() -> None:
    app = App("x")
    app.query("q", "SELECT v FROM s")
    with pytest.raises(InvalidApp) as caught:
        app.check()
    assert [problem.line().splitlines()[0] for problem in caught.value.problems] == [
        "queries.q.sql: line 1: unknown stream s: none is declared",
        "streams: there is none: declare at least one, as [streams.NAME]",
    ]


def test_settings_that_answers_depend_on_are_refused(tmp_path: Path) -> None:
    settings = {"spark.sql.session.timeZone": "America/New_York", "spark.executor.memory": "2g"}
    with pytest.raises(UserError, match="timeZone must be UTC, else answers would be wrong"):
        App("a", state=tmp_path, spark=settings)
    path = tmp_path / "app.toml"
    path.write_text('[spark.settings]\n"spark.sql.ansi.enabled" = "false"\n')
    with pytest.raises(InvalidApp, match=r"spark.sql.ansi.enabled must be true"):
        App.from_toml(path)


def test_a_wrong_master_of_the_environment_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_MASTER", "lcal")
    app = App("x", state=tmp_path / "state")
    app.stream("s", "v int")
    with pytest.raises(UserError, match="'lcal' is not a Spark master"):
        app.start()
    assert not (tmp_path / "state").exists()
