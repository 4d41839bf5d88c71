"""The queries on docs/queries.md, and what DuckDB answers to them over all that came.

Every stream is a view with the columns that it has, the arrival in microseconds (``a``) and the place in the log
(``p``). A join of windows without SLIDE pairs what is valid at one moment; a window without SLIDE gives an answer with
each tuple, over what the log holds up to it; one with SLIDE gives an answer at each boundary ``b``.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from freshet.model import ARRIVAL, KeyOrder, parse_schema

PAGE: Final = Path(__file__).parents[2] / "docs/queries.md"
S = "ID int, value float, type string"
SCHEMAS: Final = {
    "Speed": "lane int, value float, type string",
    "TEMPERATURE": "temp_val double",
    **{f"S{number}": S for number in range(3)},
    **{f"Sensor{number}": "epoch bigint, x double, y double, z double, val double" for number in range(1, 5)},
}
ORDERED: Final = {name: KeyOrder("epoch", rows=20) for name in SCHEMAS if name.startswith("Sensor")}
TABLES: Final = {
    name: pa.table({"ID": ids}, parse_schema("ID int")) for name, ids in (("Lanes", [1, 3]), ("R0", [0, 2]))
}
_TRUCKS = "trucks AS (SELECT value, a, p FROM Speed JOIN Lanes ON lane = ID WHERE type = 'Truck')"
_SENSORS = ", ".join(f"Sensor{number} S{number}" for number in range(1, 5))
REFERENCE: Final = {
    "RT §2.2": f"WITH {_TRUCKS} SELECT avg(value) FROM (SELECT value, {{slide:60:10}} FROM trucks) GROUP BY b",
    "RT §2.2 (2)": f"""
        WITH {_TRUCKS} SELECT avg(y.value) FROM trucks x JOIN trucks y ON y.p <= x.p AND y.a > x.a - 60000000
        GROUP BY x.p""",
    "RT §5.2.1, query 1": """
        SELECT S0.ID, S0.value, S0.type, S1.ID, S1.value, S1.type FROM S0 JOIN S1
        ON S0.ID = S1.ID AND S0.type = S1.type AND S0.value <> S1.value AND abs(S0.a - S1.a) < 4000000""",
    "RT §5.2.1, query 2": """
        SELECT avg(value), min(value), max(value) FROM (SELECT value, {slide:2:2} FROM S0 JOIN R0 ON S0.ID = R0.ID)
        GROUP BY b""",
    "RT §5.2.1, query 3": "SELECT type, count(*) FROM (SELECT type, {slide:1:1} FROM S0) GROUP BY type, b",
    "WU §1.1": """
        SELECT avg(y.temp_val) FROM TEMPERATURE x JOIN TEMPERATURE y ON y.p <= x.p AND y.a > x.a - 3600000000
        GROUP BY x.p""",
    "WU §3.1": f"""
        SELECT {", ".join(f"S{number}.* EXCLUDE (a, p)" for number in range(1, 5))} FROM {_SENSORS}
        WHERE S1.epoch = S2.epoch AND S1.epoch = S3.epoch AND S1.epoch = S4.epoch""",
    "MAV, experiments": """
        SELECT S0.ID, S0.value, S1.value, S2.value FROM S0, S1, S2
        WHERE S0.ID = S1.ID AND S0.ID = S2.ID AND S0.value > 1 AND S1.value > 2 AND S2.value < 7
        AND greatest(S0.a, S1.a, S2.a) < least(S0.a, S1.a, S2.a) + 1000000""",
}

Came = tuple[float, str, dict[str, Any]]
"""When, where, what."""


def periodic() -> dict[str, str]:
    """The SQL blocks of the page with a PERIOD, by their heading."""
    return dict(_blocks(lambda text: "period" in text.lower()))


def queries() -> dict[str, str]:
    """The other SQL blocks of the page by their heading."""
    return dict(_blocks(lambda text: "period" not in text.lower()))


def _blocks(wanted: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    for section in PAGE.read_text().split("\n## ")[1:]:
        title = section.split("\n", 1)[0]
        blocks = re.findall(r"^```sql\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        for number, text in enumerate(filter(wanted, blocks), 1):
            yield (title if number == 1 else f"{title} ({number})"), text


def tuples(rng: random.Random) -> list[Came]:
    """Tuples of all streams in the order in which they came: equal times, pauses, temperatures for some hours."""
    return sorted(_tuples(rng), key=lambda came: came[0])


def _tuples(rng: random.Random) -> Iterator[Came]:
    def halves() -> float:  # sums of which are exact in any order
        return rng.randrange(20) / 2

    for _ in range(150):
        at = rng.choice([rng.uniform(0, 90), rng.randrange(0, 90, 5)])
        yield at, "Speed", {"lane": rng.randrange(4), "value": halves(), "type": rng.choice(["Truck", "Car"])}
    for _ in range(250):
        at = rng.choice([rng.uniform(0, 25), rng.randrange(40)])
        name = rng.choice(["S0", "S1", "S2"])
        yield at, name, {"ID": rng.randrange(5), "value": halves(), "type": rng.choice("xyz")}
    for epoch in range(30):
        for number in range(1, 5):
            if rng.random() < 0.9:
                at = 2 * epoch + rng.uniform(0, 12)
                yield at, f"Sensor{number}", {"epoch": epoch, **{name: halves() for name in ("x", "y", "z", "val")}}
    for _ in range(60):
        yield rng.uniform(0, 4 * 3600), "TEMPERATURE", {"temp_val": halves()}


WINDOWS: Final = {
    "RT §2.2": "SELECT avg(value) FROM {Speed:60} JOIN Lanes ON lane = ID WHERE type = 'Truck'",
    "RT §5.2.1, query 1": """
        SELECT x.ID, x.value, x.type, y.ID, y.value, y.type FROM {S0:4} x JOIN {S1:4} y
        ON x.ID = y.ID AND x.type = y.type AND x.value <> y.value""",
    "RT §5.2.1, query 2": "SELECT avg(value), min(value), max(value) FROM {S0:2} x JOIN R0 ON x.ID = R0.ID",
    "RT §5.2.1, query 3": "SELECT type, count(*) FROM {S0:1} GROUP BY type",
}
"""The periodic queries of the page as a batch at a release."""


def at_release(title: str, logs: Mapping[str, pa.Table], release: int) -> Counter[tuple[Any, ...]]:
    """The answer to a periodic query at a release (microseconds); an aggregate over nothing gives no row."""

    def window(found: re.Match[str]) -> str:
        name, seconds = found[1], int(found[2])
        since = release - seconds * 1_000_000
        return f"(SELECT * EXCLUDE ({ARRIVAL}) FROM {name} WHERE {ARRIVAL} >= {since} AND {ARRIVAL} < {release})"

    with duckdb.connect(config={"threads": "1"}) as connection:
        for name, rows in {**logs, **TABLES}.items():
            connection.register(name, rows)
        rows = connection.execute(re.sub(r"\{(\w+):(\d+)\}", window, WINDOWS[title])).fetchall()
    return Counter(row for row in rows if any(value is not None for value in row))


def expected(logs: Mapping[str, pa.Table]) -> dict[str, Counter[tuple[Any, ...]]]:
    """The answers to all queries over what lies in the log, when all windows are closed."""
    with duckdb.connect(config={"threads": "1"}) as connection:
        for name, rows in logs.items():
            placed = rows.rename_columns({ARRIVAL: "a"}).append_column("p", pa.array(range(len(rows)), pa.int64()))
            connection.register(name, placed)
        for name, rows in TABLES.items():
            connection.register(name, rows)
        return {name: Counter(connection.execute(_plain(text)).fetchall()) for name, text in REFERENCE.items()}


def _plain(text: str) -> str:
    """Writes the boundaries at which a tuple counts: those behind it, up to where its window has passed."""

    def boundaries(found: re.Match[str]) -> str:
        size, slide = (int(seconds) * 1_000_000 for seconds in found.groups())
        return f"unnest(range((a // {slide} + 1) * {slide}, a + {size} + 1, {slide})) AS b"

    return re.sub(r"\{slide:(\d+):(\d+)\}", boundaries, text)
