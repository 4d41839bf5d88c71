"""Metering: the observer that brings the meters up to date."""

from __future__ import annotations

from freshet.engine import events
from freshet.engine.binding import trains_of
from freshet.engine.board import Board
from freshet.engine.protocols import QueueLog
from freshet.engine.states import EdgeState, QueryState
from freshet.quality import Meters, QueueLength, Waiting


class Metering:
    """Has the meters follow the events."""

    def __init__(self, meters: Meters, board: Board) -> None:
        self._meters, self._board = meters, board

    def tell(self, event: events.Event) -> None:
        meters = self._meters
        match event:
            case events.Committed():
                meters.busy(event.result.finished - event.result.started)
                self._record(event)
            case events.Failed():
                meters.busy(event.result.finished - event.result.started)
            case events.Decided():
                meters.deciding(event.seconds)
            case events.Held():
                meters.hold(event.query, event.reason)
            case events.Quarantined():
                meters.quarantine(event.query, event.reason)
            case events.Began():
                meters.begin(event.now)
            case events.Added():
                meters.add_query(event.query, event.now, event.promises, event.streams)
            case events.Promised():
                meters.promise(event.query, event.promises)
            case events.Dropped():
                meters.drop_query(event.query)

    def _record(self, event: events.Committed) -> None:
        """Meters each chain for all queries that need it."""
        board, effective = self._board, {id(chain) for chain in event.chains}
        for chain, done in zip(event.result.unit.chains, event.result.chains, strict=True):
            if id(chain) in effective:
                rows_in = sum([train.rows for edge, train in trains_of(board, chain) if edge.edge.kind != "queue"])
                for query in board.serving(board.operators[chain.nodes[0]]):
                    ends = query.name in chain.writes
                    self._meters.record(query.name, done, event.now, rows_in=rows_in, ends=ends)


def waiting_for(state: QueryState, board: Board, log: QueueLog) -> Waiting:
    """What waits in the queues of a query, those of operators that it shares with others among them."""
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
    return QueueLength(rows, log.bytes(stream, first, first + rows), log.arrival(stream, first), min(1.0, selectivity))
