"""Numbers of every two types in every form, literals of every suffix, and extreme values, against Spark itself."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernels.superbox.test_program_spark import ask, session  # noqa: F401
from tests.kernels.tables import make_table, numbers

from freshet.kernels import Program, Unsupported
from freshet.model import Project
from freshet.sql import SqlTyper, build_query, error_count, safe
from freshet.sql.check.types import is_known

pytestmark = pytest.mark.spark

INF, NAN = float("inf"), float("nan")
WHOLE = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
DECIMALS = [(5, 2), (10, 0), (20, 10), (38, 10), (38, 38), (38, 0)]
KINDS = [*WHOLE, "float", "double", *(f"decimal({digits},{scale})" for digits, scale in DECIMALS)]
COLUMNS = {**{f"c{place}": kind for place, kind in enumerate(KINDS)}, "s": "string", "d": "date", "t": "boolean"}
FORMS = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}", "{0} div {1}", "mod({0}, {1})", "{0} = {1}",
    "{0} <> {1}", "{0} < {1}", "{0} <= {1}", "{0} > {1}", "{0} >= {1}", "{0} <=> {1}", "{0} IN ({1}, {0})",
    "{0} NOT IN (1e0, {1}, NULL)", "{0} BETWEEN {1} AND 2.5D", "CASE WHEN {0} > {1} THEN {0} ELSE {1} END",
    "CASE {0} WHEN {1} THEN {1} END", "IF({0} IS NULL, {1}, {0})", "coalesce({0}, {1})", "nvl({0}, {1})",
    "nvl2({0}, {0}, {1})", "nullif({0}, {1})", "greatest({0}, {1})", "least({0}, {1})", "{0} > 1e0",
    "{0} IN (1e0, 2.5D)", "greatest({0}, 1.5F, {1})",
]  # fmt: skip
LITERALS = [
    "5", "-5", "(5)", "-(5)", "0", "2147483648", "5L", "-5L", "(5L)", "-(5L)", "12345L", "5S", "-300S", "7Y", "-7Y",
    "1.5D", "-1.5D", "2.5F", "12.50BD", "-12.50BD", "0.05BD", "5BD", "1e2BD", "1.5", "-0.05", "1e0",
    "CAST(5 AS BIGINT)",
]  # fmt: skip
WITH_LITERALS = ["{0} + {1}", "{1} - {0}", "{0} * {1}", "{1} / {0}", "{0} % 3S + {1}", "{0} > {1}", "{1} <=> {0}"]
ZEROS = [
    "-0.0D", "-0.0", "-(0.0D)", "0.0D * -1", "-0.0F", "-(0.0F)", "-0e0", "CAST(-0.0 AS DOUBLE)", "CAST(-0e0 AS FLOAT)",
    "-CAST(0.0 AS DOUBLE)", "-0D", "-0.0BD", "-(-0.0D)", "c5 * -0.0D", "abs(-0.0D)", "coalesce(NULL, -0.0D)",
]  # fmt: skip
EXTREME = [
    "-{0}", "abs({0})", "negative({0})", "round({0}, -1)", "bround({0}, -2)", "round({0}, 1)", "round({0}, -38)",
    "ceil({0})", "floor({0})", "sign({0})", "{0} % -1", "pmod({0}, 0)", "{0} * {0}", "{0} + {0}", "{0} / 0",
    "CAST({0} AS TINYINT)", "CAST({0} AS DECIMAL(5, 2))", "CAST({0} AS BIGINT)", "ceil({0}, 1)", "floor({0}, -2)",
    "{0} % c10", "mod({0}, c10)", "pmod({0}, c10)", "pmod({0}, c8)",
]  # fmt: skip
WHOLE_EXTREME = [
    "{0} div -1", "{0} div 0", "round({0}, 0 - 1)", "factorial(CAST({0} AS INT))", "shiftleft({0}, 31)",
    "timestamp_seconds({0})", "timestamp_millis({0})", "add_months(d, CAST({0} AS INT))",
    "date_add(d, CAST({0} AS INT))", "make_date(CAST({0} AS INT), 1, 1)", "INTERVAL 1 DAY * {0}",
    "d + INTERVAL 1 YEAR * {0}", "try_add({0}, {0})", "{0} div c10", "c11 div {0}",
]  # fmt: skip
TEXTS = [
    "-s", "abs(s)", "s + 1", "s * 2.5", "s > 1", "coalesce(s, 1)", "coalesce(c2, s)", "nvl(s, 1.5)", "nullif(s, 1)",
    "nullif(1, s)", "greatest(s, 1)", "least(c5, s)", "CASE WHEN t THEN s ELSE 1 END", "CASE s WHEN 1 THEN 2 END",
    "CASE c2 WHEN s THEN 2 END", "IF(t, s, 2)", "nvl2(c2, s, 2)",
    "ceil(s)", "floor(s)", "round(s)", "round(s, -1)", "bround(s, 1)", "ceil(s, 1)", "pmod(s, 3)",
    "coalesce(d, s)", "nullif(d, s)", "nullif(s, d)", "greatest(d, s)", "coalesce(t, s)", "d = s",
]  # fmt: skip


def plain_values(kind: str) -> list[Any]:
    """Values for which nothing overflows and nothing is divided by zero."""
    if kind == "decimal(38,38)":
        return [Decimal(text) for text in ("0.5", "-0.25", "0.05", "0.75")] + [None]
    if kind.startswith("decimal"):
        whole = kind.endswith(",0)")
        return [Decimal(text) for text in (("1", "-2", "3", "5") if whole else ("1.5", "-2", "0.05", "3"))] + [None]
    other: dict[str, list[Any]] = {"float": [1.5, -2.0, 0.1, None, NAN], "string": ["1", "-2", "3", "3", None]}
    other |= {"double": [1.5, None, 0.1, 3.0, NAN], "date": [0, 1, None, 19782, 5], "boolean": [True, False, None] * 2}
    return other.get(kind, [1, -2, 3, None, 5])[:5]


def extreme_values(kind: str) -> list[Any]:
    if kind.startswith("decimal"):
        digits, scale = next(pair for pair in DECIMALS if kind == f"decimal({pair[0]},{pair[1]})")
        largest, smallest = (Decimal((sign, (9,) * digits, -scale)) for sign in (0, 1))
        return [largest, smallest, Decimal(0), None, Decimal((0, (1,), -scale))]
    if kind in WHOLE:
        return [2 ** WHOLE[kind] - 1, -(2 ** WHOLE[kind]), 0, None, -1]
    other: dict[str, list[Any]] = {
        "float": [3.4028234663852886e38, -INF, NAN, None, -1.0],
        "double": [1.7976931348623157e308, -INF, NAN, 0.0, -1.0],
    }
    other |= {"string": ["x", "1.5", None, "9" * 50, "2"], "date": [-719162, 2932896, None, 0, -1]}
    return other.get(kind, [True, False, None, True, False])


def table_of(values: Any) -> pa.Table:
    columns = {name: values(kind) for name, kind in COLUMNS.items()}
    return make_table(COLUMNS, [{name: column[row] for name, column in columns.items()} for row in range(5)])


PLAIN, EXTREMES = table_of(plain_values), table_of(extreme_values)


@pytest.fixture(scope="module")
def frames(session: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:  # noqa: F811
    folder: Path = tmp_path_factory.mktemp("numbers")
    for name, table in (("plain", PLAIN), ("extremes", EXTREMES)):
        pq.write_table(table, folder / f"{name}.parquet")
    return tuple(session.read.parquet(str(folder / f"{name}.parquet")) for name in ("plain", "extremes"))


def pairs() -> list[str]:
    names = list(COLUMNS)[: len(KINDS)]
    floats = {"c4", "c5"}
    return [
        form.format(left, right)
        for form, left, right in product(FORMS, names, names)
        if "div" not in form or not {left, right} & floats
    ]


def literals() -> list[str]:
    names = [name for name, kind in COLUMNS.items() if kind.startswith("decimal")]
    return [form.format(name, literal) for form, name, literal in product(WITH_LITERALS, names, LITERALS)]


def compare(frame: Any, table: pa.Table, texts: list[str], raw: bool) -> None:
    """Holds both physical forms and the declared types against each other and, where nothing fails, against Spark."""
    graphs = [build_query("q", f"SELECT {text} AS x FROM s", {"s": table.schema}).graph for text in texts]
    paths = [[each for name in graph.order if isinstance(each := graph.operators[name], Project)] for graph in graphs]
    written = [path[-1].columns[0][1] for path in paths]
    answers = ask(frame, [safe(text) for text in written])
    counts = ask(frame, [error_count(text) for text in written])
    truth = ask(frame, texts) if raw else answers
    for text, path, answer, count, true in zip(texts, paths, answers, counts, truth, strict=True):
        declared = path[-1].output([table.schema], SqlTyper()).field("x").type
        assert not is_known(declared) or declared == true.type, text
        assert (answer.type, numbers(answer)) == (true.type, numbers(true)), text
        try:
            [output] = Program([path], table.schema).run(table)
        except Unsupported:
            continue
        assert output.failure is None, text
        column = output.batch.column(0)
        assert (column.type, numbers(column)) == (true.type, numbers(true)), text
        assert output.errors == sum(count.to_pylist()), text


def extremes() -> list[str]:
    names = list(COLUMNS)[: len(KINDS)]
    return [form.format(name) for form, name in product(EXTREME, names)] + [
        form.format(name) for form, name in product(WHOLE_EXTREME, names[:4])
    ]


def test_some_numbers_of_two_types(frames: tuple[Any, Any]) -> None:
    beside = [text for text in pairs() if ("c9" in text) != ("c5" in text) or "c8" in text]
    sure = [
        "coalesce(c10, c11)",
        "c11 % c10",
        "-2147483648 + 0",
        "trunc(d, 'MM')",
        "c9 * c5",
        "c6 > 1e0",
        "c9 IN (1e0, 2.5D)",
        "coalesce(c6, c4)",
        "nullif(c8, c5)",
        "greatest(c5, c10)",
    ]
    compare(frames[0], PLAIN, [*sure, *Random(1).sample(beside, 60)], raw=True)


def test_some_literals_beside_decimals(frames: tuple[Any, Any]) -> None:
    sure = ["c9 * 5L", "c9 * 3S", "c9 * 7Y", "c9 / 5L", "-5L * c9", "c9 * -5", "12.50BD * c9"]
    compare(frames[0], PLAIN, [*sure, *Random(2).sample(literals(), 40), *ZEROS], raw=True)


def test_some_extremes_are_null_and_counted(frames: tuple[Any, Any]) -> None:
    sure = ["round(c2, -1)", "-c11", "-c9", "abs(c11)", "round(c11, -1)", "bround(c3, -2)", "add_months(d, c2)"]
    sure += [
        "ceil(c5, 1)",
        "floor(c3, -2)",
        "c11 div c10",
        "c11 % c10",
        "mod(c9, c10)",
        "pmod(c11, c8)",
        "round(c2, 0 - 1)",
    ]
    compare(frames[1], EXTREMES, [*sure, *TEXTS, *Random(3).sample(extremes(), 40)], raw=False)


def test_what_try_forms_have_in_common_does_not_raise_outside_of_them(frames: tuple[Any, Any]) -> None:
    texts = ["s + 1", "s + 2", "pmod(s, 3)", "ceil(c5, 1)", "floor(c5, 2)"]
    answers = ask(frames[1], [safe(text) for text in texts])
    assert [answer.null_count for answer in answers] == [4, 4, 4, 3, 3]


def test_the_largest_have_no_rounder_neighbour(frames: tuple[Any, Any]) -> None:
    texts = ["round(c2, -1)", "bround(c3, -1)", "round(c11, -1)", "-c2", "-c11"]
    answers, counts = ask(frames[1], [safe(text) for text in texts]), ask(frames[1], list(map(error_count, texts)))
    assert [sum(count.to_pylist()) for count in counts] == [2, 2, 2, 1, 2]
    assert [answer.null_count for answer in answers] == [3, 3, 3, 2, 3]


@pytest.mark.long
def test_all_numbers_of_two_types(frames: tuple[Any, Any]) -> None:
    compare(frames[0], PLAIN, pairs(), raw=True)


@pytest.mark.long
def test_all_literals_beside_decimals(frames: tuple[Any, Any]) -> None:
    compare(frames[0], PLAIN, literals(), raw=True)


@pytest.mark.long
def test_all_extremes(frames: tuple[Any, Any]) -> None:
    compare(frames[1], EXTREMES, extremes(), raw=False)
