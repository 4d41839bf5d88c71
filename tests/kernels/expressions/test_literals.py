from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.kernels import Unsupported
from freshet.kernels.expressions.rules.literals import moment, number
from freshet.kernels.expressions.types import DATE, TIMESTAMP


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2147483647", pa.int32()), ("-2147483648", pa.int32()), ("2147483648", pa.int64()),
        ("-9223372036854775808", pa.int64()), ("9223372036854775808", pa.decimal128(19, 0)),
        ("1.", pa.decimal128(1, 0)),
        ("0.05", pa.decimal128(2, 2)), ("00.50", pa.decimal128(2, 2)), ("1e3", pa.float64()),
    ],
)  # fmt: skip
def test_types_of_numbers(text: str, kind: pa.DataType) -> None:
    node = number(text)
    assert node.kind == kind
    assert node.constant == Decimal(text)


@pytest.mark.parametrize("text", ["1e400", "0." + "1" * 39])
def test_numbers_that_spark_refuses(text: str) -> None:
    with pytest.raises(Unsupported):
        number(text)


@given(st.datetimes())
def test_moments(when: datetime) -> None:
    since = when.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds
    text = when.isoformat(" ")
    assert moment(text, TIMESTAMP).constant == micros
    assert moment(text.replace(" ", "T"), TIMESTAMP).constant == micros
    assert moment(text[:10], DATE).constant == (when.date() - date(1970, 1, 1)).days


@pytest.mark.parametrize("text", ["2024-02-30", "2024-1-1", "2024-01-01 24:00:00", "2024-01-01 00:00", "noon", "2024"])
def test_other_spellings_are_left_to_spark(text: str) -> None:
    with pytest.raises(Unsupported):
        moment(text, TIMESTAMP)
