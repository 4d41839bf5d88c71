"""The board: the engine's own record of what waits where, which policies read as their view."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from freshet.engine.states import EdgeState, Expires, FoldState, OperatorState, QueryState, Size, WaitingInstance
from freshet.model import Chain, InputWindow, Network, NetworkNode, Promises, Query, version_stream
from freshet.model.promises.promise import shared
from freshet.quality import OverheadStatistics

DROPPED: Final = "dropped"
"""Reason of a query that was taken out."""
_NOTABLE: Final = 0.2
"""Share by which costs must have changed for promises to be worked out again."""


@dataclass(slots=True)
class Board:
    """All operators and queries, their queues, and which of them may run."""

    size: Size
    way: Callable[[Collection[int]], str]
    """The way in which a set of operators would run."""
    expires: Expires = lambda stream, offset: math.inf
    network: Network = field(default_factory=Network)
    operators: list[OperatorState] = field(default_factory=list)
    queries: list[QueryState] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    """Numbers of the queries that were not dropped, by name."""
    stopped: set[int] = field(default_factory=set)
    """Numbers of the queries that were dropped or quarantined."""
    strict: set[str] = field(default_factory=set)
    """Names of the queries that an evaluation error fails."""
    ready: dict[int, None] = field(default_factory=dict)
    readers: dict[str, list[EdgeState]] = field(default_factory=dict)
    """Edges that read a stream."""
    calls: OverheadStatistics = field(default_factory=OverheadStatistics)
    """What units cost before they touch a tuple."""
    now: float = 0.0
    deciding: float = 0.0
    workers: int = 1
    idle_workers: int = 0
    pending: int = 0
    """Number of operators that may run and for which something waits, also if they run already."""
    instances: list[WaitingInstance] = field(default_factory=list)
    """Instances of periodic queries that are not answered yet, by release."""
    shapes: dict[tuple[int, ...], Any] = field(default_factory=dict)
    """Steps that were bound before, for :mod:`~freshet.engine.binding`."""
    calls_by_way: dict[str, OverheadStatistics] = field(default_factory=dict)
    undivided: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Operators that run in one unit or not at all, by the number of each: a join with a bound on its memory, and the
    ways into it. What it remembers is reckoned in the append sequence, so no input may go further there than another,
    also if a policy runs a box at a time."""
    _free: list[int] = field(default_factory=list)
    """Numbers of dropped queries, for others to come."""
    _rests: dict[tuple[int, int], float] = field(default_factory=dict)
    """By shared operator and query: the seconds behind the operator, as its promises reckon with them."""

    # Queries

    def add(self, query: Query) -> QueryState:
        """Numbers a query and those of its operators that are new."""
        numbers = self.network.add(query)
        state = QueryState(query, numbers, self.network.root(query.name))
        self.numbers[query.name] = number = self._free.pop() if self._free else len(self.queries)
        self.queries[number : number + 1] = [state]
        if query.on_error == "fail":
            self.strict.add(query.name)
        for node in (self.network.nodes[each] for each in numbers):
            if self.network.queries(node.number) == (query.name,):
                self._add_operator(node, query.windows)
        self._look_at(numbers)
        return state

    def own(self, states: Iterable[QueryState]) -> list[OperatorState]:
        """The operators that no other query than these needs, each after those that it reads."""
        queries = {self.numbers[state.name]: state for state in states}
        numbers = dict.fromkeys(number for state in queries.values() for number in state.operators)
        return [self.operators[number] for number in numbers if queries.keys() >= set(self.operators[number].queries)]

    def _add_operator(self, node: NetworkNode, windows: Mapping[str, InputWindow]) -> None:
        by_key, join = node.operator.ordered_by is not None, node.operator.bounded_by
        edges = tuple(
            EdgeState(edge, window=windows.get(edge.reader), by_key=by_key, join=join) for edge in node.queues
        )
        before = {number for source in node.inputs for number in (source, *self.operators[source].before)}
        kind = FoldState if node.operator.remembers else OperatorState
        state = kind(
            node, self.size, self.expires, edges, node.operator.tag, len(edges), node.inputs, tuple(sorted(before))
        )
        self.operators[node.number : node.number + 1] = [state]
        for edge in edges:
            if edge.window is None:
                self.readers.setdefault(edge.edge.stream, []).append(edge)
        if isinstance(state, FoldState):
            for number in before:
                self.operators[number].folds += (state,)
            if any(edge.join for number in before for edge in self.operators[number].edges):
                together = (*sorted(before), node.number)
                self.undivided |= dict.fromkeys(together, together)

    def drop(self, state: QueryState) -> list[OperatorState]:
        """Takes a query out; its record stays until another query gets its number. Returns the operators that nobody
        needs any more."""
        state.active, state.reason = False, DROPPED
        number = self.numbers.pop(state.name)
        self.stopped.discard(number)
        self.strict.discard(state.name)
        self._free.append(number)
        gone = self.network.drop(state.name)
        operators = [self.operators[number] for number in gone]
        for operator in operators:
            self._forget(operator)
        self._look_at(state.operators)
        self.free(gone)
        return operators

    def _forget(self, operator: OperatorState) -> None:
        self.undivided.pop(operator.node.number, None)
        for edge in (edge for edge in operator.edges if edge.window is None):
            readers = self.readers[edge.edge.stream]
            readers.remove(edge)
            if not readers:
                del self.readers[edge.edge.stream]
        for before in (self.operators[number] for number in operator.before):
            before.folds = tuple(fold for fold in before.folds if fold is not operator)

    def free(self, numbers: Iterable[int]) -> None:
        """Frees the numbers of operators that nobody needs and no unit runs."""
        unused = (number for number in numbers if not self.operators[number].queries)
        self.network.free([number for number in unused if not self.operators[number].running])

    def deactivate(self, state: QueryState, reason: str) -> list[OperatorState]:
        """Keeps a query from running. Returns the operators that no active query needs."""
        state.active, state.reason = False, reason
        self.stopped.add(self.numbers[state.name])
        self._look_at(state.operators)
        return [operator for operator in self.of(state) if not operator.active]

    def hold(self, state: QueryState, why: str | None) -> None:
        """Keeps a query from running while its output takes nothing; None: lets it continue."""
        could_run, state.held = state.may_run, why
        if state.may_run != could_run:
            self._look_at(state.operators)

    def hold_back(self, stream: str, held: Collection[str]) -> tuple[int, ...]:
        """Holds back the operator that writes to a stream while one of its streams is ``held``, or lets it continue;
        returns its queries if that is new."""
        number = self._writer(stream)
        is_held = number is not None and any(each in held for each in self.network.writes(number))
        if number is None or self.operators[number].held == is_held:
            return ()
        self.operators[number].held = is_held
        self._look_at((number,))
        return self.operators[number].queries

    def writing(self, stream: str) -> tuple[str, ...]:
        """The queries that need the writer of a stream."""
        number = self._writer(stream)
        return () if number is None else tuple(query.name for query in self.serving(self.operators[number]))

    def _writer(self, stream: str) -> int | None:
        if stream in self.numbers:
            return self.queries[self.numbers[stream]].root
        return next((edge.edge.source for edge in self.readers.get(stream, ())), None)

    def promise(self, state: QueryState, promises: Promises) -> None:
        """Changes the promises of a query."""
        state.query = replace(state.query, promises=promises)
        self._look_at(state.operators)

    def of(self, state: QueryState) -> Iterator[OperatorState]:
        """The operators of a query."""
        return (self.operators[number] for number in state.operators)

    def serving(self, operator: OperatorState) -> Iterator[QueryState]:
        """The queries that need an operator."""
        return (self.queries[query] for query in operator.queries)

    # Operators

    def folds(self, numbers: Iterable[int] | None = None) -> list[FoldState]:
        """The folds among some operators; None: among all."""
        some = range(len(self.operators)) if numbers is None else numbers
        return [operator for number in some if isinstance(operator := self.operators[number], FoldState)]

    def streams_before(self, table: str) -> list[str]:
        """Outputs, intermediate queues and states of queries whose tuples may still meet a table.

        Declared streams are left out: any of them may be read by a query that is yet to come.
        """
        found: dict[str, None] = {}
        for operator in self.operators:
            if operator.queries and version_stream(table) in operator.node.tables:
                self._add_before(operator.node.number, found)
        return list(found)

    def _add_before(self, number: int, found: dict[str, None]) -> None:
        """Adds the streams in front of an operator, and the states of the folds there."""
        numbers = (number, *self.operators[number].before)
        found |= dict.fromkeys(stream for fold in self.folds(numbers) for stream in fold.lows)
        edges = (edge.edge for number in numbers for edge in self.operators[number].edges)
        for edge in (edge for edge in edges if edge.kind != "stream" and edge.stream not in found):
            found[edge.stream] = None
            if edge.stream in self.numbers:
                self._add_before(self.queries[self.numbers[edge.stream]].root, found)

    def _look_at(self, numbers: Iterable[int]) -> None:
        """Brings what operators know of their queries up to date."""
        self.shapes.clear()
        network, operators = self.network, [self.operators[number] for number in numbers]
        for operator in operators:
            number = operator.node.number
            out = network.readers(number)
            operator.out = tuple(self.operators[edge.node].edges[edge.port] for edge in out)
            operator.readers = tuple(dict.fromkeys(edge.node for edge in out))
            operator.outputs = tuple(self.numbers[name] for name in network.outputs(number))
            operator.queries = tuple(self.numbers[name] for name in network.queries(number))
            operator.active = any(query.active for query in self.serving(operator))
            operator.may_run = not operator.held and any(query.may_run for query in self.serving(operator))
            self.refresh(operator)
        for operator in operators:
            self._promise(operator)

    def _promise(self, operator: OperatorState) -> None:
        if len(operator.queries) == 1:
            operator.promises = self.queries[operator.queries[0]].promises
        elif operator.queries:
            number = operator.node.number
            rests = {query: self._rest(number, query) for query in operator.queries}
            self._rests.update({(number, query): rest for query, rest in rests.items()})
            operator.promises = shared((self.queries[query].promises, rest) for query, rest in rests.items())

    def _rest(self, number: int, query: int) -> float:
        """Seconds that a tuple still takes in a query when an operator has let it through."""
        readers = (self.operators[reader] for reader in self.operators[number].readers)
        return sum(
            reader.cost + reader.selectivity * self._rest(reader.node.number, query)
            for reader in readers
            if query in reader.queries
        )

    def learn(self) -> list[int]:
        """Works out the promises of shared operators again if costs have changed much; returns their queries."""
        found: dict[int, None] = {}
        for (number, query), known in list(self._rests.items()):
            operator = self.operators[number]
            if len(operator.queries) < 2 or query not in operator.queries:
                del self._rests[number, query]
            elif abs(self._rest(number, query) - known) > _NOTABLE * known:
                self._promise(operator)
                found |= dict.fromkeys(operator.queries)
        return list(found)

    def refresh(self, operator: OperatorState) -> None:
        """Puts an operator into or out of ``ready`` after its queues changed."""
        if len(operator.edges) == 1:
            operator.waiting, operator.head_arrival = operator.edges[0].waiting, operator.edges[0].head_arrival
        else:
            operator.waiting = sum([edge.waiting for edge in operator.edges])
            operator.head_arrival = min([edge.head_arrival for edge in operator.edges])
        if operator.closing and not operator.waiting:
            operator.head_arrival = operator.closing_since
        operator.pending = operator.waiting or int(operator.closing)
        counts = operator.may_run and operator.pending > 0
        self.pending += counts - operator.counts
        operator.counts = counts
        free = not operator.running and not (operator.folds and any(fold.running for fold in operator.folds))
        if operator.pending and free and operator.may_run:
            self.ready.setdefault(operator.node.number)
        else:
            self.ready.pop(operator.node.number, None)

    def count(self, chain: Chain, units: int) -> None:
        """A chain is part of one unit more (1) or less (-1)."""
        first, *others = [self.operators[number] for number in chain.nodes]
        first.running += units
        self.refresh(first)
        for operator in others:
            operator.running += units
            if operator.pending:
                self.refresh(operator)

    # Costs

    def overhead(self, nodes: Collection[int] = ()) -> float:
        """Seconds that a step costs before it touches a tuple: of units that ran as these operators would, or of all
        units if none has. While there was only one, which may have been cold, the lesser of the two counts."""
        known = self.calls_by_way.get(self.way(nodes)) if nodes else None
        if known is None or (known.calls == 1 and known.seconds > self.calls.seconds):
            return self.calls.seconds
        return known.seconds

    def ran(self, nodes: Collection[int], overhead: float, way: str | None = None) -> None:
        """A unit of these operators had this overhead; it went another ``way`` than such units do, if that is given."""
        self.calls.add(overhead)
        self.calls_by_way.setdefault(way or self.way(nodes), OverheadStatistics()).add(overhead)
