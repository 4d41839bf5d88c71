"""Functions of one's own, from their declaration to the text of queries; they run in tests/spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import freshet
from freshet.app import App, InvalidApp
from freshet.app.remembered.restart import fingerprint
from freshet.kernels import Program
from freshet.model import ARRIVAL, Query, UserError
from freshet.testing import LocalRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """
[streams.s]
schema = "v int, s string"

[functions]
longer = "own_functions_of_a_test:longer"

[functions.twice]
sql = "x * 2"
takes = "x double"

[functions.plus]
call = "own_functions_of_a_test:plus"
takes = "int"
returns = "int"
version = "1"

[queries.q]
sql = "SELECT longer(s) AS n, twice(v) AS t, plus(v) AS p FROM s"
"""
MODULE = """
import pyarrow as pa
import pyarrow.compute as pc
import freshet

@freshet.function(takes="string", returns="int")
def longer(text):
    return pc.utf8_length(text)

def plus(number):
    return pc.add(number, pa.scalar(1, pa.int32()))
"""


def squared(x: pa.Array) -> pa.Array:
    return pc.multiply(x, x)


def app_with(sql: str, **declared: object) -> App:
    app = App("a")
    app.stream("s", "v int, s string")
    app.function("squared", squared, "double", returns="double", **declared)  # type: ignore[arg-type]
    app.query("q", sql)
    return app


def answers(query: Query, rows: pa.Table) -> dict[str, list[object]]:
    chain = [query.graph.operators[name] for name in query.graph.order]
    (output,) = Program([chain], rows.schema).run(rows)
    assert output.failure is None
    return dict(pa.Table.from_batches([output.batch]).drop_columns([ARRIVAL]).to_pydict())


ROWS = pa.table({"v": pa.array([3, None], pa.int32()), "s": ["ab", None], ARRIVAL: [1, 2]})


def test_a_query_calls_it_whatever_the_case_and_its_column_keeps_the_name() -> None:
    checked = app_with("SELECT Squared(v), squared(v + 1) > 10 AS big FROM s").checked()
    assert answers(checked.queries["q"], ROWS) == {"squared(v)": [9.0, None], "big": [True, None]}
    assert checked.schemas["q"].types == [pa.float64(), pa.bool_()]


def test_people_are_shown_its_name() -> None:
    graph = app_with("SELECT squared(v) AS x FROM s WHERE squared(v) > 1").checked().queries["q"].graph
    assert [graph.operators[name].text() for name in graph.order] == [
        "squared(CAST(v AS DOUBLE)) > 1",
        "squared(CAST(v AS DOUBLE)) AS x",
    ]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("squared()", "squared(double) takes 1 argument, not 0"),
        ("squared(v, v)", "squared(double) takes 1 argument, not 2"),
        ("squared(s)", "squared(double) does not take string here: CAST it to double"),
        ("squred(v)", "unknown function squred; did you mean squared?"),
        ("squared(v) AND true", "AND joins conditions, but this is double"),
    ],
)
def test_the_check_knows_its_arguments(call: str, told: str) -> None:
    with pytest.raises(InvalidApp) as error:
        app_with(f"SELECT {call} AS x FROM s").check()
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("name", "what", "given", "told"),
    [
        ("sqrt", squared, {"takes": "double", "returns": "double"}, "Spark SQL has a function of this name"),
        ("lateral", squared, {"takes": "double", "returns": "double"}, "it is a word of SQL"),
        ("per-cent", squared, {"takes": "double", "returns": "double"}, "letters, digits and _"),
        ("f", squared, {"takes": "double, int", "returns": "double"}, "it does not take (double, int): too many"),
        ("f", lambda x, y: x, {"takes": "double", "returns": "double"}, "missing a required argument: 'y'"),
        ("f", squared, {}, "say what it takes and returns"),
        ("f", squared, {"takes": "dubble", "returns": "double"}, "takes must be types, such as 'double, string'"),
        ("f", squared, {"takes": "double", "returns": "double, int"}, "returns must be one type"),
        ("f", 5, {"takes": "double", "returns": "double"}, "must be a Python function or a SQL expression, not 5"),
        ("f", "x + 1", {}, "say the parameters of its expression"),
        ("f", squared, {"takes": "", "returns": "double"}, "it must take at least one argument"),
        ("f", "x * 2", {"takes": "double"}, "an expression needs a name for each argument, as in takes = 'x double, y"),
        ("f", "x * 2", {"takes": "x dubble"}, "takes must be types, such as 'double, string', not 'x dubble'"),
        ("f", "1 + 1", {"takes": " "}, "it must take at least one argument"),
        ("f", "x + y", {"takes": "x int"}, "y is none of its parameters (x)"),
        ("f", "sum(x)", {"takes": "x int"}, "sum() is an aggregate"),
        ("f", "rand()", {"takes": "x int"}, "rand() is not for streams"),
        ("squared", squared, {"takes": "double", "returns": "double"}, "there is one of this name already"),
    ],
)
def test_a_wrong_declaration_is_refused(name: str, what: object, given: dict[str, str], told: str) -> None:
    app = app_with("SELECT v FROM s")
    with pytest.raises(UserError) as error:
        app.function(name, what, **given)  # type: ignore[arg-type]
    assert told in str(error.value)


def test_a_macro_is_put_into_its_place() -> None:
    app = app_with("SELECT mean(v, 2) * 3 AS m FROM s")
    with pytest.raises(UserError, match="Spark SQL has a function of this name"):
        app.function("mean", "(a + b) / 2", "a double, b double")
    app.function("middle", "(a + squared(b)) / 2", "a double, b double")
    app.query("r", "SELECT middle(v, 2) * 3 AS m FROM s WHERE middle(v, 0) > 1")
    del app.queries["q"]
    assert answers(app.checked().queries["r"], ROWS) == {"m": [10.5]}


def test_another_version_is_another_query() -> None:
    def print_of(**declared: str) -> str:
        return fingerprint(app_with("SELECT squared(v) AS x FROM s", **declared).checked().queries["q"])

    assert print_of() == print_of()
    assert print_of(version="1") == print_of(version="1")
    assert len({print_of(), print_of(version="1"), print_of(version="2")}) == 3


def test_without_a_version_its_source_counts() -> None:
    def print_of(called: object) -> str:
        app = App("a")
        app.stream("s", "v double")
        app.function("f", called, "double", returns="double")  # type: ignore[arg-type]
        app.query("q", "SELECT f(v) AS x FROM s")
        return fingerprint(app.checked().queries["q"])

    one = lambda x: pc.add(x, 1.0)  # noqa: E731
    two = lambda x: pc.add(x, 2.0)  # noqa: E731
    assert print_of(one) == print_of(one)
    assert print_of(one) != print_of(two)


def test_a_file_declares_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_functions_of_a_test", raising=False)
    (tmp_path / "own_functions_of_a_test.py").write_text(MODULE)
    (tmp_path / "app.toml").write_text(FILE)
    query = freshet.App.from_toml(tmp_path / "app.toml").checked().queries["q"]
    assert answers(query, ROWS) == {"n": [2, None], "t": [6.0, None], "p": [4, None]}


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ('f = "no_such_module_here:f"', "functions.f: there is no module 'no_such_module_here'"),
        ('f = "json:dumps"', "functions.f: say what it takes and returns"),
        ('f = {takes = "x int"}', "functions.f: needs either call"),
        ('f = {sql = "x + 1", take = "x int"}', "functions.f.take: unknown key (did you mean 'takes'?"),
        (
            'f = {sql = "x + ", takes = "x int"}',
            "functions.f: 'x + ' is not an expression: something is missing after +",
        ),
        ('f = {sql = "x + 1", takes = "int"}', "functions.f: an expression needs a name for each argument"),
        ('f = "fm"', "functions.f: must be the place of a function as 'package.module:name', not 'fm'"),
        ("f = 5", "functions.f: must be 'package.module:name' or a table, not 5"),
    ],
)
def test_mistakes_in_a_file_have_their_place(tmp_path: Path, section: str, told: str) -> None:
    (tmp_path / "app.toml").write_text(f'[streams.s]\nschema = "v int"\n[functions]\n{section}\n')
    with pytest.raises(InvalidApp) as error:
        App.from_toml(tmp_path / "app.toml")
    assert told in str(error.value)


def test_what_is_given_for_a_session_must_be_one() -> None:
    with pytest.raises(UserError, match="spark must be Spark settings or a SparkSession, not 5"):
        App("a", spark=5)  # type: ignore[arg-type]


@pytest.mark.spark
def test_queries_call_functions_of_the_session_that_is_given(spark: SparkSession, tmp_path: Path) -> None:
    spark.udf.register("thrice_of_a_test", lambda value: value * 3, "int")
    app = App("a", state=tmp_path / "state", spark=spark)
    app.stream("s", "v int")
    app.function("squared", squared, "double", returns="double")
    app.query("q", "SELECT thrice_of_a_test(v) AS t, squared(v) AS w FROM s", sinks=[{"kind": "memory"}])
    with pytest.raises(UserError, match="leave out the master"):
        App("b", spark=spark, master="local[1]")
    with app.start() as run:
        run.push("s", [{"v": 2}, {"v": 5}])
        run.drain()
    assert [(row["t"], row["w"]) for row in run.memory("q").rows()] == [(6, 4.0), (15, 25.0)]
    assert spark.range(3).count() == 3


def test_what_a_function_raises_is_told_once() -> None:
    def refusing(x: pa.Array) -> pa.Array:
        if 3 in x.to_pylist():
            raise ValueError("3 is no size")
        return x

    app = App("a")
    app.stream("s", "v int")
    app.function("refusing", refusing, "int", returns="int")
    app.query("q", "SELECT refusing(v) AS w FROM s")
    app.query("r", "SELECT refusing(v) + 1 AS w FROM s")
    with LocalRun(app) as run:
        run.push("s", [{"v": number} for number in (1, 3, 3, 4)])
        with pytest.warns(UserWarning, match=r"function refusing raised ValueError: 3 is no size") as told:
            run.drain()
        assert len(told) == 1
        assert [row["w"] for row in run.rows("q")] == [1, None, None, 4]


def test_a_function_that_exits_has_an_evaluation_error_and_the_process_lives() -> None:
    app = App("a")
    app.stream("s", "v int")
    app.function("exits", lambda x: sys.exit(3), "int", returns="int")
    app.query("q", "SELECT exits(v) AS w FROM s")
    app.query("r", "SELECT exits(v) AS w FROM s", on_error="fail")
    with LocalRun(app) as run:
        run.push("s", [{"v": 1}])
        with pytest.warns(UserWarning, match="function exits raised SystemExit: 3"):
            run.drain()
        assert run.rows("q") == [{"w": None}]
        assert run.stopped == {
            "r": "1 evaluation error in 1 tuple (on_error = fail): function exits raised SystemExit: 3"
        }


def test_what_a_function_returns_instead_of_an_array_is_told() -> None:
    for name, returned, told in [
        ("nothing", None, "returned None: return an Arrow array of int"),
        ("plain", [1], "returned a value of the type list: return an Arrow array of int"),
    ]:
        app = App("a")
        app.stream("s", "v int")
        app.function(name, lambda x, returned=returned: returned, "int", returns="int")
        app.query("q", f"SELECT {name}(v) AS w FROM s")
        with LocalRun(app) as run:
            run.push("s", [{"v": 1}])
            run.drain()
            assert run.stopped["q"].startswith(f"function {name} {told}")
