"""The rows and queries of ``freshet bench windows``, for Freshet and for Structured Streaming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from freshet.model import Stream, parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GROUPS: Final = 1000
WINDOW: Final = 60
LATENESS: Final = 2
NEAR: Final = 10
"""Seconds within which two tuples join."""
EPOCH: Final = 1_700_000_000
"""Event time of the first row of a replay; a multiple of the slide."""
_MATCHED: Final = 0.5
_SPAN: Final = NEAR / 2
"""Maximum number of seconds by which the second row of a pair is behind the first."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query with its streams.

    Args:
        name: Its name in figures.
        streams: Schemas by stream; each has the event time ``ts``.
        sql: The query.
        ready: Columns of its output; an output tuple can be known when event time is past the greatest of them.
        late: Seconds that must pass after that, because rows may come this late.
    """

    name: str
    streams: Mapping[str, str]
    sql: str
    ready: tuple[str, ...]
    late: float

    @property
    def declared(self) -> list[Stream]:
        """The streams as Freshet declares them."""
        schemas = {name: parse_schema(text) for name, text in self.streams.items()}
        return [Stream(name, schema, event_time="ts", lateness=LATENESS) for name, schema in schemas.items()]

    def rows(self, start: float, end: float, rate: float, seed: int = 0) -> dict[str, pa.Table]:
        """Rows of each stream with event times in [start, end), evenly spaced; together ``rate`` a second.

        >>> SLIDING.rows(EPOCH, EPOCH + 1, 4)["a"].num_rows, JOIN.rows(EPOCH, EPOCH + 1, 4)["b"].num_rows
        (4, 2)
        """
        each = rate / len(self.streams)
        first, last = round((start - EPOCH) * each), round((end - EPOCH) * each)
        numbers = np.arange(first, last)
        draw = np.random.default_rng([seed, first % 2**31, last % 2**31])
        times = pa.array(EPOCH * 1_000_000 + (numbers * (1e6 / each)).astype(np.int64)).cast(
            pa.timestamp("us", tz="UTC")
        )
        if self is SLIDING:
            keys = draw.integers(0, GROUPS, len(numbers)).astype(np.int32)
            return {"a": pa.table({"ts": times, "k": keys, "v": draw.random(len(numbers))})}
        # Half of the second rows name a first row of the last seconds, the others name none.
        back = numbers - draw.integers(0, max(int(_SPAN * each), 1), len(numbers))
        named = np.where(draw.random(len(numbers)) < _MATCHED, back, -numbers - 1)
        return {
            "a": pa.table({"ts": times, "k": numbers, "v": draw.random(len(numbers))}),
            "b": pa.table({"ts": times, "k": named, "w": draw.random(len(numbers))}),
        }

    def streaming(self, streams: Mapping[str, DataFrame]) -> DataFrame:
        """The same query as a streaming DataFrame."""
        from pyspark.sql import functions as F

        marked = {name: rows.withWatermark("ts", f"{LATENESS} seconds") for name, rows in streams.items()}
        if self is SLIDING:
            grouped = marked["a"].groupBy(F.window("ts", f"{WINDOW} seconds", "1 second"), "k")
            counted = grouped.agg(F.count("*").alias("n"), F.avg("v").alias("mean"))
            return counted.select("k", "n", "mean", F.col("window.end").alias("window_end"))
        near = f"INTERVAL {NEAR} SECONDS"
        return (
            marked["a"]
            .alias("a")
            .join(
                marked["b"].alias("b"), F.expr(f"a.k = b.k AND b.ts < a.ts + {near} AND a.ts < b.ts + {near}"), "inner"
            )
            .selectExpr("a.k AS k", "a.v AS v", "b.w AS w", "a.ts AS ts_a", "b.ts AS ts_b")
        )


SLIDING: Final = Case(
    "window",
    {"a": "ts timestamp, k int, v double"},
    f"SELECT k, count(*) AS n, avg(v) AS mean, window_end FROM a [RANGE {WINDOW} SECONDS SLIDE 1 SECOND] GROUP BY k",
    ("window_end",),
    LATENESS,
)
JOIN: Final = Case(
    "join",
    {"a": "ts timestamp, k bigint, v double", "b": "ts timestamp, k bigint, w double"},
    f"SELECT a.k, a.v, b.w, a.ts AS ts_a, b.ts AS ts_b "
    f"FROM a [RANGE {NEAR} SECONDS] JOIN b [RANGE {NEAR} SECONDS] ON a.k = b.k",
    ("ts_a", "ts_b"),
    0.0,
)
