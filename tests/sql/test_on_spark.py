"""What is said of expressions without Spark, held against Spark itself."""

from __future__ import annotations

import logging
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from freshet.model import Project, parse_schema
from freshet.model.schema import type_text
from freshet.sql import SqlTyper, build_query, error_count, safe
from freshet.sql.check.types import is_known

# Several hundred small queries: long on a busy machine.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCHEMA = parse_schema(
    "id int, t tinyint, a int, b int, l bigint, f double, r float, s string, d date, ts timestamp, "
    "arr array<int>, mp map<string, int>, x decimal(38,18), y decimal(5,2), ok boolean"
)
TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)
ROWS: list[tuple[Any, ...]] = [
    (0, 1, 7, 2, 10, 1.5, 2.5, "5", date(2026, 1, 31), TIME, [1, 2, 3], {"k": 1},
     Decimal("1.5"), Decimal("2.25"), True),
    (1, 0, 1, 0, 0, 0.0, 0.0, "abc", date(2024, 2, 29), TIME, [], {}, Decimal(0), Decimal(0), False),
    (2, -128, -(2**31), -1, -(2**63), -0.0, -0.0, "2026-02-30", date(100, 1, 1), TIME, [4], {"z": 2},
     Decimal("-99999999999999999999.5"), Decimal("-999.99"), True),
    (3, 127, 2**31 - 1, 1, 2**63 - 1, math.inf, math.inf, "true", date(9998, 12, 31), TIME, [5, 6], {"k": 9},
     Decimal("99999999999999999999.5"), Decimal("999.99"), None),
    (4, None, None, None, None, None, None, None, None, None, None, None, None, None, None),
    (5, -1, 3, -1, 2**40, math.nan, math.nan, "1.25", date(2026, 5, 1), TIME, [7, 8, 9], {"k": 3},
     Decimal("0.000000000000000001"), Decimal("0.01"), False),
]  # fmt: skip

EXPRESSIONS = """
a + b
a - b
a * b
a / b
a % b
mod(l, b)
pmod(a, b)
l + 1
l * 2
t + t
t * t
-t
-a
-l
-f
-x
-y
abs(t)
abs(l)
abs(f)
a div b
l div b
t div b
div(l, b)
f / f
f % b
r + a
r * t
l / b
x + y
x * x
x / y
x % y
x - 1
y * 1.5
a + 1.5
a * 0.1
y / 3
a / 2.0
f * 1.5
-9223372036854775808L + l
CAST(s AS INT)
CAST(s AS DATE)
CAST(s AS BOOLEAN)
CAST(f AS INT)
CAST(l AS INT)
CAST(a AS TINYINT)
CAST(x AS DECIMAL(5, 2))
int(s)
double(s)
CAST(a AS STRING)
s::double
s > 5
s = a
s < f
s = d
s >= ts
s = ok
s IN (1, 2, 5)
a BETWEEN s AND 10
arr[0]
arr[a]
arr[b]
element_at(arr, 2)
element_at(arr, b)
mp['k']
mp[s]
element_at(mp, 'k')
to_date(s)
to_date(s, 'yyyy-MM-dd')
to_timestamp(s)
make_date(2026, a, 1)
make_timestamp(2026, a, 1, 0, 0, 0)
to_number(s, '999')
d + INTERVAL 1 MONTH
ts + INTERVAL 10 SECONDS
ts - INTERVAL 1 DAY 2 HOURS
d - d
ts - ts > INTERVAL 1 DAY
d + 1
- (a + b)
(a + b) * (a - b)
a / b + CAST(s AS INT)
CASE WHEN b <> 0 THEN a / b ELSE -1 END
CASE WHEN a / b > 1 THEN l + l WHEN ok THEN t * t ELSE a % b END
CASE b WHEN 0 THEN 0 WHEN 1 THEN a + 1 ELSE a / b END
IF(b = 0, NULL, a / b)
IF(ok, a / b, a * b)
coalesce(a / b, l + l, 0)
nvl(a % b, 1)
nvl2(a, l + 1, b / b)
nullif(a / b, 2)
ok AND a / b > 1
ok OR a / b > 1
b <> 0 AND a / b > 1
b = 0 OR a / b > 1
NOT (a / b > 1)
a / b IS NULL
a <=> b
(a / b) <=> 1
greatest(a, b / b)
length(s) + a
concat(s, 'it''s', "x""y", 'tab\\t')
s || a
s LIKE '2%' OR s RLIKE '^\\\\d+$'
upper(substring(s, 1, 2))
trim(BOTH 'a' FROM s)
position('b' IN s)
extract(YEAR FROM d)
year(d) + month(d)
date_trunc('hour', ts)
date_sub(d, 3)
datediff(day, ts, ts)
timestampadd(MINUTE, 3, ts)
date_format(ts, 'yyyy')
named_struct('p', a, 'q', s).q
array(a, b)[1]
size(arr)
transform(arr, e -> e + 1)
filter(arr, e -> e > b)
aggregate(arr, 0, (acc, e) -> acc + e)
exists(arr, e -> e > 1)
shiftleft(a, 2) & b | 3
a << 2
~a
1e3 * a
sqrt(f)
round(f)
round(y, 1)
ceil(f)
floor(f)
pow(f, 2)
hash(a)
sha2(s, 256)
try_add(a, b)
TRY_CAST(s AS INT)
s IS DISTINCT FROM 'abc'
a NOT IN (1, 7)
NOT a BETWEEN 1 AND 5
ok IS TRUE
ok IS NOT FALSE
isnan(f)
bround(f, 1)
now() > ts
current_date() > d
localtimestamp IS NULL
unix_timestamp() > l
least(t, a, f)
least(a, 1.5)
CASE WHEN ok THEN a END
CASE WHEN ok THEN y ELSE a END
IF(ok, NULL, r)
""".strip().splitlines()


@pytest.fixture(scope="module")
def table(spark: Any) -> Any:
    # Spark logs every error that it raises; here they are raised on purpose.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    columns = [pa.array(values, field.type) for values, field in zip(zip(*ROWS, strict=True), SCHEMA, strict=True)]
    arrivals = pa.array([1_769_860_800_000_000] * len(ROWS), pa.int64())
    data = pa.Table.from_arrays([*columns, arrivals], names=[*SCHEMA.names, "__arrival"])
    return spark.createDataFrame(data)


def normalised(expression: str) -> str:
    query = build_query("q", f"SELECT {expression} AS value FROM s", {"s": SCHEMA})
    (operator,) = query.graph.operators.values()
    assert isinstance(operator, Project)
    return operator.columns[0][1]


def as_spark_reads(expression: str) -> str:
    """The user's text with the present time put in, which is the one thing that Freshet changes."""
    arrival = "timestamp_micros(__arrival)"
    for call, meant in {
        "now()": arrival,
        "current_date()": f"cast({arrival} as date)",
        "localtimestamp": f"cast({arrival} as timestamp_ntz)",
        "unix_timestamp()": f"unix_timestamp({arrival})",
    }.items():
        expression = expression.replace(call, meant)
    return expression


def plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def evaluate(table: Any, expressions: list[str]) -> list[list[Any]]:
    """Rows of values, the expressions side by side in one query."""
    named = [f"{expression} AS c{number}" for number, expression in enumerate(expressions)]
    return [[plain(value) for value in row] for row in table.selectExpr(*named).collect()]


def raises(row: Any, expression: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        row.selectExpr(f"{expression} AS value").collect()
    except PySparkException:
        return True
    return False


def test_safe_forms_agree_with_spark(table: Any) -> None:
    """Where Spark gives a value, so does the safe form, and nothing is counted; where Spark raises, it is counted."""
    theirs = [as_spark_reads(expression) for expression in EXPRESSIONS]
    texts = [normalised(expression) for expression in EXPRESSIONS]
    values = evaluate(table, [safe(text) for text in texts])
    counts = evaluate(table, [error_count(text) for text in texts])
    wrong = []
    for number in range(len(ROWS)):
        row = table.filter(f"id = {number}")
        sound = [place for place, count in enumerate(counts[number]) if count == 0]
        # Spark raises here, with the expression in its message, if an error was not counted.
        (expected,) = evaluate(row, [theirs[place] for place in sound])
        for place, value in zip(sound, expected, strict=True):
            if repr(value) != repr(values[number][place]):
                found = f"Spark has {value!r}, the safe form {values[number][place]!r}"
                wrong.append(f"{EXPRESSIONS[place]} on row {number}: {found}: {safe(texts[place])}")
        for place in set(range(len(theirs))) - set(sound):
            if not raises(row, theirs[place]):
                wrong.append(f"{EXPRESSIONS[place]} on row {number}: counted, but Spark does not raise")
    assert not wrong, "\n".join(wrong)
    assert sum(count > 0 for row in counts for count in row) > 100


def test_safe_forms_keep_the_type(table: Any) -> None:
    plain_types = [field.dataType for field in table.selectExpr(*map(as_spark_reads, EXPRESSIONS)).schema]
    safe_types = [
        field.dataType for field in table.selectExpr(*(safe(normalised(text)) for text in EXPRESSIONS)).schema
    ]
    wrong = [
        (expression, one.simpleString(), two.simpleString())
        for expression, one, two in zip(EXPRESSIONS, plain_types, safe_types, strict=True)
        if one.simpleString() != two.simpleString()
    ]
    assert not wrong


def test_known_types_are_the_types_of_spark(table: Any) -> None:
    wrong = []
    known = 0
    fields = table.selectExpr(*map(as_spark_reads, EXPRESSIONS)).schema
    for expression, field in zip(EXPRESSIONS, fields, strict=True):
        ours = SqlTyper().plain(Project("p", (("value", normalised(expression)),)), SCHEMA).field(0).type
        theirs = field.dataType.simpleString()
        known += is_known(ours)
        if is_known(ours) and type_text(ours) != theirs:
            wrong.append(f"{expression}: ours {type_text(ours)}, Spark's {theirs}")
    assert not wrong, "\n".join(wrong)
    assert known > 0.7 * len(EXPRESSIONS)
