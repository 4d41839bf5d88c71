"""The workload of RT Table 2, scaled to this machine: 24 periodic queries over eight streams and a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.bench.rig.feed import Arrival
from freshet.model import Promises, Stream, parse_schema
from freshet.model.promises.quality_table import QualityTable
from freshet.simulation.workloads.rtstream import STREAMS, TABLES

SCHEMA: Final = parse_schema("id int, value double, type string")
TABLE: Final = "r"
TYPES: Final = tuple(f"sensor-{number}" for number in range(10))
MATCHED: Final = 0.2
"""Share of the tuples that the table knows (RT Table 2)."""
PAIRS: Final = 0.4
"""Pairs of a tuple with the other window at a load of 1: RT has 4000 tuples there and a selectivity of 0.0001."""
WINDOW_S: Final = 4
CHUNKS: Final = 5
"""Times per second at which rows come on each stream; their numbers are those of a Poisson process."""
PERIOD_S: Final = 2
"""Seconds between common releases."""
TEXTS: Final = {
    "pairs": "SELECT a.id, a.type, a.value AS x, b.value AS y FROM {s} [RANGE 4 s] a, {t} [RANGE 4 s] b "
    "WHERE a.type = b.type AND a.id = b.id AND a.value <> b.value PERIOD 2 s DEADLINE {d}",
    "known": "SELECT avg({s}.value) AS mean, min({s}.value) AS low, max({s}.value) AS high "
    "FROM {s} [RANGE 2 s] JOIN r ON {s}.id = r.id PERIOD 2 s DEADLINE {d}",
    "types": "SELECT type, count(*) AS n FROM {s} [RANGE 1 s] GROUP BY type PERIOD 1 s DEADLINE {d}",
}
"""The three queries of a stream ``s`` that is followed by ``t``, as RT §5.2.1 lists them."""
_SECONDS: Final = re.compile(r"\b(\d+) s\b")
THIN: Final = Promises(overload=("defer", "thin"))


@dataclass(frozen=True, slots=True)
class Table2:
    """Streams and queries at a rate.

    Args:
        rate: Tuples per second of each stream at a load of 1.
        streams: Number of streams.
        deadline: From a release to when its answer is due.
        pace: Number of times by which windows and periods are shorter.

    >>> bed = Table2(1000, streams=2)
    >>> list(bed.texts)
    ['pairs_s0', 'known_s0', 'types_s0', 'pairs_s1', 'known_s1', 'types_s1']
    >>> bed.ids, bed.known.num_rows
    (1000, 200)
    """

    rate: float
    streams: int = len(STREAMS)
    deadline: str = "1 s"
    pace: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return STREAMS[: self.streams]

    @property
    def declared(self) -> list[Stream]:
        """The streams with their schema."""
        return [Stream(name, SCHEMA) for name in self.names]

    @property
    def texts(self) -> dict[str, str]:
        """SQL by query."""
        after = dict(zip(self.names, (*self.names[1:], self.names[0]), strict=True))
        every = [(kind, text, stream) for stream in self.names for kind, text in TEXTS.items()]
        return {f"{kind}_{s}": self._paced(text).format(s=s, t=after[s], d=self.deadline) for kind, text, s in every}

    def _paced(self, text: str) -> str:
        """A text with shorter times.

        >>> Table2(1000, pace=4)._paced("FROM s [RANGE 2 s] PERIOD 1 s")
        'FROM s [RANGE 500 ms] PERIOD 250 ms'
        """
        if self.pace == 1:
            return text
        return _SECONDS.sub(lambda found: f"{1000 * int(found[1]) // self.pace} ms", text)

    def window(self, kind: str) -> int:
        """Microseconds of the windows of a kind of query.

        >>> Table2(1000).window("pairs"), Table2(1000, pace=4).window("types")
        (4000000, 250000)
        """
        return 1_000_000 * int(_SECONDS.findall(TEXTS[kind])[0]) // self.pace

    @property
    def ids(self) -> int:
        """Number of ids: with the types, so many keys that a tuple has :data:`PAIRS` partners."""
        return max(1, round(self.rate * WINDOW_S / self.pace / PAIRS / len(TYPES)))

    @property
    def known(self) -> pa.Table:
        """The table: a share of the ids."""
        return pa.table({"id": pa.array(np.arange(max(1, round(MATCHED * self.ids))), pa.int32())})

    def rows(self, count: int, draw: np.random.Generator) -> pa.Table:
        """Tuples of a stream."""
        types = pa.array(TYPES).take(pa.array(draw.integers(0, len(TYPES), count)))
        ids = pa.array(draw.integers(0, self.ids, count), pa.int32())
        return pa.table({"id": ids, "value": draw.random(count), "type": types})

    def arrivals(self, load: float, seconds: float, seed: int) -> Iterator[Arrival]:
        """What comes at a load, for some seconds, on all streams at once."""
        draw = np.random.default_rng([seed, 172])
        for chunk in range(round(seconds * CHUNKS)):
            counts = draw.poisson(self.rate * load / CHUNKS, self.streams)
            yield (
                chunk / CHUNKS,
                {name: self.rows(int(count), draw) for name, count in zip(self.names, counts, strict=True)},
            )


def dealt(seed: int, queries: int = len(TABLES)) -> list[QualityTable]:
    """The quality tables of the queries, dealt by a seed: 10 tolerant, 10 proportional and 4 strict ones.

    >>> len(dealt(0)), dealt(0) == dealt(1)
    (24, False)
    """
    tables = np.random.default_rng([17, seed]).permutation(TABLES)[:queries]
    return [QualityTable.parse(str(table)) for table in tables]
