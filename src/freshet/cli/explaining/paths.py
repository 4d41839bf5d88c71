"""The part of ``freshet explain`` on the paths of a query, with capacities and segments once costs are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from freshet.app.remembered.sharing import Costs
from freshet.engine.board import Board
from freshet.model import Query
from freshet.policies.mavstream.segments import capacity, path_segments
from freshet.quality import OperatorStatistics


def explain_paths(query: Query, costs: Costs | None) -> Iterator[str]:
    """The lines on the paths of a query: the way of a tuple from each stream to the output (MAV §3.1)."""
    board = Board(lambda stream, first, end: 0, lambda nodes: "")
    state = board.add(query)
    known = costs or {}
    for operator in board.of(state):
        if (figures := known.get(operator.node.name)) is not None:
            operator.statistics = OperatorStatistics.given(figures.cost, figures.selectivity)
    for path in _paths(board, state.root):
        names = [board.operators[number].node.name for number in path]
        yield f"path {' > '.join(names)}{_figures(board, path, all(name in known for name in names))}"


def _paths(board: Board, number: int) -> Iterator[tuple[int, ...]]:
    """The paths that end at an operator."""
    operator = board.operators[number]
    if any(edge.edge.kind != "queue" for edge in operator.edges):
        yield (number,)
    for source in operator.inputs:
        yield from ((*path, number) for path in _paths(board, source))


def _figures(board: Board, path: Sequence[int], known: bool) -> str:
    if not known:
        return ": its capacity is known once it has run"
    ends = [board.operators[segment.nodes[-1]].node.name for segment in path_segments(board, path)]
    cut = "one segment" if len(ends) == 1 else f"segments end at {', '.join(ends)}"
    return f": takes {capacity(board, path):.3g} tuples/s of work; {cut}"
