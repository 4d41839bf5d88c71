"""Two queries behind a shared dear filter, on Spark: trains one after the other, under one policy after the other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from freshet.bench.freshness.queries import SCHEMA, chain
from freshet.engine import Engine, LogQueues, RealClock
from freshet.engine.board import Board
from freshet.engine.events import Committed, Event, Failed, Submitted
from freshet.log import Log, Retention
from freshet.model import ARRIVAL, parse_schema
from freshet.policies import Everything, Policy
from freshet.policies.sharing import share
from freshet.spark.driver.executor import SparkExecutor
from freshet.sql import build_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM: Final = "s"
SHARE_KEPT: Final = 0.1
"""Of the rows that the shared filter lets through."""
_NO_HISTORY: Final = Retention(history_age=0.0, history_bytes=0, bound_bytes=None)


def texts(links: int) -> dict[str, str]:
    """The queries: the same filter, then arithmetic of their own, so much that it takes three times as long as the
    filter for ``quick`` and six times as long for ``slow``.

    >>> list(texts(1)), texts(1)["quick"].startswith("SELECT id, ")
    (['quick', 'slow'], True)
    """
    where = f"{chain('v', 'w', links, 3.01)} < {SHARE_KEPT}"
    own = {"quick": chain("w", "v", 30 * links, 5.02), "slow": chain("w", "v", 60 * links, 7.03)}
    return {name: f"SELECT id, {column} AS x FROM {STREAM} WHERE {where}" for name, column in own.items()}


@dataclass(slots=True)
class Watch:
    """Looks on while a train is worked off: jobs, when answers left, and what waited meanwhile.

    Args:
        board: What waits where.
        queues: Knows the bytes of ranges.
    """

    board: Board
    queues: LogQueues
    jobs: int = 0
    left: Counter[str] = field(default_factory=Counter)
    """Answers, by query."""
    waits: float = 0.0
    """Seconds from the arrival to the departure of all answers together."""
    byte_seconds: float = 0.0
    _began: float = 0.0
    _last: float = 0.0
    _bytes: int = 0

    def begin(self) -> None:
        """A train arrived."""
        self.jobs, self.left, self.waits, self.byte_seconds = 0, Counter(), 0.0, 0.0
        self._began = self._last = time.perf_counter()
        self._bytes = 0

    def tell(self, event: Event) -> None:
        """Something happened."""
        now = time.perf_counter()
        if isinstance(event, Submitted):
            self.jobs += 1
        elif isinstance(event, Failed):
            raise RuntimeError(f"a step could not run: {event.result.retry}")
        elif isinstance(event, Committed):
            for result in event.result.chains:
                for query in self.board.network.outputs(result.chain.nodes[-1]):
                    self.left[query] += result.rows_out
                    self.waits += result.rows_out * (now - self._began)
        self._look(now)

    def _look(self, now: float) -> None:
        """What is being processed waits until it is committed."""
        self.byte_seconds += self._bytes * (now - self._last)
        edges = (edge for operator in self.board.operators for edge in operator.edges if edge.cursor < edge.end)
        self._bytes = sum(self.queues.bytes(edge.edge.stream, edge.cursor, edge.end) for edge in edges)
        self._last = now

    @property
    def seconds(self) -> float:
        """Since the train arrived."""
        return self._last - self._began

    @property
    def latency(self) -> float:
        """Mean over the answers of all queries."""
        return self.waits / self.left.total()


@dataclass(frozen=True, slots=True)
class Worked:
    """What a train took: its jobs, mean latency, byte-seconds of what waited, seconds, and the answers."""

    jobs: int
    latency: float
    byte_seconds: float
    seconds: float
    answers: Mapping[str, pa.Table]


class TraversalRig:
    """The engine over a log of its own.

    Args:
        session: Where it runs.
        state: Its state folder.
        links: Length of the arithmetic in the shared filter.
    """

    def __init__(self, session: SparkSession, state: Path, links: int) -> None:
        self._log = Log.open(state)
        clock = RealClock()
        self._executor = SparkExecutor(session, state, slots=1, wake=clock.wake)
        self._queues = LogQueues(self._log)
        self._engine = Engine(self._queues, self._executor, clock, Everything(), most_rows=10_000_000)
        self._watch = Watch(self._engine.board, self._queues)
        self._engine.observers.append(self._watch)
        schemas = {STREAM: parse_schema(SCHEMA)}
        self._names = tuple(texts(links))
        for name in (STREAM, *self._names):
            self._log.declare(name, _NO_HISTORY)
        for query in share([build_query(name, text, schemas) for name, text in texts(links).items()], "always"):
            self._engine.add_query(query, schemas)
        # What the first jobs wait for is not what a step costs.
        self._executor.warm_up()
        # From now on each run ends when nothing waits any more.
        self._engine.stop(drain=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.close()
        self._log.close()

    def work_off(self, policy: Policy, rows: pa.Table) -> Worked:
        """Brings a train in and has it worked off."""
        self._log.collect()
        self._engine.set_policy(policy)
        firsts = {name: self._log.end(name) for name in self._names}
        arrivals = pa.array(np.full(rows.num_rows, time.time_ns() // 1000, dtype=np.int64))
        self._watch.begin()
        self._log.append(STREAM, rows.append_column(ARRIVAL, arrivals))
        self._queues.notice(STREAM)
        self._engine.run()
        watch = self._watch
        answers = {name: self._log.read(name, first, self._log.end(name)) for name, first in firsts.items()}
        return Worked(watch.jobs, watch.latency, watch.byte_seconds, watch.seconds, answers)
