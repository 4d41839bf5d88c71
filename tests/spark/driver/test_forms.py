"""Both physical forms against plain Spark: random schemas, tricky rows, random chains; values, types, order, counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.kernels.expressions.grammar import TYPES, Expression, Grammar
from tests.kernels.tables import make_table, numbers, random_rows
from tests.spark.kit import Harness, output_train, query, write_train

from freshet.model import ARRIVAL, Chain, Query, Unit, UnitResult

pytestmark = pytest.mark.spark

ROWS = 250
CHAINS = 24
FORMS = ("vectorised", "catalyst")


@dataclass(frozen=True)
class Case:
    """A chain of filters and a projection, as expressions of which other forms than the executor's are known."""

    name: str
    filters: tuple[Expression, ...]
    columns: tuple[tuple[str, Expression], ...]

    @property
    def query(self) -> Query:
        steps: list[Any] = [expression.plain() for expression in self.filters]
        if self.columns:
            steps.append([(name, expression.plain()) for name, expression in self.columns])
        return query(self.name, "s", *steps)

    @property
    def texts(self) -> list[str]:
        """What Spark is asked: predicates, columns, and errors of each of them."""
        outputs = [expression for _, expression in self.columns]
        return [
            *(expression.safe() for expression in (*self.filters, *outputs)),
            *(expression.errors() for expression in (*self.filters, *outputs)),
        ]


def _schema(random: Random) -> dict[str, str]:
    kinds = [random.choice(TYPES) for _ in range(random.randint(4, 12))]
    return {f"{'full_' * (random.random() < 0.3)}c{number}": kind for number, kind in enumerate(kinds)}


def _case(random: Random, number: int, columns: dict[str, str]) -> Case:
    grammar = Grammar(random, columns)
    filters = tuple(grammar.predicate(2) for _ in range(random.randint(0, 3)))
    outputs: list[tuple[str, Expression]] = []
    while len(outputs) < random.randint(0 if filters else 1, 3):
        expression = grammar.any(2)
        if expression.type in TYPES:
            outputs.append((f"x{len(outputs)}", expression))
    return Case(f"q{number}", filters, tuple(outputs))


def _ask(frame: DataFrame, texts: list[str]) -> list[pa.Array]:
    some = [f"{text} AS x{number}" for number, text in enumerate(texts)]
    answer = frame.orderBy(ARRIVAL).selectExpr(*some).toArrow().combine_chunks()
    return [answer.column(number).combine_chunks() for number in range(len(some))]


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.optimizer.excludedRules"):
        session.conf.set(key, str(spark.conf.get(key)))
    # Hundreds of expressions in one select take longer to compile than to interpret.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session


def _frame(session: SparkSession, path: Path, table: pa.Table) -> DataFrame:
    # A file, because Spark evaluates queries over local rows by other means than those of a job.
    pq.write_table(table, path)
    return session.read.parquet(str(path))


def _expected(case: Case, table: pa.Table, answers: list[pa.Array]) -> dict[str, Any]:
    filters, outputs = len(case.filters), len(case.columns)
    alive = list(range(table.num_rows))
    passed, errors = [], 0
    counts = [array.to_pylist() for array in answers[filters + outputs :]]
    for position in range(filters):
        errors += sum(counts[position][row] for row in alive)
        verdict = answers[position].to_pylist()
        alive = [row for row in alive if verdict[row] is True]
        passed.append(len(alive))
    for position in range(filters, filters + outputs):
        errors += sum(counts[position][row] for row in alive)
    if outputs:
        passed.append(len(alive))
        columns = answers[filters : filters + outputs]
    else:
        columns = [column.combine_chunks() for column in table.columns[:-1]]
    rows = pa.array(alive, pa.int64())
    columns = [*columns, table.column(ARRIVAL).combine_chunks()]
    return {
        "types": [column.type for column in columns],
        "columns": [numbers(column.take(rows)) for column in columns],
        "passed": passed,
        "errors": errors,
    }


def _check(expected: dict[str, Any], harness: Harness, result: UnitResult, number: int, case: Case) -> None:
    text = f"{case.name}: {[e.plain() for e in case.filters]} -> {[e.plain() for _, e in case.columns]}"
    chain = result.chains[number]
    assert chain.failure is None, text
    assert [run.rows_out for run in chain.operators] == expected["passed"], text
    assert chain.errors == expected["errors"], text
    output = harness.read(result, case.name)
    if output is None:
        assert expected["passed"][-1] == 0, text
        return
    assert output.schema.types == expected["types"], text
    assert [numbers(column.combine_chunks()) for column in output.columns] == expected["columns"], text


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_chains(seed: int, spark: SparkSession, oracle: SparkSession, tmp_path: Path):
    random = Random(seed)
    columns = _schema(random)
    table = make_table(columns, random_rows(random, columns, ROWS))
    cases = [_case(random, number, columns) for number in range(CHAINS)]
    texts = [case.texts for case in cases]
    answers = iter(_ask(_frame(oracle, tmp_path / "rows.parquet", table), [text for some in texts for text in some]))
    expected = [_expected(case, table, [next(answers) for _ in some]) for case, some in zip(cases, texts, strict=True)]
    for form in FORMS:
        with Harness(spark, tmp_path / form, vectorise=form == "vectorised") as harness:
            schemas = harness.install({"s": pa.schema(list(table.schema)[:-1])}, *(case.query for case in cases))
            names = [case.name for case in cases]
            assert {harness.executor.form(harness.network.of(name))[0] for name in names} == {form}
            train = write_train(harness.state, "s", table.slice(0, 100), table.slice(100))
            result = harness.run(harness.unit(train, *names))
            assert result.retry is None
            for number, case in enumerate(cases):
                _check(expected[number], harness, result, number, case)
                assert schemas[case.name].types == expected[number]["types"][:-1]


@pytest.mark.parametrize("form", FORMS)
def test_error_free_rows_give_what_the_users_text_gives(form: str, spark: SparkSession, tmp_path: Path):
    random = Random(11)
    columns = {
        "k": "int",
        "v": "double",
        "w": "float",
        "b": "boolean",
        "name": "string",
        "day": "date",
        "ts": "timestamp",
    }
    rows = random_rows(random, columns, ROWS)
    for row in rows:
        row["k"] = None if row["k"] is None else row["k"] % 50 + 1
        row["w"] = None if row["w"] is None else float(random.randint(1, 9))
    table = make_table(columns, rows)
    _frame(spark, tmp_path / "rows.parquet", table).createOrReplaceTempView("plain_rows")
    texts = {
        "a": (["k > 10", "v IS NOT NULL"], [("k2", "k * 2 + 1"), ("r", "v / w"), ("name", "name")]),
        "b": (["name IN ('a', 'ab', NULL) OR b"], [("m", "k % 7"), ("ts", "ts"), ("both", "b AND k < 25")]),
        "c": (["NOT (v < 1.5)"], [("v", "-v"), ("day", "day")]),
    }
    with Harness(spark, tmp_path / "state", vectorise=form == "vectorised") as harness:
        queries = [query(name, "s", *filters, outputs) for name, (filters, outputs) in texts.items()]
        harness.install({"s": pa.schema(list(table.schema)[:-1])}, *queries)
        train = write_train(harness.state, "s", table)
        result = harness.run(harness.unit(train, *texts))
        for name, (filters, outputs) in texts.items():
            where = " AND ".join(f"({text})" for text in filters)
            select = ", ".join(f"{text} AS {column}" for column, text in outputs)
            answer = spark.sql(f"SELECT {select} FROM plain_rows WHERE {where} ORDER BY {ARRIVAL}").toArrow()
            output = harness.read(result, name)
            assert output is not None
            assert output.num_rows == answer.num_rows > 0
            for place in range(answer.num_columns):
                found, wanted = output.column(place).combine_chunks(), answer.column(place).combine_chunks()
                assert found.type == wanted.type
                assert numbers(found) == numbers(wanted)
    assert sum(chain.errors for chain in result.chains) == 0


_MIDDLE = [
    ("v IS NOT NULL", [("a", "v * 2"), ("k", "k"), ("z", "k % 3")], "z = 1", [("a", "a"), ("r", "a / (k - 1)")]),
    ("k > 5", [("k", "k - 5"), ("name", "name")], "k < 40", [("name", "name"), ("k", "k")]),
    ("k > 0", [("k", "2147483647 - k + 10")], "k IS NOT NULL", [("k", "k + 1"), ("k2", "k - 1")]),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_projections_inside_a_chain_and_queues_between_its_parts(form: str, spark: SparkSession, tmp_path: Path):
    random = Random(21)
    columns = {"k": "int", "v": "double", "name": "string"}
    rows = random_rows(random, columns, ROWS)
    for row in rows:
        row["k"] = random.choice([None, *range(50)])
    table = make_table(columns, rows)
    _frame(spark, tmp_path / "rows.parquet", table).createOrReplaceTempView("middle_rows")
    with Harness(spark, tmp_path / "state", vectorise=form == "vectorised") as harness:
        queries = [query(f"q{number}", "s", *steps) for number, steps in enumerate(_MIDDLE)]
        harness.install({"s": pa.schema(list(table.schema)[:-1])}, *queries)
        train = write_train(harness.state, "s", table)
        whole = harness.run(harness.unit(train, *(f"q{number}" for number in range(len(_MIDDLE)))))
        for number, (first, inner, second, outer) in enumerate(_MIDDLE):
            name = f"q{number}"
            safe = [_try(inner), _try(outer)]
            answer = spark.sql(
                f"SELECT {safe[1]}, {ARRIVAL} FROM (SELECT {safe[0]}, {ARRIVAL} FROM middle_rows WHERE {first}) "
                f"WHERE {second} ORDER BY {ARRIVAL}"
            ).toArrow()
            expected = [numbers(column.combine_chunks()) for column in answer.columns]
            output = harness.read(whole, name)
            assert output is not None
            assert [numbers(column.combine_chunks()) for column in output.columns] == expected
            cut = _cut(harness, name, train)
            errors = 0
            for place, result in enumerate(cut):
                assert result.retry is None
                errors += result.chains[0].errors
                part = [run.rows_out for run in result.chains[0].operators]
                assert part == [run.rows_out for run in whole.chains[number].operators[2 * place : 2 * place + 2]]
            assert errors == whole.chains[number].errors
            again = harness.read(cut[-1], name)
            assert again is not None
            assert [numbers(column.combine_chunks()) for column in again.columns] == expected
    assert [chain.errors for chain in whole.chains][1] == 0
    assert [chain.errors > 0 for chain in whole.chains] == [True, False, True]


def _try(columns: list[tuple[str, str]]) -> str:
    safe = {
        "a / (k - 1)": "try_divide(a, try_subtract(k, 1))",
        "2147483647 - k + 10": "try_add(try_subtract(2147483647, k), 10)",
        "k + 1": "try_add(k, 1)",
    }
    return ", ".join(f"{safe.get(text, text)} AS {name}" for name, text in columns)


def _cut(harness: Harness, name: str, train: Any) -> list[UnitResult]:
    """The chain as two units with a queue between them."""
    nodes = harness.network.of(name)
    [edge] = harness.network.nodes[nodes[2]].edges
    first = harness.run(Unit(f"{name}-a", (Chain(nodes[:2], (train,), (edge.stream,)),)))
    middle = output_train(first, edge.stream)
    return [first, harness.run(Unit(f"{name}-b", (Chain(nodes[2:], (middle,), (name,)),)))]


@pytest.mark.parametrize("form", FORMS)
def test_empty_trains_and_trains_of_nothing_that_passes(form: str, spark: SparkSession, tmp_path: Path):
    columns = {"k": "int", "name": "string"}
    table = make_table(columns, [{"k": None, "name": "a"}, {"k": 1, "name": None}])
    with Harness(spark, tmp_path, vectorise=form == "vectorised") as harness:
        harness.install(
            {"s": pa.schema(list(table.schema)[:-1])},
            query("none", "s", "k > 5", [("k", "k")]),
            query("nulls", "s", [("k", "k"), ("name", "name")]),
            query("allnull", "s", "k IS NULL", [("k", "k")]),
        )
        names = ("none", "nulls", "allnull")
        train = write_train(harness.state, "s", table)
        empty = harness.run(harness.unit(type(train)("s", 0, 0), *names))
        assert empty.retry is None
        assert empty.files == ()
        assert [chain.rows_out for chain in empty.chains] == [0, 0, 0]
        result = harness.run(harness.unit(train, *names))
        assert [chain.rows_out for chain in result.chains] == [0, 2, 1]
        output = harness.read(result, "allnull")
        # A tuple of nothing but NULL is a tuple all the same.
        assert output is not None
        assert output.column("k").to_pylist() == [None]
