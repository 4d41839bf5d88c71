"""Two queries behind a shared expensive filter, on Spark: one train after the other, one policy after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from freshet.bench.freshness.queries import SCHEMA, chain
from freshet.bench.rig.engine import NO_HISTORY, EngineRig
from freshet.engine.events import Event
from freshet.model import Stream, parse_schema
from freshet.policies import Policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM: Final = "s"
SHARE_KEPT: Final = 0.1
"""Share of the rows that the shared filter lets through."""


def texts(links: int) -> dict[str, str]:
    """The queries: the same filter, then arithmetic of their own. It takes three times as long as the filter for
    ``quick``, and six times as long for ``slow``.

    >>> list(texts(1)), texts(1)["quick"].startswith("SELECT id, ")
    (['quick', 'slow'], True)
    """
    where = f"{chain('v', 'w', links, 3.01)} < {SHARE_KEPT}"
    own = {"quick": chain("w", "v", 30 * links, 5.02), "slow": chain("w", "v", 60 * links, 7.03)}
    return {name: f"SELECT id, {column} AS x FROM {STREAM} WHERE {where}" for name, column in own.items()}


class WaitingBytes:
    """An observer that adds up waiting bytes times the time for which they wait; what is in progress waits until it is
    committed.

    Args:
        rig: The rig with the queues in which they wait.
    """

    def __init__(self, rig: EngineRig) -> None:
        self._rig = rig
        self.begin()

    def begin(self) -> None:
        """Begins a train."""
        self.byte_seconds, self._bytes = 0.0, 0
        self._last = time.perf_counter()

    def tell(self, event: Event) -> None:
        """Takes an event."""
        now = time.perf_counter()
        self.byte_seconds += self._bytes * (now - self._last)
        edges = (edge for operator in self._rig.engine.board.operators for edge in operator.edges)
        waiting = ((edge.edge.stream, edge.cursor, edge.end) for edge in edges if edge.cursor < edge.end)
        self._bytes = sum(self._rig.queues.bytes(*each) for each in waiting)
        self._last = now


@dataclass(frozen=True, slots=True)
class Worked:
    """What a train took: its jobs, mean latency, byte-seconds of waiting, seconds, and the answers."""

    jobs: int
    latency: float
    byte_seconds: float
    seconds: float
    answers: Mapping[str, pa.Table]


class TraversalRig(EngineRig):
    """An engine with both queries.

    Args:
        session: Where it runs.
        state: Its state folder.
        links: Length of the arithmetic in the shared filter.
    """

    def __init__(self, session: SparkSession, state: Path, links: int) -> None:
        super().__init__(
            session, state, [Stream(STREAM, parse_schema(SCHEMA))], most_rows=10_000_000, retention=NO_HISTORY
        )
        self._names = tuple(texts(links))
        self.add_queries(texts(links), "always")
        self._waiting = WaitingBytes(self)
        self.engine.observers.append(self._waiting)
        # What the first jobs wait for is not part of a step's cost.
        self.executor.warm_up()

    def train(self, policy: Policy, rows: pa.Table) -> Worked:
        """Brings a train in and works it off."""
        self.log.collect()
        firsts = {name: self.log.end(name) for name in self._names}
        began = time.perf_counter()
        self._waiting.begin()
        self.append({STREAM: rows})
        steps = self.work_off(policy)
        answers = [(step.committed - began, step.written.get(name, 0)) for step in steps for name in self._names]
        latency = sum(after * count for after, count in answers) / sum(count for _, count in answers)
        found = {name: self.read(name, first) for name, first in firsts.items()}
        return Worked(len(steps), latency, self._waiting.byte_seconds, steps[-1].committed - began, found)
