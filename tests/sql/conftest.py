from __future__ import annotations

import pyarrow as pa
import pytest

from freshet.model import parse_schema

STREAMS: dict[str, pa.Schema] = {
    "packets": parse_schema(
        "src string, dst string, size int, ts timestamp, price double, ok boolean, tags array<int>, "
        "counts map<string, int>, `order` int"
    ),
    "calls": pa.schema([("id", pa.int64()), ("who", pa.struct([("name", pa.string()), ("age", pa.int32())]))]),
    "Speed": parse_schema("lane int, value float, type string"),
    "Lanes": parse_schema("ID int"),
    "S0": parse_schema("ID int, value float, type string"),
    "S1": parse_schema("ID int, value float, type string"),
    "R0": parse_schema("ID int"),
    "TEMPERATURE": parse_schema("temp_val double"),
    **{f"Sensor{i}": parse_schema("epoch bigint, x double, y double, z double, val double") for i in range(1, 5)},
}


@pytest.fixture
def streams() -> dict[str, pa.Schema]:
    return STREAMS


@pytest.fixture
def times() -> dict[str, str | None]:
    """Packets have an event time, all others go by their arrival; nothing is known of the time of calls."""
    return {name: "ts" if name == "packets" else None for name in STREAMS if name != "calls"}
