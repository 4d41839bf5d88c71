"""Thinning: under overload a query may keep only a share of what comes in at its own edges (MAV §4.3).

A policy asks for it by the action :class:`~freshet.model.Shed`. It takes effect with the next unit that is bound; the
unit's own commit enters in the ledger what it did not keep. Only edges from streams and outputs can be thinned: the
offsets of their tuples are in the log, so that a replay, or a batch over log and ledger, drops the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from freshet.engine.board import Board
from freshet.engine.states import EdgeState, QueryState
from freshet.model import Keep, Shed, UserError
from freshet.model.promises.keep import check_ratio
from freshet.model.scheduling.unit import Worths
from freshet.quality.value_sketch import ValueSketch
from freshet.sql.value import value_over


class Thinning:
    """Knows which queries are thinned, and sets what their edges keep.

    Args:
        board: The engine's.
        schemas: Columns of streams and outputs, which the engine brings up to date.
    """

    def __init__(self, board: Board, schemas: Mapping[str, pa.Schema]) -> None:
        self._board, self._schemas = board, schemas
        self.sheds: Final[dict[str, Shed]] = {}
        """What queries are to keep, by name; queries that keep everything are not there."""
        self._sketches: dict[str, ValueSketch] = {}

    def shed(self, action: Shed, state: QueryState) -> None:
        """Keeps a share of what comes in for a query, or everything again.

        Raises:
            UserError: The query does not allow it, or shares its operators.
        """
        check_ratio(action.ratio)
        why = why_not(self._board, state)
        if why is not None and action.ratio < 1.0:
            raise UserError(why)
        self.sheds.pop(action.query, None)
        if action.ratio < 1.0:
            self.sheds[action.query] = action
        self.apply(state)

    def apply(self, state: QueryState) -> None:
        """Sets what the edges of a query keep."""
        action = self.sheds.get(state.name)
        for edge in own_edges(self._board, state):
            edge.keep = None if action is None else self._keep(edge, action, state.promises.value)

    def promised(self, state: QueryState) -> None:
        """Other things are promised to a query: perhaps it may not be thinned any more, or has another value."""
        if "thin" not in state.promises.overload:
            self.sheds.pop(state.name, None)
        self.apply(state)

    def forget(self, state: QueryState) -> None:
        """A query goes."""
        self.sheds.pop(state.name, None)
        for edge in own_edges(self._board, state):
            self._sketches.pop(edge.edge.reader, None)

    def _keep(self, edge: EdgeState, action: Shed, value: str | None) -> Keep:
        reader, schema = edge.edge.reader, self._schemas.get(edge.edge.stream)
        worth = None if value is None or schema is None else value_over(value, schema)
        return self._cut(Keep(action.ratio, reader, worth, reason=action.reason))

    def _cut(self, keep: Keep) -> Keep:
        sketch = self._sketches.get(keep.edge)
        if keep.value is None or sketch is None:
            return keep
        bound, ties = sketch.cut(keep.ratio)
        return replace(keep, bound=bound, ties=ties)

    def learn(self, worths: Iterable[Worths]) -> None:
        """Takes what tuples were worth, and cuts elsewhere if the present cut keeps too many or too few."""
        found = {each.edge: each for each in worths}
        for each in found.values():
            self._sketches.setdefault(each.edge, ValueSketch()).add(each)
        for query in self.sheds if found else ():
            for edge in own_edges(self._board, self._board.queries[self._board.numbers[query]]):
                if edge.edge.reader in found and edge.keep is not None and not self._fits(edge.keep):
                    edge.keep = self._cut(edge.keep)

    def _fits(self, keep: Keep) -> bool:
        return keep.bound is not None and self._sketches[keep.edge].fits(keep.bound, keep.ties, keep.ratio)


def own_edges(board: Board, state: QueryState) -> Iterator[EdgeState]:
    """The edges at which a query reads streams and outputs."""
    return (edge for operator in board.of(state) for edge in operator.edges if edge.edge.kind != "queue")


def why_not(board: Board, state: QueryState) -> str | None:
    """Why a query cannot be thinned; None: it can."""
    if "thin" not in state.promises.overload:
        allowed = ", ".join(f'"{word}"' for word in (*state.promises.overload, "thin"))
        return f"query {state.name} may not be thinned: to allow it, declare overload = [{allowed}]"
    if state.query.is_periodic:
        return f"query {state.name} has a PERIOD: the levels of its instances say what they keep"
    for operator in board.of(state):
        others = [other.name for other in board.serving(operator) if other is not state]
        if others:
            return f"query {state.name} cannot be thinned while it shares {operator.node.name} with {', '.join(others)}"
    return None
