"""How far event time is in front of and behind every operator.

Everything follows from the watermarks of the streams at the committed cursors: a bound on the event times of all
tuples that an operator has not processed. Bounds never become wrong later, so what was known once stays known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from freshet.engine.board import Board, FoldState
from freshet.engine.protocols import QueueLog
from freshet.model.operators import Time, earliest, latest


def has_state(fold: FoldState, log: QueueLog) -> bool:
    """Whether a fold remembers anything that the passing of time could bring out."""
    return log.end(fold.streams[0]) > fold.lows[0]


class Moment:
    """Event time at all operators, as the log is or as it will be when a unit has been committed.

    Args:
        board: What waits where.
        log: Has the watermarks of streams.
        ends: For operators that a unit starts at, where their trains end.
        fed: Operators whose queues the unit writes to.
        acted: For folds that the unit runs, how far event time comes in them, by port.
    """

    def __init__(
        self,
        board: Board,
        log: QueueLog,
        ends: Mapping[int, int] | None = None,
        fed: Collection[int] = (),
        acted: Mapping[str, Sequence[Time]] | None = None,
    ) -> None:
        self._board, self._log = board, log
        self._ends, self._fed, self._acted = ends or {}, fed, dict(acted or {})
        self._marks: dict[int, Time] = {}

    def before(self, number: int) -> Time:
        """From when on tuples are that come into an operator."""
        if number not in self._marks:
            # What is known cannot become less: tuples that now lie in a queue were still to come when it was learned.
            self._marks[number] = latest(self._board.operators[number].mark, self._computed(number))
        return self._marks[number]

    def _computed(self, number: int) -> Time:
        operator = self._board.operators[number]
        node, end = operator.node, self._ends.get(number, operator.cursor)
        if node.is_first or number in self._fed or operator.head + operator.waiting > end:
            return self._log.watermark(node.reads, end)
        return self.behind(node.path[node.path.index(number) - 1])

    def behind(self, number: int) -> Time:
        """From when on tuples are that come out of an operator."""
        fold = self._board.fold(number)
        if fold is None:
            return self.before(number)
        return fold.watermark([self.before(number)], lambda port: self.acted(fold.fold, port))

    def acted(self, fold: str, port: int) -> Time:
        """How far event time has come in what a fold has done; one that remembers nothing has nothing to do."""
        if fold in self._acted:
            return self._acted[fold][port]
        state = self._board.folds[fold]
        return state.seen[port] if has_state(state, self._log) else self.possible(state)[port]

    def possible(self, fold: FoldState) -> tuple[Time, ...]:
        """How far event time allows a fold to act, by port."""
        times = (earliest([self.before(number) for number in port]) for port in fold.ports)
        return tuple(latest(seen, time) for seen, time in zip(fold.seen, times, strict=True))

    def act(self, fold: FoldState) -> tuple[Time, ...]:
        """Has a fold act so far. The folds before it on its paths come first."""
        self._acted[fold.name] = done = self.possible(fold)
        return done
