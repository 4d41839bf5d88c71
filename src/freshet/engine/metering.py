"""Metering: the observer that brings the meters up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from freshet.engine.board import Board
from freshet.engine.events import (
    Added,
    Began,
    Committed,
    Decided,
    Dropped,
    Event,
    Failed,
    Held,
    Promised,
    Quarantined,
)
from freshet.model import Chain, ChainResult, Train, UnitResult
from freshet.quality import Meters


class Metering:
    """Has the meters follow the events.

    Args:
        meters: What is brought up to date.
        board: Knows whose a chain is.
    """

    def __init__(self, meters: Meters, board: Board) -> None:
        self._meters, self._board = meters, board
        self._takes: Final[dict[type, Callable[[Any], object]]] = {
            Began: lambda event: meters.begin(event.now),
            Added: lambda event: meters.add_query(event.query, event.now, event.promises, event.streams),
            Promised: lambda event: meters.promise(event.query, event.promises),
            Dropped: lambda event: meters.drop_query(event.query),
            Decided: lambda event: meters.deciding(event.seconds),
            Committed: self._committed,
            Failed: lambda event: self._ran(event.result),
            Held: lambda event: meters.hold(event.query, event.reason),
            Quarantined: lambda event: meters.quarantine(event.query, event.reason),
        }

    def tell(self, event: Event) -> None:
        """Something happened."""
        take = self._takes.get(type(event))
        if take is not None:
            take(event)

    def _ran(self, result: UnitResult) -> None:
        self._meters.busy(result.finished - result.started)

    def _committed(self, event: Committed) -> None:
        self._ran(event.result)
        effective = {id(chain) for chain in event.chains}
        for chain, done in zip(event.result.unit.chains, event.result.chains, strict=True):
            if id(chain) in effective:
                self._record(chain, done, event.now)

    def _record(self, chain: Chain, done: ChainResult, departure: float) -> None:
        """Meters a chain for all queries that need it."""
        first, rows_in = self._board.operators[chain.nodes[0]], 0
        for edge, each in zip(first.edges, chain.inputs, strict=True):
            if isinstance(each, Train) and edge.edge.kind != "queue":
                rows_in += each.rows
        for number in first.queries:
            name = self._board.queries[number].name
            self._meters.record(name, done, departure, rows_in=rows_in, ends=name in chain.writes)
