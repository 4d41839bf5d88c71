"""Operators of one's own, run by the real kernels over a real log, under random schedules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from freshet.app import App, InvalidApp
from freshet.app.remembered.restart import fingerprint
from freshet.engine import Engine, LogQueues, VirtualClock
from freshet.log import Intake, Log
from freshet.model import ARRIVAL, UserError
from freshet.policies import Everything
from freshet.testing import InProcessExecutor, LocalRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = [(1, "a bb"), (2, ""), (61, None), (62, "ccc"), (150, "d e f")]


def words(batch: pa.RecordBatch, least: int = 0) -> tuple[pa.RecordBatch, pa.Array]:
    """The words of each line, with their length; those that are too short are left out."""
    parts = pc.split_pattern(batch["text"], " ")
    word, number = pc.list_flatten(parts), pc.list_parent_indices(parts)
    long = pc.greater(pc.utf8_length(word), least)
    rows = pa.record_batch({"word": word, "size": pc.utf8_length(word)})
    return rows.filter(long), number.filter(long)


def app_with(sql: str, what: Callable[..., Any] = words, **given: Any) -> App:
    app = App("a")
    app.stream("lines", "ts timestamp, text string", event_time="ts", lateness="0 s")
    declared = {"takes": "text string", "returns": "word string, size int"} | given
    app.operator("words", what, **declared)
    app.query("q", sql)
    return app


def run(app: App, folder: Path, most_rows: int = 2) -> tuple[list[dict[str, Any]], Engine]:
    checked = app.checked()
    times = pa.array([second * 1_000_000 for second, _ in LINES], pa.timestamp("us", tz="UTC"))
    arrivals = np.array([10 + second for second, _ in LINES])
    rows = pa.table({"ts": times, "text": [text for _, text in LINES]})
    with Log.open(folder) as log:
        log.declare("lines", clock="ts")
        log.declare("q", kind="output")
        clock = VirtualClock(0.0)
        executor = InProcessExecutor(log.folder, clock, slots=2, seed=most_rows)
        queues = LogQueues(log)
        engine = Engine(queues, executor, clock, Everything(), most_rows=most_rows)
        engine.add_query(checked.queries["q"], {"lines": app.streams["lines"].stream.schema})
        Intake(log, app.streams["lines"].stream).append(rows, arrivals)
        queues.notice("lines")
        engine.run()
        return log.read("q", 0, log.end("q")).to_pylist() if log.end("q") else [], engine


@pytest.mark.parametrize("most_rows", [1, 2, 100])
def test_rows_carry_the_arrival_of_their_tuple_and_come_in_order(tmp_path: Path, most_rows: int) -> None:
    made, _ = run(app_with("SELECT word, size * 2 AS double FROM words(lines) WHERE word <> 'e'"), tmp_path, most_rows)
    assert [(row["word"], row["double"], row[ARRIVAL]) for row in made] == [
        ("a", 2, 11), ("bb", 4, 11), ("ccc", 6, 72), ("d", 2, 160), ("f", 2, 160),
    ]  # fmt: skip


@pytest.mark.parametrize("most_rows", [1, 2, 100])
def test_a_query_gives_it_constants_and_windows_go_by_the_time_of_its_tuples(tmp_path: Path, most_rows: int) -> None:
    sql = "SELECT window_end, count(*) AS n FROM words(lines, 1) [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    made, _ = run(app_with(sql), tmp_path, most_rows)
    assert [(row["window_end"].timestamp(), row["n"]) for row in made] == [(60.0, 1), (120.0, 1)]


def dated(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
    return pa.record_batch({"at": batch["ts"], "n": pc.utf8_length(batch["text"])}), list(range(len(batch)))


def test_a_column_can_give_event_time_out(tmp_path: Path) -> None:
    given = {"takes": "ts timestamp, text string", "returns": "at timestamp, n int", "time": "column:at"}
    app = app_with("SELECT at, n FROM words(lines)", dated, **given)
    assert app.checked().queries["q"].event_time == "at"
    sql = "SELECT window_end, sum(n) AS n FROM words(lines) [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    made, _ = run(app_with(sql, dated, **given), tmp_path)
    assert [(row["window_end"].timestamp(), row["n"]) for row in made] == [(60.0, 4), (120.0, 3)]


def early(batch: pa.RecordBatch, seconds: int) -> tuple[pa.RecordBatch, list[int]]:
    at = pc.subtract(batch["ts"].cast(pa.int64()), seconds * 1_000_000).cast(batch["ts"].type)
    return pa.record_batch({"at": at, "n": pc.utf8_length(batch["text"])}), list(range(len(batch)))


@pytest.mark.parametrize("most_rows", [1, 100])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window_end, count(*) AS n FROM words(lines, 1) [RANGE 1 SECOND SLIDE 1 SECOND]",
        "SELECT at, n FROM words(lines, 1)",
    ],
)
def test_a_time_before_that_of_the_tuple_quarantines_the_query(tmp_path: Path, sql: str, most_rows: int) -> None:
    given = {"takes": "ts timestamp, text string", "returns": "at timestamp, n int", "time": "column:at"}
    made, engine = run(app_with(sql, early, **given), tmp_path, most_rows)
    assert made == []
    told = "operator words gave a row whose at is 1,000,000 us before the event time of its tuple"
    assert told in str(engine.snapshot()["queries"]["q"])
    later, engine = run(app_with(sql.replace("1)", "-1)"), early, **given), tmp_path / "later", most_rows)
    assert later
    assert "gave a row" not in str(engine.snapshot()["queries"]["q"])


def test_a_stream_without_event_time_has_the_arrival_instead() -> None:
    app = App("a")
    app.stream("lines", "ts timestamp, text string")
    app.operator("words", early, takes="ts timestamp, text string", returns="at timestamp, n int", time="column:at")
    app.query("q", "SELECT window_end, count(*) AS n FROM words(lines, 0) [RANGE 1 SECOND SLIDE 1 SECOND]")
    with LocalRun(app) as local:
        local.push("lines", [{"ts": "1969-01-01T00:00:00Z", "text": "a"}])
        local.drain()
        assert "us before the arrival of its tuple" in str(local.stopped)


def test_a_time_needs_tuples_that_have_one() -> None:
    given = {"takes": "ts timestamp, text string", "returns": "at timestamp, n int", "time": "column:at"}
    app = app_with("SELECT at FROM words(untimed(lines), 0)", early, **given)
    columns = "ts timestamp, text string"
    app.operator("untimed", lambda batch: (batch, range(len(batch))), takes=columns, returns=columns, time="none")
    with pytest.raises(InvalidApp, match=r"words\(\) goes by the time of its tuples, and they have none"):
        app.check()


def test_without_a_time_no_window_goes_by_it() -> None:
    app = app_with("SELECT count(*) AS n FROM words(lines) [RANGE 1 MINUTE]", time="none")
    with pytest.raises(InvalidApp, match="operator words declares time = 'none'"):
        app.check()
    assert app_with("SELECT word FROM words(lines)", time="none").check() == []


def test_one_stands_on_another_in_a_sub_query(tmp_path: Path) -> None:
    def again(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        return pa.record_batch({"text": pc.utf8_upper(batch["word"])}), pa.array(range(len(batch)))

    app = app_with("SELECT w.word FROM (SELECT word, size FROM words(upper_words(words(lines)))) w WHERE size > 1")
    app.operator("upper_words", again, takes="word string", returns="text string")
    made, _ = run(app, tmp_path)
    assert [row["word"] for row in made] == ["BB", "CCC"]


def test_queries_read_each_other_through_it() -> None:
    app = app_with("SELECT word FROM words(other)")
    app.query("other", "SELECT text FROM lines")
    assert list(app.checked().queries) == ["other", "q"]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT word FROM wrds(lines)", "there is no operator wrds for FROM; did you mean words?"),
        ("SELECT word FROM words()", "the first argument of words() is the name of a stream"),
        ("SELECT word FROM words(linse)", "unknown stream linse; did you mean lines?"),
        ("SELECT word FROM words(lines, text)", "an operator takes constants besides its stream"),
        ("SELECT word FROM words(lines, NULL)", "line 1: an operator takes constants besides its stream"),
        ("SELECT word FROM words(lines, 1, 2)", "line 1: words() does not take these constants: too many positional"),
        ("SELECT word FROM words(lines, 1, 2)", "(words(batch, least=0))"),
        ("SELECT text FROM words(lines)", "unknown column text of words"),
        ("WITH c AS (SELECT 5 AS text FROM lines) SELECT word FROM words(c)", "takes text as string, but it is int"),
        ("WITH c AS (SELECT ts FROM lines) SELECT word FROM words(c)", "takes a column text, which is not there"),
        ("SELECT words(text) AS w FROM lines", "words is an operator: name it in FROM, as in FROM words(s)"),
    ],
)
def test_mistakes_in_a_text_are_told(sql: str, told: str) -> None:
    with pytest.raises(InvalidApp) as error:
        app_with(sql).check()
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": "explode"}, "choose another name"),
        ({"name": "words"}, "operator words: there is an operator words already; choose another name"),
        ({"name": "Lines"}, "operator Lines: there is a stream lines already; choose another name"),
        ({"name": "q"}, "operator q: there is a query q already"),
        ({"what": lambda: None}, "operator w: its code must take an Arrow batch, and then the constants of the query"),
        ({"what": lambda: None}, ": too many positional arguments (<lambda>())"),
        ({"what": 5}, "it must be a Python function, or have states and a run, not 5"),
        ({"what": type("Forgetful", (), {"run": words})}, "operator w: a class with a run must have states"),
        ({"takes": "text strin"}, "operator w: takes: schema 'text strin' is not Spark DDL"),
        ({"time": "later"}, "time must be 'keep', 'none' or 'column:X', not 'later'"),
        ({"time": "column:word"}, "returns has no column word of type timestamp"),
    ],
)
def test_a_wrong_declaration_is_refused(given: dict[str, Any], told: str) -> None:
    declared: dict[str, Any] = {"name": "w", "what": words, "takes": "text string", "returns": "word string"} | given
    with pytest.raises(UserError) as error:
        app_with("SELECT word FROM words(lines)").operator(**declared)
    assert told in str(error.value)


def test_nothing_else_may_have_the_name_of_an_operator() -> None:
    app = app_with("SELECT word FROM words(lines)")
    with pytest.raises(UserError, match="stream words: there is an operator words already; choose another name"):
        app.stream("words", "text string")
    with pytest.raises(UserError, match="table Words: there is an operator words already"):
        app.table("Words", "words.csv", schema="word string")
    with pytest.raises(UserError, match="query words: there is an operator words already"):
        app.query("words", "SELECT text FROM lines")


def test_a_mistake_in_its_code_is_told_with_its_line() -> None:
    def wrong(batch: pa.RecordBatch) -> Any:
        return pc.utf8_length(batch["size"])

    app = app_with("SELECT word FROM words(lines)", wrong)
    with LocalRun(app) as local:
        local.push("lines", [{"ts": 1, "text": "a"}])
        local.drain()
    line = wrong.__code__.co_firstlineno + 1
    assert local.stopped["q"] == (
        f"operator words raised KeyError: 'Field \"size\" does not exist in schema' (test_operators.py, line {line})"
    )


def first_word(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
    return pa.record_batch({"word": batch["text"].slice(0, 1), "size": pa.array([1], pa.int32())}), [0]


def two(numbers: list[Any], kind: str = "int32") -> Callable[..., Any]:
    made = pa.record_batch({"word": pa.array(["x"] * 2), "size": pa.array([1] * 2, kind)})
    return lambda batch: (made, numbers)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (first_word, "operator words gives other rows when its tuples come in two batches"),
        (two([0]), "operator words returned 2 rows and the numbers of 1 tuple: each row needs one number"),
        (two([1, 0]), "operator words must give rows in the order of their tuples"),
        (two([0, 9]), "operator words must give rows in the order of their tuples"),
        (two([0, 1], "int64"), "but is declared to return (word string, size int)"),
        (lambda batch: batch, "operator words must return an Arrow batch and for each row"),
        (
            two([0, None]),
            "words must return for each row the number of its tuple, a whole number: it returned NULL for 1 row",
        ),
        (two([0.0, 1.0]), "a whole number: it returned values of the type double"),
        (two(["a", 1]), "a whole number: list is no list of numbers"),
        (lambda batch: 1 // 0, "operator words raised ZeroDivisionError: integer division or modulo by zero (test_op"),
        (lambda batch: batch["text"].cast(pa.int8()), "operator words raised ArrowInvalid: "),
        (lambda batch: sys.exit(3), "operator words raised SystemExit: 3"),
    ],
)
def test_what_is_not_as_declared_fails_the_query(tmp_path: Path, what: Callable[..., Any], told: str) -> None:
    made, engine = run(app_with("SELECT word FROM words(lines)", what), tmp_path, 100)
    assert made == []
    assert told in str(engine.snapshot()["queries"]["q"])


def test_another_version_is_another_query() -> None:
    def print_of(what: Callable[..., Any] = words, **declared: str) -> str:
        return fingerprint(app_with("SELECT word FROM words(lines)", what, **declared).checked().queries["q"])

    assert print_of() == print_of()
    assert len({print_of(), print_of(first_word), print_of(version="1"), print_of(version="2")}) == 4


@pytest.mark.spark
def test_it_runs_on_workers_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    app = App("a", state=tmp_path / "state", spark=spark)
    app.stream("lines", "text string")
    app.operator("words", words, takes="text string", returns="word string, size int")
    # The second has a function that is left to Spark, so that its chain changes form.
    app.query("q", "SELECT word FROM words(lines, 1)", sinks=[{"kind": "memory"}])
    app.query("r", "SELECT sha1(word) AS code FROM words(lines, 2)", sinks=[{"kind": "memory"}])
    app.operator("broken_words", lambda batch: 1 // 0, takes="text string", returns="word string")
    app.query("bad", "SELECT word FROM broken_words(lines)")
    with app.start() as run:
        run.push("lines", [{"text": "a bb"}, {"text": None}, {"text": "ccc"}])
        run.drain()
        queries = run.meters()["queries"]
    assert {name: query["state"] for name, query in queries.items()} == {
        "q": "active", "r": "active", "bad": "quarantined",
    }  # fmt: skip
    reason = str(queries["bad"]["reason"])
    assert reason.startswith("operator broken_words raised ZeroDivisionError: ")
    assert "(test_operators.py, line " in reason
    assert [row["word"] for row in run.memory("q").rows()] == ["bb", "ccc"]
    assert [row["code"][:4] for row in run.memory("r").rows()] == ["f36b"]
