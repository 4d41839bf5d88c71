"""Resting cursors: a leading input of a join by ordered keys stays in its own log (disk-buffer first, WU §3.5.2).

Behind the place where the mark of an input has reached the newest key of another one, every tuple that counts has a
greater key. So it has no partner there yet, no row of the join waits for it, and no tuple without a partner can be
decided by it. Its cursor rests at that place until the others have come further. What rests is in the log already:
nothing is written twice, and nothing has to be read ahead, because the unit that takes the new tuples of the others
takes those that rested with them. Resting tuples do not count as waiting.

Where a cursor rests decides no answer: marks hold at cursors, and the others remember their tuples until the mark at
this cursor has passed them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from freshet.engine.board import Board
from freshet.engine.protocols import QueueLog
from freshet.engine.states import EdgeState, FoldState, OperatorState
from freshet.model import Join
from freshet.model.join_buffer import may_rest

TIMES_READ: Final = 3.0
"""With ``auto``, a lead must last so many times as long as a step takes before it touches a tuple (WU §3.5.2)."""
BEARABLE: Final = 0.5
"""With ``auto``, working off all that rests takes at most this share of the latency that the query tolerates."""


_ANY: Final = 2**62


@dataclass(slots=True, eq=False)
class Leading:
    """An input that may rest, for one join.

    Args:
        fold: The join.
        edge: Where it comes in.
        others: Where the other inputs of the join come in.
        until_decided: Whether rows of the join wait for the marks of the others, so that it may rest until these pass.
        always: Whether it rests however short the lead is.
    """

    fold: FoldState
    edge: EdgeState
    others: tuple[EdgeState, ...]
    until_decided: bool
    always: bool


@dataclass(slots=True)
class Resting:
    """Knows where cursors rest. Only on the engine's thread."""

    board: Board
    log: QueueLog
    _leads: dict[EdgeState, list[Leading]] = field(default_factory=dict)
    _by_stream: dict[str, dict[EdgeState, None]] = field(default_factory=dict)
    """The edges that a stream may bring on: those of the other inputs of its joins."""

    def changed(self) -> None:
        """Queries came or went."""
        for edge in self._leads:
            edge.rests = False
        self._leads, self._by_stream = {}, {}
        joins = {fold: ports for fold in self.board.folds() if fold.queries and (ports := self._ports(fold))}
        for operator in {self.board.operators[edge.edge.node] for ports in joins.values() for edge in ports}:
            nearest = self._nearest(operator)
            if all(fold in joins for fold in nearest):
                leads = [self._lead(operator.edges[0], fold, joins[fold]) for fold in nearest]
                self._leads[operator.edges[0]] = leads
                operator.edges[0].rests = True
                for other in (other for lead in leads for other in lead.others):
                    self._by_stream.setdefault(other.edge.stream, {}).setdefault(operator.edges[0])

    def brought_on(self, streams: Iterable[str]) -> list[EdgeState]:
        """The edges that may go on because these streams have come further."""
        return list(dict.fromkeys(edge for stream in streams for edge in self._by_stream.get(stream, ())))

    def end(self, edge: EdgeState, end: int) -> int:
        """Up to where the tuples of an edge wait; those behind rest. ``end``: the end of its stream."""
        leads = self._leads.get(edge)
        return end if leads is None else max(edge.end, *(self._until(lead, end) for lead in leads))

    def ports(self, fold: FoldState) -> tuple[EdgeState, ...]:
        """The edges at which the inputs of a join come in, if they may rest; else nothing."""
        ports = self._ports(fold)
        return ports if all(edge in self._leads for edge in ports) else ()

    def rows(self, edge: EdgeState) -> int:
        """Number of tuples that rest."""
        return max(0, self.log.end(edge.edge.stream) - edge.end) if edge in self._leads else 0

    def _until(self, lead: Leading, end: int) -> int:
        """Where a cursor rests for one join."""
        edge, come = lead.edge, [self._come(other, lead.until_decided) for other in lead.others]
        known = [key for key in come if key is not None]
        if len(known) < len(come):
            reached: int | None = edge.end  # of some input nothing has come
        else:
            reached = self.log.reached(edge.edge.stream, min(known), edge.join)
        if reached is None or reached >= end:
            return end
        if lead.always:
            return reached
        # Nobody asked for it, so it must not hold a source back, nor delay an answer beyond what the query tolerates.
        held = self.log.held_from(edge.edge.stream, max(reached, edge.end))
        first = max(reached, edge.end, held, end - min(end, self._bearable(lead)))
        return first if self._is_worth(edge, reached, end) else end

    def _come(self, edge: EdgeState, decided: bool) -> int | None:
        """How far an input has come: its greatest key or, if only what is decided counts, its mark."""
        stream, end = edge.edge.stream, self.log.end(edge.edge.stream)
        mark, newest = self.log.key_mark(stream, end, edge.join), self.log.newest_key(stream)
        if decided or newest is None:
            return mark
        return newest if mark is None else max(mark, newest)

    def _bearable(self, lead: Leading) -> int:
        """How many tuples may rest: at worst one of another input lets all of them on, and its answers come when they
        are worked off."""
        tolerated = min(each.promises.tolerated for each in self.board.serving(lead.fold))
        if tolerated == math.inf:
            return _ANY
        way = {*lead.fold.before, lead.fold.node.number}
        seconds = self._seconds(self.board.operators[lead.edge.edge.node], lead.fold, way)
        return int(min(_ANY, max(0.0, BEARABLE * tolerated - self.board.overhead()) / seconds)) if seconds else _ANY

    def _seconds(self, operator: OperatorState, fold: FoldState, way: set[int]) -> float:
        """What a tuple costs from an operator on, up to and with a fold."""
        if operator is fold:
            return operator.cost
        readers = (self.board.operators[number] for number in operator.readers if number in way)
        return operator.cost + operator.selectivity * sum(self._seconds(each, fold, way) for each in readers)

    def _is_worth(self, edge: EdgeState, first: int, end: int) -> bool:
        """Whether what came since the place that the others have reached came over a long time."""
        lead = self.log.arrival(edge.edge.stream, end - 1) - self.log.arrival(edge.edge.stream, first)
        return lead > 0.0 and lead >= TIMES_READ * self.board.overhead()

    # The graph

    def _lead(self, edge: EdgeState, fold: FoldState, ports: tuple[EdgeState, ...]) -> Leading:
        operator = fold.node.operator
        assert isinstance(operator, Join)
        others = tuple(other for other in ports if other is not edge)
        asked = any(each.query.join_buffer != "auto" for each in self.board.serving(fold))
        return Leading(fold, edge, others, operator.sorted, asked or bool(edge.join))

    def _nearest(self, operator: OperatorState) -> list[FoldState]:
        """The folds behind an operator with none in between."""
        folds = operator.folds
        return [each for each in folds if not any(other.node.number in each.before for other in folds)]

    def _ports(self, fold: FoldState) -> tuple[EdgeState, ...]:
        """The streams that come in at the ports of a join by ordered keys, each by a way of its own, if their cursors
        may rest; else nothing."""
        operator = fold.node.operator
        if not isinstance(operator, Join) or not all(
            may_rest(each.query.join_buffer) for each in self.board.serving(fold)
        ):
            return ()
        found = [self._stream(edge) for edge in fold.edges]
        ports = tuple(edge for edge in found if edge is not None)
        return ports if len(ports) == len(found) else ()

    def _stream(self, edge: EdgeState) -> EdgeState | None:
        """Where the stream comes in that leads to an edge, if it is one and ordered."""
        while edge.edge.source is not None:
            operator = self.board.operators[edge.edge.source]
            if isinstance(operator, FoldState) or len(operator.edges) != 1:
                return None
            [edge] = operator.edges
            if edge.by_key and edge.window is None:
                return edge
        return None
