"""Queries with folds on a real log, run by the real kernels in this process, under any policy and with crashes."""

from __future__ import annotations

import math
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshet.engine import Engine, LogQueues, VirtualClock
from freshet.log import Intake, Limits, Log, Retention, TableVersions
from freshet.log.intake.intake import Rows
from freshet.model import (
    ARRIVAL,
    NOTHING,
    Decision,
    Query,
    QueryGraph,
    Step,
    Stream,
    UnitResult,
    View,
    parse_schema,
    push_through,
)
from freshet.policies import Everything, Policy
from freshet.sql import build_query
from freshet.testing import InProcessExecutor

SCHEMA = parse_schema("ts timestamp, k string, v int")
STREAMS = ("s", "t", "u")
LATENESS = 2.0
KEEP = Retention(history_age=None, history_bytes=None)

Row = tuple[float, str | None, int | None]


class Anything(Policy):
    """Plans at random: any ready operators, any part of what is behind them, anything else, any train, any number of
    steps."""

    name = "anything"

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def decide(self, view: View) -> Decision:
        ready = list(view.ready)
        if not ready:
            return NOTHING
        steps = (self.step(view, ready) for _ in range(self.random.randint(1, 2)))
        return Decision.run(*steps)

    def step(self, view: View, ready: Sequence[int]) -> Step:
        nodes: dict[int, None] = {}
        for number in self.random.sample(ready, self.random.randint(1, len(ready))):
            behind = push_through(view, number)
            kind = self.random.random()
            if kind < 0.5:
                chosen = behind
            elif kind < 0.75:
                chosen = behind[: self.random.randint(1, len(behind))]
            else:
                chosen = (number, *(other for other in behind if self.random.random() < 0.5))
            nodes |= dict.fromkeys(chosen)
        if self.random.random() < 0.2:
            nodes |= dict.fromkeys(self.random.sample(range(len(view.operators)), 1))
        return Step(tuple(nodes), self.random.choice([None, 1, 2, 5]))


class OneBox(Policy):
    """One operator at a time: all that it gives out goes to queues."""

    name = "one-box"

    def decide(self, view: View) -> Decision:
        return Decision.run(*(Step((number,)) for number in list(view.ready)[:1]))


def by_content(query: Query) -> Query:
    """A query whose operators, but for the last one, are called after what they do: those that do the same in several
    queries are one node."""
    graph = query.graph
    names: dict[str, str] = {}
    for name in graph.order:
        if name != graph.root:
            read = [names.get(source, source) for source in graph.inputs[name]]
            what = repr((replace(graph.operators[name], name=""), read))
            names[name] = f"shared:{sha256(what.encode()).hexdigest()[:12]}"
    called = {name: names.get(name, name) for name in graph.operators}
    operators = {called[name]: replace(each, name=called[name]) for name, each in graph.operators.items()}
    inputs = {called[name]: tuple(called.get(each, each) for each in read) for name, read in graph.inputs.items()}
    return replace(query, graph=QueryGraph(operators, inputs, graph.root, frozenset(names.values())))


class Misfortune:
    """Has chains of some queries raise, and units come back undone, at random."""

    def __init__(self, executor: InProcessExecutor, queries: Collection[str], seed: int) -> None:
        self._executor, self._queries, self._random = executor, frozenset(queries), random.Random(seed)
        self._finished = executor.finished
        executor.finished = self._some  # type: ignore[method-assign]

    def _some(self) -> list[UnitResult]:
        return [self._fate(result) for result in self._finished()]

    def _fate(self, result: UnitResult) -> UnitResult:
        kind = self._random.random()
        if kind < 0.2:
            return replace(result, retry="a worker was lost", apart=kind < 0.1, chains=(), files=())
        failures: dict[int, str] = {}
        for place, chain in enumerate(result.unit.chains):
            queries = self._executor.network.queries(chain.nodes[0])
            mine = self._queries.issuperset(queries) and self._random.random() < 0.3
            if mine or any(isinstance(each, int) and each in failures for each in chain.inputs):
                failures[place] = "it raised"
        chains = (replace(done, failure=failures.get(place)) for place, done in enumerate(result.chains))
        return replace(result, chains=tuple(chains))


class Application:
    """Streams ``s``, ``t``, ``u`` with event time, or others, and queries over them.

    Args:
        queries: Texts by name, each after those that it reads.
        policy: Decides.
        slots: Units at once.
        seed: Draws when units finish.
        folder: A state folder to go on with.
        event_time: Whether the streams go by their column ``ts``; else by the arrival.
        streams: Other streams.
        tables: Contents of tables, which stay as they are.
        built: Queries that have been made of their texts before.
        share: Whether operators that do the same are one.
    """

    def __init__(
        self,
        queries: Mapping[str, str],
        policy: Policy | None = None,
        *,
        slots: int = 1,
        seed: int = 0,
        folder: Path | None = None,
        event_time: bool = True,
        streams: Collection[Stream] | None = None,
        tables: Mapping[str, pa.Table] | None = None,
        built: dict[str, Query] | None = None,
        share: bool = False,
    ) -> None:
        self._share = share
        self.folder = folder or Path(tempfile.mkdtemp(dir=_memory()))
        self._queries, self._slots, self._event_time, self._built = queries, slots, event_time, built or {}
        self.log = Log.open(self.folder, limits=Limits(min_free_bytes=0))
        self.queues = LogQueues(self.log)
        self.clock = VirtualClock(1000.0)
        self.executor = InProcessExecutor(self.log.folder, self.clock, slots=slots, seed=seed)
        self.engine = Engine(self.queues, self.executor, self.clock, policy or Everything())
        schemas, times = {}, {}
        self._tables = tables or {}
        for name, rows in self._tables.items():
            TableVersions(self.log, name).put(rows)
            schemas[name] = rows.schema
        orders: dict[str, tuple[str, ...] | None] = {}
        ends: list[str] = []
        self.intakes = {}
        time = ("ts", "UTC", None, LATENESS) if event_time else ()
        self._streams = streams or [Stream(name, SCHEMA, *time) for name in STREAMS]
        for stream in self._streams:
            self.log.declare(stream.name, KEEP, clock=stream.event_time or ARRIVAL)
            schemas[stream.name], times[stream.name] = stream.schema, stream.event_time
            self.intakes[stream.name] = Intake(self.log, stream)
        for name, text in queries.items():
            query = self._built.get(name) or build_query(
                name, text, schemas, times=times, orders=orders, ends=ends, tables=self._tables
            )
            query = self._built[name] = by_content(query) if share else query
            self.log.declare(name, KEEP)
            schemas[name] = self.engine.add_query(query, {stream: schemas[stream] for stream in query.graph.streams})
            orders[name] = query.order
            ends += [name] if query.ends else []
            if query.has_time:
                times[name] = query.event_time

    def append(self, stream: str, rows: Sequence[Row], arrival: int = 1) -> None:
        """Appends rows ``(seconds, k, v)``."""
        self.take(stream, [{"ts": at, "k": k, "v": v} for at, k, v in rows], arrival)

    def take(self, stream: str, rows: Rows, arrival: int | NDArray[np.int64]) -> None:
        """Appends rows."""
        self.intakes[stream].append(rows, arrival)
        self.queues.notice(stream)

    def heartbeat(self, stream: str, seconds: float) -> None:
        """Says how far event time is."""
        self.heartbeat_us(stream, round(seconds * 1e6))

    def heartbeat_us(self, stream: str, microseconds: int) -> None:
        """Says how far event time is."""
        self.intakes[stream].heartbeat(microseconds)
        self.queues.notice(stream)

    def turn(self) -> None:
        """One turn of the engine's loop."""
        self.engine._take_arrivals()
        self.engine._take_results()
        self.engine._dispatch()

    def hold(self, queries: Collection[str]) -> None:
        """Has the outputs of these queries take nothing, and all others what comes."""
        self.queues.held = lambda: dict.fromkeys(queries, "it takes nothing")  # type: ignore[method-assign]
        self.engine._look_again = -math.inf

    def run(self) -> None:
        """Runs until nothing is left to do."""
        self.engine.run()
        for state in self.engine.board.queries:
            assert state.reason is None, f"{state.name}: {state.reason}"
        assert self.engine.is_idle()

    def crash(self, policy: Policy | None = None, seed: int = 0) -> Application:
        """The same after a power failure: what is in the state folder, and nothing else."""
        copy = Path(tempfile.mkdtemp(dir=_memory()))
        shutil.copytree(self.folder, copy, dirs_exist_ok=True)
        self.close()
        return Application(
            self._queries,
            policy,
            slots=self._slots,
            seed=seed,
            folder=copy,
            event_time=self._event_time,
            streams=self._streams,
            tables=self._tables,
            built=self._built,
            share=self._share,
        )

    def rows(self, stream: str) -> list[tuple[Any, ...]]:
        """All tuples of a stream in their order."""
        end = self.log.end(stream)
        table = self.log.read(stream, 0, end).drop_columns([ARRIVAL]) if end else None
        return [] if table is None else [tuple(row.values()) for row in table.to_pylist()]

    def answers(self, query: str) -> Counter[tuple[Any, ...]]:
        """All tuples of an output, each as often as it is there."""
        return Counter(self.rows(query))

    def states(self) -> dict[str, int]:
        """Live rows by state stream."""
        return {
            stream: self.queues.end(stream) - low
            for fold in self.engine.board.folds(range(len(self.engine.board.operators)))
            if fold.queries
            for stream, low in fold.lows.items()
        }

    def close(self) -> None:
        """Closes the log and deletes its folder."""
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _memory() -> str | None:
    """Where files cost no disk: tests make thousands of durable commits."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
