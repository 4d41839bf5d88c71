from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from freshet.kernels import Program, Unsupported, why_not
from freshet.model import ARRIVAL, Filter, Project

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("s", pa.string()), ("tags", pa.list_(pa.int32()))])


Chain = list[Filter | Project]


def _table(rows: int = 6) -> pa.Table:
    k = pa.array(range(rows), pa.int64())
    v = pa.array([None if n % 3 == 2 else n / 2 for n in range(rows)], pa.float64())
    s = pa.array([None if n % 4 == 3 else "ab"[n % 2] for n in range(rows)], pa.string())
    tags = pa.array([[n] for n in range(rows)], pa.list_(pa.int32()))
    return pa.table([k, v, s, tags, pa.array(range(100, 100 + rows), pa.int64())], names=[*SCHEMA.names, ARRIVAL])


def _run(table: pa.Table, *operators: Filter | Project) -> Any:
    [output] = Program([operators], SCHEMA).run(table)
    assert output.failure is None
    return output


def test_filters_alone_keep_all_columns_with_the_arrival_last() -> None:
    table = _table()
    output = _run(table, Filter("a", "k >= 1"), Filter("b", "s = 'b'"))
    assert output.batch.to_pylist() == [row for row in table.to_pylist() if row["k"] >= 1 and row["s"] == "b"]
    assert output.batch.schema.names[-1] == ARRIVAL
    assert output.passed == (5, 2)
    assert len(output.nanos) == 2
    assert all(spent > 0 for spent in output.nanos)


def test_the_arrival_comes_last_wherever_the_schema_has_it() -> None:
    schema = pa.schema([(ARRIVAL, pa.int64()), ("k", pa.int64())])
    program = Program([[Filter("a", "k = 2")]], schema)
    [output] = program.run(pa.table({ARRIVAL: [7, 8], "k": [1, 2]}))
    assert output.batch.to_pydict() == {"k": [2], ARRIVAL: [8]}
    assert program.schemas[0].names == ["k", ARRIVAL]


def test_a_filter_after_a_projection_sees_the_projected_columns() -> None:
    output = _run(_table(), Project("p", (("x", "k * 2"), ("tags", "tags"))), Filter("f", "x > 6"))
    assert output.batch.to_pydict() == {"x": [8, 10], "tags": [[4], [5]], ARRIVAL: [104, 105]}
    assert output.passed == (6, 2)


def test_a_projected_error_is_counted_once_and_only_for_tuples_that_arrive() -> None:
    division = Project("p", (("x", "1 / (k - 2)"),))
    assert _run(_table(), division, Filter("f", "x > 0"), Filter("g", "x < 9")).errors == 1
    assert _run(_table(), Filter("f", "k <> 2"), division).errors == 0
    assert _run(_table(), Filter("f", "1 / (k - 2) > 0"), Project("p", (("x", "1 / (k - 2)"),))).errors == 1


def test_the_right_side_of_and_counts_errors_only_where_the_left_is_not_false() -> None:
    assert _run(_table(), Filter("f", "k <> 2 AND 1 / (k - 2) > 0")).errors == 0
    assert _run(_table(), Filter("f", "1 / (k - 2) > 0 AND k <> 2")).errors == 1
    assert _run(_table(), Filter("f", "k = 2 OR 1 / (k - 2) > 0")).errors == 0


def test_chunked_and_sliced_tables_give_the_same() -> None:
    table = _table(40)
    chains: list[Chain] = [
        [
            Filter("a", f"v < {n}.5"),
            Filter("b", f"s {sign} 'a'"),
            Project("p", (("s", "s"), ("x", "v + k"), ("t", "tags"))),
        ]
        for n, sign in enumerate(("=", "<>", "<", ">", ">="))
    ]
    program = Program(chains, SCHEMA)
    whole = [output.batch.to_pylist() for output in program.run(table)]
    assert any(whole)
    pieces = [table.slice(n, 7) for n in range(0, 40, 7)]
    assert [output.batch.to_pylist() for output in program.run(pa.concat_tables(pieces))] == whole
    cut = [output.batch.to_pylist() for output in program.run(table.slice(13, 11))]
    assert cut == [[row for row in rows if 113 <= row[ARRIVAL] < 124] for rows in whole]


def test_no_rows_and_no_operators() -> None:
    chains: list[Chain] = [[], [Filter("a", "v > 1 OR s = 'a'"), Project("p", (("x", "k % 2"),))]]
    program = Program(chains, SCHEMA)
    for table in (_table(0), _table(0).schema.empty_table(), _table(3).slice(3)):
        untouched, projected = program.run(table)
        assert untouched.batch.num_rows == projected.batch.num_rows == 0
        assert (untouched.batch.schema, projected.batch.schema) == program.schemas
        assert (untouched.passed, projected.passed) == ((), (0, 0))
    assert program.run(_table())[0].batch.to_pylist() == _table().to_pylist()


def test_an_input_that_passes_whole_is_not_copied() -> None:
    table = _table()
    output = _run(table, Filter("a", "k >= 0"), Project("p", (("k", "k"), ("s", "s"))))
    for name in ("k", "s"):
        assert output.batch.column(name).buffers()[-1].address == table.column(name).chunk(0).buffers()[-1].address


def test_a_chain_that_raises_leaves_the_others_alone() -> None:
    wrong = _table().set_column(1, "v", pa.array(["x"] * 6))
    chains: list[Chain] = [
        [Filter("a", "v < 1"), Filter("b", "k > 0")],
        [Filter("a", "k > 3"), Project("p", (("k", "k"),))],
    ]
    program = Program(chains, SCHEMA)
    failed, fine = program.run(wrong)
    assert failed.failure
    assert (failed.batch.num_rows, failed.passed, failed.nanos) == (0, (0, 0), (0, 0))
    assert failed.batch.schema == program.schemas[0]
    assert fine.failure is None
    assert fine.batch.column("k").to_pylist() == [4, 5]


def test_equal_expressions_are_computed_once() -> None:
    chains: list[Chain] = [[Filter("f", "v + k > 1"), Project("p", (("k", "k"),))] for _ in range(3)]
    outputs = Program(chains, SCHEMA).run(_table())
    assert len({str(output.batch.to_pydict()) for output in outputs}) == 1
    assert [output.errors for output in outputs] == [0, 0, 0]


def test_errors_of_shared_work_count_in_every_chain() -> None:
    chains: list[Chain] = [
        [Filter("f", "1 % k = 0")],
        [Filter("f", "1 % k = 0")],
        [Filter("g", "k > 0"), Filter("f", "1 % k = 0")],
    ]
    assert [output.errors for output in Program(chains, SCHEMA).run(_table())] == [1, 1, 0]


def test_names_do_not_mind_case() -> None:
    assert _run(_table(), Filter("f", "K = 1"), Project("p", (("X", "`V`"),)), Filter("g", "x = 0.5")).passed == (
        1,
        1,
        1,
    )


@pytest.mark.parametrize("rows", [10, 1000])
@pytest.mark.parametrize("words", [2, 500])
def test_text_tested_often_enough_for_a_dictionary(rows: int, words: int) -> None:
    random = np.random.default_rng(7)
    values = [f"w{n}" if n else None for n in random.integers(0, words, rows)]
    table = pa.table({"s": pa.array(values, pa.string()), ARRIVAL: np.arange(rows)})
    tests = {
        "s = 'w1'": lambda s: s == "w1", "s <> 'w1'": lambda s: s != "w1", "s < 'w3'": lambda s: s < "w3",
        "s >= 'w3'": lambda s: s >= "w3", "s IN ('w1', 'w9')": lambda s: s in ("w1", "w9"),
        "s = 'none'": lambda s: False, "s NOT IN ('w1')": lambda s: s != "w1",
    }  # fmt: skip
    outputs = Program([[Filter("f", text)] for text in tests], table.schema).run(table)
    for test, output in zip(tests.values(), outputs, strict=True):
        assert output.batch.column("s").to_pylist() == [s for s in values if s is not None and test(s)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sha1(s) = 'A'", "function sha1"),
        ("s RLIKE 'a+'", "REGEXP_LIKE"),
        ("s LIKE s", "literal"),
        ("s LIKE 'a!b' ESCAPE '!'", "escape"),
        ("s LIKE ANY ('a', 'b')", "literal"),
        ("CASE WHEN k > 1 THEN NULL END", "CASE of NULL"),
        ("CASE WHEN k > 1 THEN 1 ELSE 'x' END = 1", "int with string"),
        ("CAST(k AS FLOAT) = 1", "CAST of bigint to float"),
        ("CAST(v AS DECIMAL(3, 1)) = 1", "CAST"),
        ("CAST(v AS STRING) = '1.0'", "CAST of double to string"),
        ("CAST(s AS FLOAT) = 1", "CAST of string to float"),
        ("round(v, 2) = 1", "round to decimals"),
        ("exp(v) > 1", "function exp"),
        ("pow(v, 3) > 1", "exponent"),
        ("substring(s, k) = ''", "literal number"),
        ("s || 1 = ''", "concat of int"),
        ("abs(s) = 1", "abs of string"),
        ("isnan(v, v)", "2 arguments"),
        ("date_trunc('eon', timestamp_micros(k)) IS NULL", "date_trunc to eon"),
        ("timestamp_micros(k) + INTERVAL 1 MONTH IS NULL", "MONTH"),
        ("year(k) = 1", "year of bigint"),
        ("k * 1.5 > 2", "decimal"),
        ("s = 1", "string with int"),
        ("k", "filter of bigint"),
        ("nothing > 1", "column nothing is not there"),
        ("t.k > 1", "qualified"),
        ("k IN (v)", "literals"),
        ("k IN (SELECT 1)", "query"),
        ("s = 'a\\d'", "backslash"),
        ("k = v IN (1)", "parentheses"),
        ("k = v < s", "parentheses"),
        ("NOT k", "NOT of bigint"),
        ("v AND true", "AND of double"),
        ("tags = tags", "array<int>"),
        ("k >", "cannot read"),
        ("s > DATE '2024-13-01'", "no date"),
        ("DATE '2024-1-1' > DATE '2024-01-01'", "spelling"),
        ("now() > 1", "function now"),
        ("v DIV 2 = 1", "DIV of double"),
        ("s = true", "string with boolean"),
    ],
)
def test_what_is_left_to_spark_and_why(text: str, reason: str) -> None:
    said = why_not([Filter("f", text)], SCHEMA)
    assert said is not None
    assert reason in said
    with pytest.raises(Unsupported):
        Program([[Filter("f", text)]], SCHEMA)


def test_why_not_of_a_chain_that_compiles_is_nothing() -> None:
    assert why_not([Filter("f", "k < 1.5 AND v BETWEEN 1 AND 2.5"), Project("p", (("d", "NULL"),))], SCHEMA) is None


def test_two_columns_of_one_name_may_pass_but_not_be_asked_for() -> None:
    twice = Project("p", (("x", "k"), ("x", "v")))
    assert _run(_table(2), twice).batch.schema.names == ["x", "x", ARRIVAL]
    assert "ambiguous" in str(why_not([twice, Filter("f", "x > 1")], SCHEMA))


def test_a_type_that_spark_has_not_may_pass_but_not_be_compared() -> None:
    schema = pa.schema([("t", pa.time64("us"))])
    assert why_not([Filter("f", "t IS NOT NULL")], schema) is None
    assert why_not([Filter("f", "t > 1")], schema) == "time64[us] with int"


def test_a_truncation_before_all_timestamps_fails_the_chain() -> None:
    table = pa.table({"k": [-(2**63), 5], ARRIVAL: [1, 2]})
    project = Project("p", (("t", "date_trunc('hour', timestamp_micros(k))"),))
    failed, fine = Program([[project], [Filter("f", "k > 0"), project]], table.schema).run(table)
    assert "OverflowError" in str(failed.failure)
    assert fine.batch.column("t").cast(pa.int64()).to_pylist() == [0]
