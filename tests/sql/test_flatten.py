from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Filter, Project
from freshet.sql import SqlError, flatten
from freshet.sql.lower.flatten import Flat

COLUMNS = ("a", "b", "c")
TERMS = ["a", "b", "c", "a + b", "b - c", "-a", "a * (b + 1)", "CASE WHEN a > b THEN a ELSE c END", "coalesce(a, c)"]
PREDICATES = ["a > 0", "a - b < c", "NOT a = b", "a > 1 OR b < 2", "b BETWEEN a AND c", "-c < a * b"]

filters = st.builds(Filter, st.just("f"), st.sampled_from(PREDICATES))
projects = st.tuples(*(st.sampled_from(TERMS) for _ in COLUMNS)).map(
    lambda terms: Project("p", tuple(zip(COLUMNS, terms, strict=True)))
)
chains = st.lists(st.one_of(filters, projects), max_size=5)


def as_chain(flat: Flat) -> list[Filter | Project]:
    return [*(Filter("f", predicate) for predicate in flat.predicates), Project("p", flat.columns)]


@given(chains, st.data())
@settings(max_examples=100, deadline=None)
def test_splitting_changes_nothing(chain: list[Filter | Project], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(chain)))
    first = flatten(chain[:cut], COLUMNS)
    assert flatten([*as_chain(first), *chain[cut:]], COLUMNS) == flatten(chain, COLUMNS)


@given(chains)
@settings(max_examples=60, deadline=None)
def test_flat_form_gives_the_same_rows(chain: list[Filter | Project]) -> None:
    rows = "(VALUES (1, 2, 3), (-1, 0, 2), (2, 2, 2), (NULL, 1, 0), (5, -3, NULL)) AS s(a, b, c)"
    nested = f"SELECT * FROM {rows}"
    for number, operator in enumerate(chain):
        if isinstance(operator, Filter):
            nested = f"SELECT * FROM ({nested}) AS t{number} WHERE {operator.predicate}"
        else:
            columns = ", ".join(f"{text} AS {name}" for name, text in operator.columns)
            nested = f"SELECT {columns} FROM ({nested}) AS t{number}"
    flat = flatten(chain, COLUMNS)
    where = " AND ".join(f"({predicate})" for predicate in flat.predicates) or "TRUE"
    columns = ", ".join(f"{text} AS {name}" for name, text in flat.columns)
    direct = f"SELECT {columns} FROM {rows} WHERE {where}"
    connection = duckdb.connect(config={"threads": "1"})
    assert connection.execute(direct).fetchall() == connection.execute(nested).fetchall()


def test_chain_without_projection_gives_out_its_input() -> None:
    flat = flatten([Filter("f", "a.x > 1")], ["a", "b c", "order", "__arrival"])
    assert flat == Flat(("a.x > 1",), (("a", "a"), ("b c", "`b c`"), ("order", "`order`")))


def test_arrival_passes_through_projections() -> None:
    chain: list[Filter | Project] = [Project("p", (("w", "v + 1"),)), Filter("f", "TIMESTAMP_MICROS(__arrival) > w")]
    assert flatten(chain, ["v"]).predicates == ("TIMESTAMP_MICROS(__arrival) > (v + 1)",)


def test_struct_and_lambda_in_a_chain() -> None:
    chain: list[Filter | Project] = [
        Project("p", (("s", "named_struct('x', v)"), ("l", "array(v)"))),
        Filter("f", "s.x > 1 AND EXISTS(l, v -> v > s.x)"),
    ]
    assert flatten(chain, ["v"]).predicates == (
        "NAMED_STRUCT('x', v).x > 1 AND EXISTS(ARRAY(v), v_ -> v_ > NAMED_STRUCT('x', v).x)",
    )


def test_column_that_is_not_there() -> None:
    with pytest.raises(SqlError, match=r"q\.filter_1 reads column v, which is not there"):
        flatten([Project("p", (("w", "v"),)), Filter("q.filter_1", "v > 1")], ["v"])
