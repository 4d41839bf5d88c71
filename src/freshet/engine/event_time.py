"""How far event time is in front of and behind every operator.

Everything follows from the watermarks of the streams at the committed cursors: a bound on the event times of all
tuples that an operator has not processed. Bounds never become wrong later, so what was known once stays known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from freshet.engine.binding import trains_of
from freshet.engine.board import Board
from freshet.engine.protocols import QueueLog
from freshet.engine.states import EdgeState, FoldState, OperatorState
from freshet.model import Chain
from freshet.model.operators import Time, latest


def has_state(fold: FoldState, log: QueueLog) -> bool:
    """Whether a fold remembers anything that the passing of time could bring out."""
    return log.end(fold.streams[0]) > fold.lows[0]


class Moment:
    """Event time at all operators, as the log is or as it will be when a unit has been committed.

    Args:
        board: What waits where.
        log: Has the watermarks of streams.
        chains: Those of the unit.
        acted: For folds that the unit runs, how far event time comes in them, by port.
    """

    def __init__(
        self,
        board: Board,
        log: QueueLog,
        chains: Sequence[Chain] = (),
        acted: Mapping[str, Sequence[Time]] | None = None,
    ) -> None:
        self._board, self._log, self._acted = board, log, dict(acted or {})
        self._ends = {edge: train.end for chain in chains for edge, train in trains_of(board, chain)}
        self._fed = {edge for chain in chains for stream in chain.writes for edge in board.readers.get(stream, ())}
        self._marks: dict[EdgeState, Time] = {}

    def before(self, edge: EdgeState) -> Time:
        """From when on tuples are that come in at an edge."""
        if edge not in self._marks:
            # What is known cannot become less: tuples that now lie in a queue were still to come when it was learned.
            self._marks[edge] = latest(edge.mark, self._computed(edge))
        return self._marks[edge]

    def _computed(self, edge: EdgeState) -> Time:
        end = self._ends.get(edge, edge.cursor)
        if edge.edge.source is None or edge in self._fed or edge.end > end:
            return self._log.watermark(edge.edge.stream, end)
        return self.behind(self._board.operators[edge.edge.source])

    def behind(self, operator: OperatorState) -> Time:
        """From when on tuples are that come out of an operator."""
        before = [self.before(edge) for edge in operator.edges]
        return operator.node.operator.watermark(before, lambda port: self.acted(operator, port))

    def acted(self, operator: OperatorState, port: int) -> Time:
        """How far event time has come in what a fold has done; one that remembers nothing has nothing to do."""
        assert isinstance(operator, FoldState), f"{operator.node.name} is no fold"
        if operator.node.name in self._acted:
            return self._acted[operator.node.name][port]
        return operator.seen[port] if has_state(operator, self._log) else self.possible(operator)[port]

    def possible(self, fold: FoldState) -> tuple[Time, ...]:
        """How far event time allows a fold to act, by port."""
        return tuple(latest(seen, self.before(edge)) for seen, edge in zip(fold.seen, fold.edges, strict=True))

    def act(self, fold: FoldState) -> tuple[Time, ...]:
        """Has a fold act so far. The folds in front of it come first."""
        self._acted[fold.node.name] = done = self.possible(fold)
        return done
