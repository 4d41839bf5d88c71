"""Random chains with functions, casts and conditions against Spark itself: values, types and errors, row by row."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernels.expressions.calls import Calls
from tests.kernels.expressions.grammar import TYPES
from tests.kernels.superbox.test_program_spark import ask, session  # noqa: F401
from tests.kernels.tables import make_table, numbers, random_rows

from freshet.kernels import Program
from freshet.model import ARRIVAL, Filter, Project
from freshet.sql import error_count, safe
from freshet.sql.parse.text import parse_expression, to_sql

pytestmark = pytest.mark.spark

COLUMNS = {**{f"c_{kind}": kind for kind in TYPES}, "full_double": "double", "full_int": "int", "odd": "string"}
TEXTS = [
    None, "1", " -7 ", "+0012", "1.5", "", "x", "1e3", "NaN", "-inf", "99999999999999999999", "0x1p3", "1d", "\x7f5",
    "٣", "2147483648", "-128", ".5", "5.", "Infinity", "1_0", "  a b ", "ß", "ŉ", "İ", "ΑΣ", "straße a", "a\nb", "100%",
]  # fmt: skip


def rows() -> pa.Table:
    random = Random(11)
    made = random_rows(random, COLUMNS, 250)
    for row in made:
        row["odd"] = random.choice(TEXTS)
    return make_table(COLUMNS, made)


def written(text: str) -> str:
    """As queries come to the kernels: in the spelling of freshet.sql."""
    return to_sql(parse_expression(text))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return rows()


@pytest.fixture(scope="module")
def frame(session: Any, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: F811
    path: Path = tmp_path_factory.mktemp("calls") / "rows.parquet"
    pq.write_table(table, path)
    return session.read.parquet(str(path))


def test_projections(frame: Any, table: pa.Table) -> None:
    grammar = Calls(Random(3), COLUMNS)
    texts = [written(grammar.any(3).plain()) for _ in range(200)]
    outputs = Program([[Project("p", (("x", text),))] for text in texts], table.schema).run(table)
    answers = ask(frame, [safe(text) for text in texts])
    counts = ask(frame, [error_count(text) for text in texts])
    for text, output, answer, count in zip(texts, outputs, answers, counts, strict=True):
        assert output.failure is None, text
        column = output.batch.column(0)
        column.validate(full=True)
        assert column.type == answer.type, text
        assert numbers(column) == numbers(answer), text
        assert output.errors == sum(count.to_pylist()), text


def test_chains(frame: Any, table: pa.Table) -> None:
    grammar = Calls(Random(4), COLUMNS)
    drawn = [(grammar.predicate(2), grammar.predicate(3), grammar.any(2)) for _ in range(60)]
    chains = [tuple(written(part.plain()) for part in chain) for chain in drawn]
    operators: list[list[Filter | Project]] = [
        [Filter("f", one), Filter("g", two), Project("p", (("x", column),))] for one, two, column in chains
    ]
    answers = iter(ask(frame, [safe(text) for chain in chains for text in chain]))
    counts = iter(ask(frame, [error_count(text) for chain in chains for text in chain]))
    for chain, output in zip(chains, Program(operators, table.schema).run(table), strict=True):
        alive, errors = list(range(table.num_rows)), 0
        for _ in range(2):
            truth, count = next(answers).to_pylist(), next(counts).to_pylist()
            errors += sum(count[row] for row in alive)
            alive = [row for row in alive if truth[row] is True]
        answer, count = numbers(next(answers)), next(counts).to_pylist()
        errors += sum(count[row] for row in alive)
        assert numbers(output.batch.column(0)) == [answer[row] for row in alive], chain
        assert output.errors == errors, chain


def test_the_case_of_every_character(session: Any, tmp_path: Path) -> None:  # noqa: F811
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    table = pa.table({"s": characters, ARRIVAL: range(len(characters))})
    pq.write_table(table, tmp_path / "rows.parquet")
    columns = (("u", "upper(s)"), ("l", "lower(concat('A', s))"))
    [output] = Program([[Project("p", columns)]], table.schema).run(table)
    answer = session.read.parquet(str(tmp_path / "rows.parquet")).orderBy(ARRIVAL)
    for (name, text), made in zip(columns, output.batch.columns, strict=False):
        assert made.equals(answer.selectExpr(f"{text} AS x").toArrow().column(0).combine_chunks()), name
