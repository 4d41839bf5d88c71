"""Predictions for a query that runs: what each strategy would bring about until its next look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from freshet.engine.board import Board
from freshet.engine.states import QueryState
from freshet.policies import create
from freshet.quality.optimizer import Predictor

_LEAST_SHARE: Final = 0.1
"""Predictions leave a query at least this share of the workers' time."""


class Predicting:
    """Tells the predictor what comes in for a query, and what other queries leave it.

    Args:
        board: The engine's.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._start = board.now
        self._others: dict[str, tuple[float, float]] = {}
        """By query, when it was last predicted, and for how many seconds operators of others had run by then."""

    def begin(self, now: float) -> None:
        """The engine begins to run."""
        self._start = now

    def of(
        self, query: int, strategies: Iterable[str], came: Mapping[str, float], seconds: float
    ) -> dict[str, dict[str, float | None]]:
        """The measures of a query under each strategy, in the seconds to come.

        Args:
            query: Its number.
            strategies: Policies as users write them.
            came: By stream, tuples that came per second.
            seconds: How far ahead.
        """
        state = self._board.queries[query]
        arrivals = {
            operator.node.number: sum(came.get(edge.edge.stream, 0.0) for edge in operator.edges)
            for operator in self._board.of(state)
            if any(edge.edge.kind != "queue" for edge in operator.edges)
        }
        predictor = Predictor(self._board, query, arrivals, self._share_of(state))
        return {name: dict(predictor.predict(create(name), seconds).observed) for name in strategies}

    def _share_of(self, state: QueryState) -> float:
        """The share of the workers' time that other queries have left to a query since the last prediction for it."""
        now = self._board.now
        busy = sum(operator.statistics.seconds for operator in self._board.operators)
        others = busy - sum(operator.statistics.seconds for operator in self._board.of(state))
        since, before = self._others.get(state.name, (self._start, 0.0))
        self._others[state.name] = now, others
        free = 1.0 - max(0.0, others - before) / ((now - since) * self._board.workers) if now > since else 1.0
        return max(_LEAST_SHARE, free)
