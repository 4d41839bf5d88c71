"""The audit after crashes: every output must equal a batch computation over the whole log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from freshet.bench.crash.application import (
    LAST,
    PUSH_ROWS,
    QUERIES,
    SLIDE,
    STATEFUL,
    WINDOW,
    acknowledged,
    jsonl,
)
from freshet.log import LogReader
from freshet.model import ARRIVAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_PLACE: Final = "place_"
"""Column of the views: the offset of a tuple."""
_CLOSED: Final = "closed_"
"""View with the watermark of the generator's stream."""
_NEAR: Final = f"INTERVAL {WINDOW} SECONDS"
BATCH: Final = {
    "sums": "SELECT k, n, ids, window.end AS window_end FROM (SELECT k, count(*) AS n, sum(id) AS ids, window "
    f"FROM made GROUP BY k, window(ts, '{WINDOW} seconds', '{SLIDE} seconds')) "
    f"WHERE window.end <= (SELECT mark FROM {_CLOSED})",
    "met": "SELECT made.id AS one, pushed.id AS other FROM made JOIN pushed ON made.j = pushed.j "
    f"AND made.ts < pushed.ts + {_NEAR} AND pushed.ts < made.ts + {_NEAR}",
    "last": "SELECT k, count(*) OVER last AS n, sum(id) OVER last AS ids FROM pushed "
    f"WINDOW last AS (PARTITION BY k ORDER BY {_PLACE} ROWS {LAST - 1} PRECEDING)",
}
"""What the queries with a state answer, in Spark SQL over the whole log: windows that have closed, tuples that are
valid at the same time, the last tuples of each key by offset."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What was compared, and what was found, in rows.

    >>> Audit.of([1, 2, 3], [2, 3, 3]) + Audit.of([5], [5])
    Audit(checked=4, lost=1, doubled=1)
    """

    checked: int = 0
    lost: int = 0
    doubled: int = 0

    @classmethod
    def of(cls, expected: Iterable[Any], actual: Iterable[Any]) -> Audit:
        """Compares as multisets; an unexpected row counts as doubled."""
        wanted, found = Counter(expected), Counter(actual)
        return cls(wanted.total(), (wanted - found).total(), (found - wanted).total())

    def __add__(self, other: Audit) -> Audit:
        return Audit(self.checked + other.checked, self.lost + other.lost, self.doubled + other.doubled)


def audit(session: SparkSession, folder: Path) -> dict[str, Audit]:
    """Audits sources, outputs and sinks of a drained crash application; the keys say what was looked at."""
    with LogReader(folder / "state") as log:
        streams = {name: _whole(log, name) for name in ("made", "pushed", *QUERIES, *STATEFUL)}
        mark = log.watermark("made")
    found = {
        "generator": audit_generator(streams["made"]),
        "pushes": audit_pushes(streams["pushed"], first_ids(acknowledged(folder))),
    }
    for name in ("made", "pushed"):
        rows = streams[name].append_column(_PLACE, pa.array(range(streams[name].num_rows), pa.int64()))
        session.createDataFrame(rows).createOrReplaceTempView(name)
    closed = pa.table({"mark": pa.array([mark], pa.timestamp("us", tz="UTC"))})
    session.createDataFrame(closed).createOrReplaceTempView(_CLOSED)
    for name, sql in QUERIES.items():
        expected = session.sql(sql.replace(" FROM ", f", {ARRIVAL} FROM "))
        expected.createOrReplaceTempView(name)
        right = list(_rows(expected.toArrow()))
        found[f"output of {name}"] = Audit.of(right, _rows(streams[name]))
        found[f"lines of {name}"] = Audit.of(right, _lines(jsonl(folder, name)))
    for name, sql in BATCH.items():
        # Without the arrivals: only Freshet has them.
        right = list(_rows(session.sql(sql).toArrow()))
        found[f"output of {name}"] = Audit.of(right, _rows(streams[name].drop_columns([ARRIVAL])))
        found[f"lines of {name}"] = Audit.of(right, (line[:-1] for line in _lines(jsonl(folder, name))))
    return found


def divided(folder: Path) -> int:
    """The number of queries whose state lay in parts by key at the end."""
    with LogReader(folder / "state") as log:
        names = [name for name in log.streams() if "_part_" in name and log.end(name) > log.oldest(name)]
    return len({name.split(".")[0] for name in names})


def _whole(log: LogReader, name: str) -> pa.Table:
    if log.oldest(name) != 0:
        raise RuntimeError(f"the log of {name} begins at {log.oldest(name)}: it cannot be computed again")
    return log.read(name, 0, log.end(name))


def audit_generator(made: pa.Table) -> Audit:
    """The generator numbers its rows, and a restart must continue behind the last one in the log."""
    ids = made["id"].to_pylist()
    return Audit.of(range(max(ids, default=-1) + 1), ids)


def audit_pushes(pushed: pa.Table, firsts: list[int]) -> Audit:
    """Every row of an acknowledged push must be there once. An unacknowledged push must be there as a whole or not at
    all, and at most once."""
    found = Counter(pushed["id"].to_pylist())
    sure = {first + row for first in firsts for row in range(PUSH_ROWS)}
    lost = sum(1 for row in sure if row not in found)
    doubled = sum(times - 1 for times in found.values())
    unsure = Counter(row - row % PUSH_ROWS for row in found if row not in sure)
    torn = sum(PUSH_ROWS - rows for rows in unsure.values())
    return Audit(len(sure), lost + torn, doubled)


def first_ids(path: Path) -> list[int]:
    """The first ids of the pushes that a file notes as acknowledged."""
    # The kill may have cut the last line; then the push was not noted.
    return [int(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _lines(path: Path) -> Iterable[tuple[Any, ...]]:
    with path.open() as lines:
        return [tuple(_value(*each) for each in json.loads(line).items()) for line in lines]


def _value(column: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if column == "window_end" else value
