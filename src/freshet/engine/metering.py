"""Metering: the observer that brings the meters up to date."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from freshet.engine import events
from freshet.engine.binding import trains_of
from freshet.engine.board import DROPPED, Board
from freshet.engine.protocols import QueueLog
from freshet.engine.settle import missing_of
from freshet.engine.states import EdgeState, QueryState
from freshet.engine.timekeeper import Timekeeper
from freshet.model import UnitResult
from freshet.quality import Meters, QueueLength, Waiting
from freshet.quality.snapshots import Snapshot


class Metering:
    """Tells the meters of each event."""

    def __init__(self, meters: Meters, board: Board) -> None:
        self._meters, self._board = meters, board
        self._takes: Final[dict[type, Callable[[Any], object]]] = {
            events.Began: lambda event: meters.begin(event.now),
            events.Added: lambda event: meters.add_query(event.query, event.now, event.promises, event.streams),
            events.Promised: lambda event: meters.promise(event.query, event.promises),
            events.Dropped: lambda event: meters.drop_query(event.query),
            events.Decided: lambda event: meters.deciding(event.seconds),
            events.Committed: self._committed,
            events.Failed: lambda event: self._ran(event.result),
            events.Held: self._held,
            events.Quarantined: lambda event: meters.quarantine(event.query, event.reason),
        }

    def tell(self, event: events.Event) -> None:
        take = self._takes.get(type(event))
        if take is not None:
            take(event)

    def _held(self, event: events.Held) -> None:
        """Only its own output holds back a query as a whole."""
        if event.stream in self._board.numbers:
            self._meters.hold(event.stream, event.reason)

    def _ran(self, result: UnitResult) -> None:
        self._meters.busy(result.finished - result.started, result.kept)

    def _committed(self, event: events.Committed) -> None:
        """Meters each chain for all queries that need it."""
        self._ran(event.result)
        for entry in missing_of(event.result, self._board, event.chains):
            self._meters.miss(entry)
        operators, queries, effective = self._board.operators, self._board.queries, set(map(id, event.chains))
        for chain, done in zip(event.result.unit.chains, event.result.chains, strict=True):
            if id(chain) in effective:
                trains = trains_of(self._board, chain)
                rows_in = sum(train.rows for edge, train in trains if edge.edge.kind != "queue")
                for number in operators[chain.nodes[0]].queries:
                    name = queries[number].name
                    self._meters.record(name, done, event.now, rows_in=rows_in, ends=name in chain.writes)


def snapshot_of(
    board: Board, meters: Meters, log: QueueLog, time: Timekeeper, now: float, running: Collection[float]
) -> Snapshot:
    """All meters now."""
    operators = {}
    for state in board.queries:
        if state.reason != DROPPED:
            meters.wait(state.name, waiting_for(state, board, log))
            meters.remember(state.name, time.memory(state))
            operators[state.name] = {each.node.name: each.statistics for each in board.of(state)}
    return meters.snapshot(now, running=running, operators=operators, overhead=board.calls)


def waiting_for(state: QueryState, board: Board, log: QueueLog) -> Waiting:
    """What waits in the queues of a query, also of operators that it shares with others."""
    through: dict[int, float] = {}
    queues: list[QueueLength] = []
    for number in reversed(state.operators):
        operator = board.operators[number]
        behind = sum(through.get(reader, 0.0) for reader in operator.readers) if number != state.root else 1.0
        through[number] = operator.selectivity * behind
        queues += [_length(edge, through[number], log) for edge in operator.edges if edge.waiting or edge.in_flight]
    return Waiting.in_queues(queues)


def _length(edge: EdgeState, selectivity: float, log: QueueLog) -> QueueLength:
    rows, stream, first = edge.waiting + edge.in_flight, edge.edge.stream, edge.cursor
    since = max(log.arrival(stream, first), edge.let_on)
    return QueueLength(rows, log.bytes(stream, first, first + rows), since, min(1.0, selectivity))
