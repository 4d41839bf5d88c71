"""Which tuples may still be looked up in a table."""

from __future__ import annotations

from freshet.engine.board import Board


def streams_before(board: Board, table: str) -> list[str]:
    """Outputs, intermediate queues and states of queries whose tuples may still meet a table.

    Declared streams are left out: any of them may be read by a query that is yet to come.
    """
    found: dict[str, None] = {}
    for query in board.network:
        for path in board.network.paths(query):
            places = [place for place, number in enumerate(path) if board.lookups.get(number) == table]
            if places:
                _add_path(board, path[: places[-1] + 1], found)
    return list(found)


def _add_path(board: Board, path: tuple[int, ...], found: dict[str, None]) -> None:
    source = board.operators[path[0]].node.reads
    if source in board.network and source not in found:
        found[source] = None
        for above in board.network.paths(source):
            _add_path(board, above, found)
    for number in path:
        node, fold = board.operators[number].node, board.fold(number)
        if not node.is_first:
            found[node.reads] = None
        if fold is not None:
            found |= dict.fromkeys(board.folds[fold.fold].streams)
