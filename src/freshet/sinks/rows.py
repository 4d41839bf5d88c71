"""Rows as JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

# Made once: json.dumps makes an encoder for every call with options other than its defaults.
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode


def json_lines(table: pa.Table) -> Iterator[str]:
    """A line of strict JSON for each row.

    Timestamps and dates are ISO 8601 text (with ``Z`` if they have a zone), decimals are text with all digits,
    binary values are base64. Numbers that JSON does not know are the texts ``"NaN"``, ``"Infinity"`` and
    ``"-Infinity"``. A map is an object if its keys are text, otherwise a list of pairs.

    >>> list(json_lines(pa.table({"v": [1.5, float("nan")], "raw": [b"ab", None]})))
    ['{"v": 1.5, "raw": "YWI="}', '{"v": "NaN", "raw": null}']
    """
    names = table.column_names
    columns = [json_values(column) for column in table.columns]
    for row in zip(*columns, strict=True):
        yield _ENCODE(dict(zip(names, row, strict=True)))


def json_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as JSON values."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_string(kind):
        return column.to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_floating(kind):
        values = column.to_pylist()
        finite = pc.all(pc.is_finite(column), min_count=0).as_py()
        return values if finite else [plain(value) for value in values]
    if pa.types.is_timestamp(kind):
        # Arrow, not Python: years beyond 9999 are legal in Spark.
        return pc.replace_substring(column.cast(pa.string()), " ", "T").to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_date(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_map(kind):
        return [None if value is None else _map(value) for value in column.to_pylist()]
    return [plain(value) for value in column.to_pylist()]


def plain(value: Any) -> Any:
    """A value as a JSON value.

    >>> plain([datetime(2024, 1, 2, 3), float("inf"), {"a": b"ab"}])
    ['2024-01-02T03:00:00', 'Infinity', {'a': 'YWI='}]
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, datetime | date):
        return value.isoformat().replace("+00:00", "Z")
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _map(pairs: list[tuple[Any, Any]]) -> Any:
    if all(isinstance(key, str) for key, _ in pairs):
        return {key: plain(value) for key, value in pairs}
    return [[plain(key), plain(value)] for key, value in pairs]


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
