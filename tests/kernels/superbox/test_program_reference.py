"""Random chains over random tables against the row-by-row interpreter."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kernels.expressions.grammar import TYPES, Expression, Grammar, evaluate
from tests.kernels.tables import make_table, numbers, pool, strict

from freshet.kernels import Program
from freshet.model import ARRIVAL, Filter, Project, parse_schema

Chain = list[Expression | list[Expression]]


@st.composite
def _columns(draw: st.DrawFn) -> dict[str, str]:
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6))
    return {f"c{number}": kind for number, kind in enumerate(kinds)}


@st.composite
def _rows(draw: st.DrawFn, columns: dict[str, str]) -> list[dict[str, Any]]:
    full = draw(st.booleans())
    cells = {
        name: st.sampled_from(pool(kind)) if full else st.sampled_from([None, *pool(kind)])
        for name, kind in columns.items()
    }
    return draw(st.lists(st.fixed_dictionaries(cells), max_size=12))


def _chain(grammar: Grammar, random: Random) -> Chain:
    steps: Chain = [grammar.predicate(2) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    if random.random() < 0.8:
        columns = [grammar.any(2) for _ in range(random.choice((1, 2, 3)))]
        steps.append(columns)
        if random.random() < 0.4:
            after = Grammar(random, {f"p{number}": column.type for number, column in enumerate(columns)})
            steps.append(after.predicate(1))
    return steps


def _operators(chain: Chain) -> list[Filter | Project]:
    return [
        Filter(f"f{n}", step.plain())
        if isinstance(step, Expression)
        else Project(f"f{n}", tuple((f"p{i}", column.plain()) for i, column in enumerate(step)))
        for n, step in enumerate(chain)
    ]


def _expected(chain: Chain, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[int], int]:
    errors, passed = 0, []
    for step in chain:
        kept = []
        for row in rows:
            if isinstance(step, Expression):
                answer, count = evaluate(step, row)
                errors += count
                if answer is True:
                    kept.append(row)
                continue
            made = {ARRIVAL: row[ARRIVAL]}
            for number, column in enumerate(step):
                made[f"p{number}"], count = evaluate(column, row)
                errors += count
            kept.append(made)
        rows = kept
        passed.append(len(rows))
    return rows, passed, errors


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data(), st.randoms(use_true_random=False))
def test_chains_equal_the_interpreter(data: st.DataObject, random: Random) -> None:
    columns = data.draw(_columns())
    rows = data.draw(_rows(columns))
    chains = [_chain(Grammar(random, columns), random) for _ in range(4)]
    table = make_table(columns, rows)
    cut = random.randint(0, len(rows))
    chunked = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    program = Program([_operators(chain) for chain in chains], table.schema)
    for outputs in (program.run(table), program.run(chunked)):
        for chain, output, schema in zip(chains, outputs, program.schemas, strict=True):
            arrived = [{**row, ARRIVAL: 1000 + number} for number, row in enumerate(rows)]
            expected, passed, errors = _expected(chain, arrived)
            assert output.failure is None
            assert (output.passed, output.errors) == (tuple(passed), errors), [
                step.predicate if isinstance(step, Filter) else step for step in _operators(chain)
            ]
            assert output.batch.schema == schema
            output.batch.validate(full=True)
            for name in schema.names:
                assert numbers(output.batch.column(name)) == [strict(_plain(row[name])) for row in expected]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


@settings(max_examples=100, deadline=None)
@given(_columns(), st.randoms(use_true_random=False))
def test_output_types_are_those_of_the_promotion_rules(columns: dict[str, str], random: Random) -> None:
    expression = Grammar(random, columns).any(3)
    schema = make_table(columns, []).schema
    [output] = Program([[Project("p", (("x", expression.plain()),))]], schema).schemas
    assert output == parse_schema(f"x {expression.type}").append(pa.field(ARRIVAL, pa.int64()))
