"""Chains that project alike are projected together, and give what each gives alone."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from tests.kernels.expressions.grammar import TYPES, Grammar
from tests.kernels.tables import make_table, random_rows

from freshet.kernels import ChainOutput, Program
from freshet.kernels.superbox import outputs
from freshet.model import ARRIVAL, Filter, Project

Chain = list[Filter | Project]
COLUMNS = {f"c_{kind}": kind for kind in TYPES}


def _same(one: ChainOutput, other: ChainOutput) -> bool:
    one.batch.validate(full=True)
    nulls_apart = [str(batch.to_pylist()) for batch in (one.batch, other.batch)]
    return (one.passed, one.errors, one.failure, *nulls_apart[:1]) == (
        other.passed, other.errors, other.failure, *nulls_apart[1:],
    )  # fmt: skip


@pytest.mark.parametrize("most_rows", [1, 300, 1 << 16])
def test_together_as_alone(most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_MOST_ROWS", most_rows)
    random = Random(5)
    table = make_table(COLUMNS, random_rows(random, COLUMNS, 120))
    grammar = Grammar(random, COLUMNS)
    projections = [Project("p", tuple((f"x{n}", grammar.any(2).plain()) for n in range(3))) for _ in range(4)]
    chains: list[Chain] = []
    for number in range(60):
        filters: Chain = [Filter("f", grammar.predicate(2).plain()) for _ in range(number % 3)]
        chains.append(filters if number % 5 == 4 else [*filters, projections[number % 5]])
    together = Program(chains, table.schema).run(table)
    assert any(0 < output.batch.num_rows < table.num_rows for output in together)
    assert any(output.errors for output in together)
    for chain, output in zip(chains, together, strict=True):
        [alone] = Program([chain], table.schema).run(table)
        assert _same(output, alone), chain
        assert len(output.nanos) == len(chain)


def test_one_that_raises_does_not_take_the_others_of_its_group_along() -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.float64())])
    project = Project("p", (("x", "v + 1"),))
    chains: list[Chain] = [[Filter("f", "k > 1"), project], [Filter("f", "v > 1"), project], [Filter("f", "k > 2")]]
    chains.append([Filter("f", "k < 2")])
    wrong = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"], ARRIVAL: [7, 8, 9]})
    one, two, three, four = Program(chains, schema).run(wrong)
    assert one.failure
    assert two.failure
    assert three.failure
    assert four.failure
    narrow: list[Chain] = [[Filter("f", f"k > {n}"), Project("p", (("k", "k"),))] for n in range(3)]
    outputs_of = Program([*narrow, chains[1]], schema).run(wrong)
    assert [output.failure is None for output in outputs_of] == [True, True, True, False]
    assert [output.batch.column("k").to_pylist() for output in outputs_of[:3]] == [[1, 2, 3], [2, 3], [3]]
