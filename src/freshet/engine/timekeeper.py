"""The timekeeper: finds folds that have work because event time has moved on, and tells others how far it is.

Everything follows from the watermarks of the streams at the committed cursors: a bound on the event times of all
tuples that an operator has not processed. Bounds never become wrong later, so what was known once stays known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from freshet.engine.binding import trains_of
from freshet.engine.board import Board
from freshet.engine.fold_states import FoldStates, WantedParts
from freshet.engine.protocols import QueueLog
from freshet.engine.settle import commit_of, with_queues
from freshet.engine.states import EdgeState, FoldState, OperatorState, QueryState
from freshet.model import Chain, Commit, State, Unit, UnitResult, state_stream
from freshet.model.operators import Time, earliest, latest
from freshet.quality import Remembered


class Timekeeper:
    """Follows event time through the operators.

    Only queries with folds, and those whose outputs lead to one, take part; the others cost nothing.
    """

    def __init__(self, board: Board, log: QueueLog, parts: WantedParts) -> None:
        self._board, self._log = board, log
        self.remembered = FoldStates(log, parts)
        """Where the states of folds are."""
        self._concerned: frozenset[int] = frozenset()
        """The queries to which event time matters: they have folds, or what they write leads to one."""
        self.news: dict[str, int] = {}
        """Watermarks of outputs that are not in the log yet."""

    # Queries

    def start(self, fold: FoldState) -> None:
        """Takes up a fold where it was."""
        self.remembered.start(fold)
        # A unit leaves in the first state streams how far it has brought the ports.
        fold.seen = [self._told(state_stream(fold.node.name, port)) for port in range(fold.ports)]

    def changed(self) -> None:
        """Queries came or went."""
        self.news = {name: time for name, time in self.news.items() if name in self._board.numbers}
        self._concerned = self.leading_to(query for fold in self._board.folds() for query in fold.queries)

    # News

    def concerned(self, nodes: Iterable[int]) -> set[int]:
        """The queries that need some operators, if event time matters to any query."""
        nodes = nodes if self._concerned else ()
        return {query for number in nodes for query in self._board.operators[number].queries}

    def _concerns(self, operator: OperatorState) -> bool:
        return not self._concerned.isdisjoint(operator.queries)

    def leading_to(self, queries: Iterable[int]) -> frozenset[int]:
        """These queries, and those whose outputs they read, directly or by way of others."""
        board, found = self._board, set(queries)
        waiting = list(found)
        while waiting:
            streams = board.queries[waiting.pop()].query.graph.streams
            above = {board.numbers[stream] for stream in streams if stream in board.numbers}
            waiting += above - found
            found |= above
        return frozenset(query for query in found if not board.queries[query].query.is_periodic)

    def moved(self, streams: Iterable[str]) -> list[int]:
        """Looks at the queries for which these streams bring news of event time; returns the operators that are closing
        since. All new tuples must be in the queues of the board by now."""
        queries: dict[int, None] = {}
        for stream in streams if self._concerned else ():
            for edge in self._board.readers.get(stream, ()):
                operator = self._board.operators[edge.edge.node]
                concerned = [query for query in operator.queries if query in self._concerned and query not in queries]
                if concerned and latest(_logged(self._log, edge, edge.cursor), edge.mark) != edge.mark:
                    queries |= dict.fromkeys(concerned)
        return self.look(queries)

    def look(self, queries: Iterable[int]) -> list[int]:
        """Brings what is known of queries up to date; returns the operators that are closing since."""
        if not self._concerned:
            return []
        moment, closing = Moment(self._board, self._log, self.remembered), []
        states = (self._board.queries[query] for query in queries if query in self._concerned)
        for state in (state for state in states if state.active):
            for operator in self._board.of(state):
                for edge in operator.edges:
                    edge.mark = moment.before(edge)
            closing += [fold.node.number for fold in self._board.folds(state.operators) if self._close(fold, moment)]
            self._tell(state, moment)
        return closing

    def _close(self, fold: FoldState, moment: Moment) -> bool:
        """Makes a fold ready that has something to do; returns whether that is new."""
        before, is_due = fold.closing, fold.node.operator.is_due(fold.seen, moment.possible(fold))
        is_due = is_due and self.remembered.has_state(fold)
        fold.closing = not fold.running and (is_due or self.remembered.is_scattered(fold))
        if fold.closing and not before:
            fold.closing_since = self._board.now
        self._board.refresh(fold)
        return fold.closing and not before

    def _tell(self, state: QueryState, moment: Moment) -> None:
        """Notes how far the output of a query is, if a reader wants to know it."""
        readers = (self._board.operators[edge.edge.node] for edge in self._board.readers.get(state.name, ()))
        if not any(map(self._concerns, readers)):
            return
        time, told = moment.behind(self._board.operators[state.root]), self._told(state.name)
        if time is not None and latest(time, told) != told:
            self.news[state.name] = time

    def _told(self, stream: str) -> int | None:
        return self._log.watermark(stream, self._log.end(stream))

    # Units

    def _folds(self, chains: Iterable[Chain]) -> list[FoldState]:
        """The folds in chains, each after those in front of it."""
        return self._board.folds(sorted(number for chain in chains for number in chain.nodes))

    def states(self, chains: Sequence[Chain]) -> tuple[State, ...]:
        """The states of the folds that chains run."""
        folds = self._folds(chains)
        if not folds:
            return ()
        moment = Moment(self._board, self._log, self.remembered, chains)
        rows = max([train.rows for chain in chains for train in chain.trains], default=0)
        return tuple([self.remembered.state(fold, moment.act(fold), rows) for fold in folds])

    def began(self, unit: Unit) -> None:
        """A unit runs, its folds with it."""
        if unit.states:
            for fold in self._folds(unit.chains):
                assert fold.running == 1, f"two units run {fold.node.name}"
                fold.closing = False
                self._refresh(fold)

    def commit_of(self, result: UnitResult, chains: Sequence[Chain]) -> Commit:
        """The commit of those chains of a unit that take effect, with changes of states and with watermarks."""
        commit = commit_of(result, self._board, chains)
        written = {member[0] for file in commit.files for member in file.members}
        marks = self._marks(result.unit, with_queues(result.unit, self._board, chains), written)
        return replace(commit, cursors=(*commit.cursors, *self._moves(result, chains)), watermarks=marks)

    def _moves(self, result: UnitResult, chains: Sequence[Chain]) -> list[tuple[str, str, int, int]]:
        if not result.unit.states:
            return []
        lows = {stream: low for fold in self._folds(chains) for stream, low in fold.lows.items()}
        dropped = [(stream, rows) for done in result.chains for stream, rows in done.dropped if rows and stream in lows]
        assert len(dropped) == len({stream for stream, _ in dropped}), "a state is dropped from twice"
        return [(stream, stream, lows[stream], lows[stream] + rows) for stream, rows in dropped]

    def _marks(self, unit: Unit, chains: Sequence[Chain], written: set[str]) -> tuple[tuple[str, int], ...]:
        if not self._concerned:
            return ()
        lasts = [(self._board.operators[chain.nodes[-1]], chain.writes) for chain in chains]
        concerned = [(operator, writes) for operator, writes in lasts if self._concerns(operator)]
        if not concerned:
            return ()
        mine = {fold.node.name for fold in self._folds(chains)}
        states = [state for state in unit.states if state.fold in mine]
        moment = Moment(self._board, self._log, self.remembered, chains, states)
        marks = {state_stream(state.fold, port): time for state in states for port, time in enumerate(state.after)}
        for operator, writes in concerned:
            marks |= {stream: moment.behind(operator) for stream in writes if stream in written}
        return tuple((stream, time) for stream, time in marks.items() if time is not None)

    def settled(self, result: UnitResult, chains: Sequence[Chain]) -> None:
        """A unit with folds ended, and these of its chains took effect."""
        states = {state.fold: state for state in result.unit.states}
        dropped = {stream: rows for done in result.chains for stream, rows in done.dropped}
        for fold in self._folds(chains):
            state = states[fold.node.name]
            fold.seen = list(state.after)
            self.remembered.became(fold, state.becomes or state.parts)
            fold.lows = {stream: low + dropped.get(stream, 0) for stream, low in fold.lows.items()}
        for fold in self._folds(result.unit.chains):
            self._refresh(fold)

    def _refresh(self, fold: FoldState) -> None:
        for number in (fold.node.number, *fold.before):
            self._board.refresh(self._board.operators[number])

    # Meters

    def rows_by_port(self, fold: FoldState) -> list[int]:
        """Number of rows that a fold remembers in each of its state streams, all parts together."""
        rows = [0] * fold.streams
        for place, stream in enumerate(fold.present):
            rows[place % fold.streams] += max(0, self._log.end(stream) - fold.lows.get(stream, 0))
        return rows

    def memory(self, state: QueryState) -> Remembered:
        """What the folds of a query remember, and how far event time has come in them."""
        folds = self._board.folds(state.operators)
        ranges = [(stream, low, self._log.end(stream)) for fold in folds for stream, low in fold.lows.items()]
        rows = sum(max(0, end - low) for _, low, end in ranges)
        size = sum(self._log.bytes(stream, low, end) for stream, low, end in ranges if low < end)
        time = earliest([edge.mark for fold in folds for edge in fold.edges])
        return Remembered(rows, size, None if time is None else time / 1e6)


class Moment:
    """Event time at all operators: now, or once chains of a unit are committed with the states of their folds."""

    def __init__(
        self,
        board: Board,
        log: QueueLog,
        remembered: FoldStates,
        chains: Sequence[Chain] = (),
        states: Sequence[State] = (),
    ) -> None:
        self._board, self._log, self._remembered = board, log, remembered
        self._acted = {state.fold: state.after for state in states}
        self._ends = {edge: train.end for chain in chains for edge, train in trains_of(board, chain)}
        self._fed = {edge for chain in chains for stream in chain.writes for edge in board.readers.get(stream, ())}
        self._marks: dict[EdgeState, Time] = {}

    def before(self, edge: EdgeState) -> Time:
        """A lower bound on the event times of tuples that are still to come in at an edge."""
        if edge not in self._marks:
            # What is known cannot become less: tuples that now lie in a queue were still to come when it was learned.
            self._marks[edge] = latest(edge.mark, self._computed(edge))
        return self._marks[edge]

    def _computed(self, edge: EdgeState) -> Time:
        end = self._ends.get(edge, edge.cursor)
        if edge.edge.source is None or edge in self._fed or edge.end > end:
            return _logged(self._log, edge, end)
        return self.behind(self._board.operators[edge.edge.source])

    def behind(self, operator: OperatorState) -> Time:
        """A lower bound on the event times of tuples that are still to come out of an operator."""
        before = [self.before(edge) for edge in operator.edges]
        return operator.node.operator.watermark(before, lambda port: self.acted(operator, port))

    def acted(self, operator: OperatorState, port: int) -> Time:
        """How far a fold has acted on event time; one that remembers nothing has nothing left to do."""
        assert isinstance(operator, FoldState), f"{operator.node.name} is no fold"
        if operator.node.name in self._acted:
            return self._acted[operator.node.name][port]
        return operator.seen[port] if self._remembered.has_state(operator) else self.possible(operator)[port]

    def possible(self, fold: FoldState) -> tuple[Time, ...]:
        """How far event time allows a fold to act, by port."""
        return tuple(latest(seen, self.before(edge)) for seen, edge in zip(fold.seen, fold.edges, strict=True))

    def act(self, fold: FoldState) -> tuple[Time, ...]:
        """Lets a fold act as far as it can. The folds in front of it must come first."""
        self._acted[fold.node.name] = done = self.possible(fold)
        return done


def _logged(log: QueueLog, edge: EdgeState, offset: int) -> Time:
    """What the log says: a lower bound on the times of the tuples from an offset on, or on their ordered keys."""
    if not edge.by_key:
        return log.watermark(edge.edge.stream, offset)
    mark = log.key_mark(edge.edge.stream, offset, edge.join)
    return None if mark is None else mark + 1
