"""Which tuples may still be looked up in a table."""

from __future__ import annotations

from freshet.engine.board import Board


def streams_before(board: Board, table: str) -> list[str]:
    """Outputs, intermediate queues and states of queries whose tuples may still meet a table.

    Declared streams are left out: any of them may be read by a query that is yet to come.
    """
    found: dict[str, None] = {}
    for number in (number for number, read in board.lookups.items() if read == table):
        _add_before(board, number, found)
    return list(found)


def _add_before(board: Board, number: int, found: dict[str, None]) -> None:
    """Adds the streams in front of an operator, and the states of the folds there."""
    for operator in [board.operators[each] for each in (number, *board.operators[number].before)]:
        if operator.fold is not None:
            found |= dict.fromkeys(operator.fold.streams)
        for edge in (
            edge.edge for edge in operator.edges if edge.edge.kind != "stream" and edge.edge.stream not in found
        ):
            found[edge.stream] = None
            if edge.stream in board.numbers:
                _add_before(board, board.queries[board.numbers[edge.stream]].root, found)
