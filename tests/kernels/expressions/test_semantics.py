"""Spark's rules one by one; test_program_spark asks Spark the same questions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.kernels.tables import INF, NAN, numbers, strict

from freshet.kernels import Program
from freshet.model import ARRIVAL, Project

MIN, MAX = -(2**63), 2**63 - 1
TABLE = pa.table(
    {
        "k": pa.array([MIN, -7, 0, None, MAX], pa.int64()),
        "b": pa.array([-128, -7, 0, None, 127], pa.int8()),
        "v": pa.array([NAN, INF, -0.0, None, 1.5], pa.float64()),
        "f": pa.array([NAN, 0.1, -0.0, None, 1.5], pa.float32()),
        "t": pa.array([True, False, True, None, False], pa.bool_()),
        "s": pa.array(["", "a", "é", None, "b"], pa.string()),
        ARRIVAL: pa.array(range(5), pa.int64()),
    }
)
ALL = [True, True, True, None, True]


CASES: list[tuple[str, list[Any], int]] = [
    ("v > 1e308", [True, True, False, None, False], 0),
    ("v >= 1.5", [True, True, False, None, True], 0),
    ("v < 1e308", [False, False, True, None, True], 0),
    ("v = v", ALL, 0),
    ("v < f", [False, False, False, None, False], 0),
    ("v > f", [False, True, False, None, False], 0),
    ("v = 0", [False, False, True, None, False], 0),
    ("v <=> v", [True] * 5, 0),
    ("v <=> NULL", [False, False, False, True, False], 0),
    ("v IN (1.5, NULL)", [None, None, None, None, True], 0),
    ("v NOT IN (1.5, NULL)", [None, None, None, None, False], 0),
    ("k IN (0, -7.0, 0.5)", [False, True, True, None, False], 0),
    ("s IN ('a', NULL)", [None, True, None, None, None], 0),
    ("f = 0.1", [False, False, False, None, False], 0),
    ("f = 0.1F", [False, True, False, None, False], 0),
    ("s > 'b'", [False, False, True, None, False], 0),
    ("b < 127.5", ALL, 0),
    ("b = 300", [False, False, False, None, False], 0),
    ("b >= -128.9", ALL, 0),
    ("k < 9223372036854775807.5", [True] * 5, 0),
    ("b >= 9223372036854775808", [False] * 5, 0),
    ("-9223372036854775809 < k", [True] * 5, 0),
    ("k <> 9223372036854775808", ALL, 0),
    ("k BETWEEN 9223372036854775808 AND 1", [False] * 5, 0),
    ("k > -9223372036854775808.0", [False, True, True, None, True], 0),
    ("b < 300.5", ALL, 0),
    ("-k >= 9223372036854775808", [False] * 5, 1),
    ("k = 9223372036854775807D", [False, False, False, None, True], 0),
    ("k % -1", [0, 0, 0, None, 0], 0),
    ("b % CAST(-1 AS TINYINT)", [0, 0, 0, None, 0], 0),
    ("k % 4", [0, -3, 0, None, 3], 0),
    ("4 % b", [4, 4, None, None, 4], 1),
    ("k % 0", [None] * 5, 4),
    ("v % 0", [None] * 5, 4),
    ("v / 0.0", [None] * 5, 4),
    ("1 / k", [1 / MIN, 1 / -7, None, None, 1 / MAX], 1),
    ("v % 1", [NAN, NAN, -0.0, None, 0.5], 0),
    ("-k", [None, 7, 0, None, -MAX], 1),
    ("-b", [None, 7, 0, None, -127], 1),
    ("-v", [NAN, -INF, 0.0, None, -1.5], 0),
    ("k + 1", [MIN + 1, -6, 1, None, None], 1),
    ("k - 1", [None, -8, -1, None, MAX - 1], 1),
    ("k * -1", [None, 7, 0, None, -MAX], 1),
    ("-1 * k", [None, 7, 0, None, -MAX], 1),
    ("b + 1", [-127, -6, 1, None, 128], 0),
    ("b + b", [None, -14, 0, None, None], 2),
    ("k + NULL", [None] * 5, 0),
    ("t AND NULL", [None, False, None, None, False], 0),
    ("t OR NULL", [True, None, True, None, None], 0),
    ("NOT t", [False, True, False, None, True], 0),
    ("t IS NOT TRUE", [False, True, False, True, True], 0),
    ("t < true", [False, True, False, None, True], 0),
    ("k BETWEEN NULL AND -1", [None, None, False, None, False], 0),
    ("1 / k BETWEEN -1 AND 1", [True, True, None, None, True], 1),
    ("1 BETWEEN 2 AND 1 / k", [False, False, False, False, False], 1),
    ("t AND 1 % b = 1", [True, False, None, None, False], 1),
    ("NOT t OR 1 % b = 1", [True, True, None, None, True], 1),
    ("(-k) IS NULL", [True, False, False, True, False], 1),
    ("CASE WHEN b = 0 THEN 0 ELSE 1 % b END", [1, 1, 0, None, 1], 0),
    ("CASE 1 % b WHEN 1 THEN 'one' END", ["one", "one", None, None, "one"], 1),
    ("IF(t, -b, 1 % b)", [None, 1, 0, None, 1], 1),
    ("COALESCE(1 % b, -1)", [1, 1, -1, -1, 1], 1),
    ("COALESCE(b, 1 % b)", [-128, -7, 0, None, 127], 0),
    ("NULLIF(1 % b, 1)", [None, None, None, None, None], 1),
    ("NVL2(b, 1, 2)", [1, 1, 1, 2, 1], 0),
    ("CAST(k AS INT)", [None, -7, 0, None, None], 2),
    ("CAST(v AS TINYINT)", [None, None, 0, None, 1], 2),
    ("TRY_CAST(v AS TINYINT)", [None, None, 0, None, 1], 0),
    ("CAST(9.223372036854775808E18 AS BIGINT) + b", [MAX - 128, MAX - 7, MAX, None, None], 1),
    ("CAST(t AS DOUBLE)", [1.0, 0.0, 1.0, None, 0.0], 0),
    ("CAST(v AS BOOLEAN)", [True, True, False, None, True], 0),
    ("CAST(k AS STRING)", [str(MIN), "-7", "0", None, str(MAX)], 0),
    ("CAST(s AS INT)", [None, None, None, None, None], 4),
    ("abs(b)", [None, 7, 0, None, 127], 1),
    ("ceil(v)", [0, None, 0, None, 2], 1),
    ("floor(-v)", [0, None, 0, None, -2], 1),
    ("round(v)", [NAN, INF, 0.0, None, 2.0], 0),
    ("sign(v)", [NAN, 1.0, -0.0, None, 1.0], 0),
    ("sqrt(k)", [NAN, NAN, 0.0, None, 3037000499.97605], 0),
    ("isnan(v)", [True, False, False, False, False], 0),
    ("greatest(v, f)", [NAN, INF, -0.0, None, 1.5], 0),
    ("least(v, 0D)", [0.0, 0.0, -0.0, 0.0, 0.0], 0),
    ("k DIV b", [MIN // -128, 1, None, None, MAX // 127], 1),
    ("upper(s)", ["", "A", "É", None, "B"], 0),
    ("length(s || 'é')", [1, 2, 2, None, 2], 0),
    ("substring(concat('xyz', s), -3, 2)", ["xy", "yz", "yz", None, "yz"], 0),
    ("right(s, 1)", ["", "a", "é", None, "b"], 0),
    ("instr(concat('é', s), 'a')", [0, 2, 0, None, 0], 0),
    ("s LIKE '_'", [False, True, True, None, True], 0),
    ("s NOT LIKE '%a%'", [True, False, True, None, True], 0),
    ("year(timestamp_micros(b))", [1969, 1969, 1970, None, 1970], 0),
    ("second(timestamp_micros(b))", [59, 59, 0, None, 0], 0),
    (
        "unix_micros(CAST(date_add(DATE '1970-01-01', 106751991 + b) AS TIMESTAMP))",
        [(106751991 + b) * 86400000000 for b in (-128, -7, 0)] + [None, None],
        1,
    ),
    ("unix_seconds(timestamp_micros(b))", [-1, -1, 0, None, 0], 0),
    ("unix_micros(timestamp_micros(k) + INTERVAL 1 SECOND)", [MIN + 10**6, 10**6 - 7, 10**6, None, None], 1),
    ("unix_micros(date_trunc('week', timestamp_micros(b)))", [-259200000000] * 3 + [None, -259200000000], 0),
]


@pytest.mark.parametrize(("text", "expected", "errors"), CASES)
def test_answers(text: str, expected: list[Any], errors: int) -> None:
    [output] = Program([[Project("p", (("x", text),))]], TABLE.schema).run(TABLE)
    assert output.failure is None
    assert numbers(output.batch.column("x")) == [strict(value) for value in expected]
    assert output.errors == errors
