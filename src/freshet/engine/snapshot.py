"""What waits for a query, for its meters."""

from __future__ import annotations

import math

from freshet.engine.board import Board
from freshet.engine.protocols import QueueLog
from freshet.engine.states import EdgeState, QueryState
from freshet.quality import QueueLength, Waiting


def waiting_for(state: QueryState, board: Board, log: QueueLog) -> Waiting:
    """What waits in the queues of a query, those of operators that it shares with others among them."""
    through: dict[int, float] = {}
    for number in reversed(state.operators):
        operator = board.operators[number]
        behind = sum(through.get(reader, 0.0) for reader in operator.readers) if number != state.root else 1.0
        through[number] = operator.selectivity * behind
    return Waiting.in_queues(
        _length(edge, through[operator.node.number], log) for operator in board.of(state) for edge in operator.edges
    )


def _length(edge: EdgeState, selectivity: float, log: QueueLog) -> QueueLength:
    rows, stream, first = edge.waiting + edge.in_flight, edge.edge.stream, edge.cursor
    if not rows:
        return QueueLength(0, 0, math.inf)
    return QueueLength(rows, log.bytes(stream, first, first + rows), log.arrival(stream, first), min(1.0, selectivity))
