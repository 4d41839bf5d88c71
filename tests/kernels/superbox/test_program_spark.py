"""Random chains against Spark itself: values, types and errors, row by row."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernels.expressions.grammar import LITERALS, NUMERIC, TYPES, Expression, Grammar, common
from tests.kernels.expressions.test_semantics import CASES, TABLE
from tests.kernels.tables import make_table, numbers, random_rows, strict

from freshet.kernels import Program
from freshet.model import ARRIVAL, Filter, Project
from freshet.sql import error_count, safe

pytestmark = pytest.mark.spark

COLUMNS = {**{f"c_{kind}": kind for kind in TYPES}, **{f"full_{kind}": kind for kind in TYPES}}
ROWS = random_rows(Random(5), COLUMNS, 300)
CHAINS = 100
OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = spark.newSession()
    settings = {
        "spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC", "spark.sql.codegen.wholeStage": "false",
    }  # fmt: skip
    # By this rule (a * 5) * b becomes (a * b) * 5, which overflows for other rows: the answer would hang on the plan.
    settings["spark.sql.optimizer.excludedRules"] = f"{OPTIMIZER}.ReorderAssociativeOperator"
    for key, value in settings.items():
        own.conf.set(key, value)
    return own


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return make_table(COLUMNS, ROWS)


@pytest.fixture(scope="module")
def frame(session: Any, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    # A file, because Spark evaluates queries over local rows by other means than those of a job.
    path: Path = tmp_path_factory.mktemp("kernels") / "rows.parquet"
    pq.write_table(table, path)
    return session.read.parquet(str(path))


def ask(frame: Any, texts: list[str]) -> list[pa.Array]:
    """The columns that Spark computes, in a few jobs."""
    columns: list[pa.Array] = []
    for first in range(0, len(texts), 150):
        some = [f"{text} AS x{number}" for number, text in enumerate(texts[first : first + 150])]
        answer = frame.orderBy(ARRIVAL).selectExpr(*some).toArrow().combine_chunks()
        columns += [answer.column(number).combine_chunks() for number in range(len(some))]
    return columns


def test_projections(frame: Any, table: pa.Table) -> None:
    random = Random(1)
    grammar = Grammar(random, COLUMNS)
    expressions = [grammar.any(3) for _ in range(120)] + [grammar.predicate(3) for _ in range(60)]
    chains = [[Project("p", (("x", e.plain()),))] for e in expressions]
    outputs = Program(chains, table.schema).run(table)
    answers = ask(frame, [e.safe() for e in expressions])
    counts = ask(frame, [e.errors() for e in expressions])
    for expression, output, answer, count in zip(expressions, outputs, answers, counts, strict=True):
        assert output.failure is None, expression.plain()
        column = output.batch.column(0)
        assert column.type == answer.type, expression.plain()
        assert numbers(column) == numbers(answer), expression.plain()
        assert output.errors == sum(count.to_pylist()), expression.plain()


def test_chains(frame: Any, table: pa.Table) -> None:
    random = Random(2)
    grammar = Grammar(random, COLUMNS)
    chains = [([grammar.predicate(2) for _ in range(2)], [grammar.any(2) for _ in range(2)]) for _ in range(CHAINS)]
    program = Program([_operators(*chain) for chain in chains], table.schema)
    parts = [part for filters, columns in chains for part in (*filters, *columns)]
    answers = iter(ask(frame, [part.safe() for part in parts]))
    counts = iter(ask(frame, [part.errors() for part in parts]))
    for (filters, columns), output in zip(chains, program.run(table), strict=True):
        alive, passed, errors = list(range(len(ROWS))), [], 0
        for _ in filters:
            truth, count = next(answers).to_pylist(), next(counts).to_pylist()
            errors += sum(count[row] for row in alive)
            alive = [row for row in alive if truth[row] is True]
            passed.append(len(alive))
        for number, _ in enumerate(columns):
            answer, count = numbers(next(answers)), next(counts).to_pylist()
            errors += sum(count[row] for row in alive)
            assert numbers(output.batch.column(number)) == [answer[row] for row in alive]
        assert output.passed == (*passed, passed[-1])
        assert output.errors == errors


def _operators(filters: list[Expression], columns: list[Expression]) -> list[Filter | Project]:
    named = tuple((f"x{number}", column.plain()) for number, column in enumerate(columns))
    return [*(Filter("f", part.plain()) for part in filters), Project("p", named)]


def _every_pair() -> list[Expression]:
    """Every operator with every pair of numeric types, and every literal."""
    pairs = [
        Expression(op, "double" if op == "/" else common(left, right), tuple(
            Expression("col", kind, text=f"full_{kind}") for kind in (left, right)
        ))
        for op in "+-*/%" for left in NUMERIC for right in NUMERIC
    ]  # fmt: skip
    spelled = [
        Expression("lit", kind, text=text)
        for kind, literals in LITERALS.items()
        for text, _ in literals
        if kind == "string" or text[0] != "'"
    ]
    return pairs + spelled


def test_every_operator_type_and_literal(frame: Any, table: pa.Table) -> None:
    expressions = _every_pair()
    chains = [[Project("p", (("x", e.plain()),))] for e in expressions]
    outputs = Program(chains, table.schema).run(table)
    for expression, output, answer in zip(
        expressions, outputs, ask(frame, [e.safe() for e in expressions]), strict=True
    ):
        column = output.batch.column(0)
        assert column.type == answer.type, expression.plain()
        assert numbers(column) == numbers(answer), expression.plain()


def test_the_answers_of_test_semantics_are_those_of_spark(session: Any, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    rows = session.read.parquet(str(tmp_path / "rows.parquet"))
    answers = ask(rows, [safe(text) for text, _, _ in CASES])
    counts = ask(rows, [error_count(text) for text, _, _ in CASES])
    for (text, expected, errors), answer, count in zip(CASES, answers, counts, strict=True):
        assert numbers(answer) == [strict(value) for value in expected], text
        assert sum(count.to_pylist()) == errors, text


def test_arrival_as_a_time(frame: Any, table: pa.Table) -> None:
    text = f"timestamp_micros({ARRIVAL})"
    [output] = Program([[Filter("f", f"{text} > c_timestamp"), Project("p", (("t", text),))]], table.schema).run(table)
    expected = frame.where(f"{text} > c_timestamp").orderBy(ARRIVAL).selectExpr(f"{text} AS t").toArrow()
    assert output.batch.column("t").to_pylist() == expected.column("t").to_pylist()
    assert output.batch.schema.field("t").type == expected.schema.field("t").type
