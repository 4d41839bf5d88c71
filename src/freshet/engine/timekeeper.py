"""The timekeeper: which folds have something to do because event time went on, and who is told how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from freshet.engine.board import Board
from freshet.engine.event_time import Moment, has_state
from freshet.engine.protocols import QueueLog
from freshet.engine.states import FoldState, OperatorState, QueryState
from freshet.model import Chain, Commit, State, Train, Unit, UnitResult, state_stream
from freshet.model.operators import earliest, latest
from freshet.quality import Memory


class Timekeeper:
    """Follows event time through the operators.

    Only queries with folds, and those whose outputs lead to one, take part; the others cost nothing.

    Args:
        board: What waits where.
        log: Has the watermarks of streams.
    """

    def __init__(self, board: Board, log: QueueLog) -> None:
        self._board, self._log = board, log
        self._concerned: frozenset[int] | None = None
        self.news: dict[str, int] = {}
        """Watermarks of outputs that are not in the log yet."""

    # Queries

    def start(self, operator: OperatorState, streams: Callable[[str], int]) -> None:
        """Takes up an operator where it was; ``streams`` says how many state streams a fold has."""
        fold, owner = operator.fold, operator.node.query
        if fold is not None:
            fold.streams = tuple(state_stream(fold.name, number) for number in range(streams(fold.name)))
            fold.lows = [self._log.start_reader(each, each, "earliest", "state", owner) for each in fold.streams]
            # A unit leaves in the first state streams how far it has brought the ports.
            kept = (state_stream(fold.name, port) for port in range(operator.ports))
            fold.seen = [self._log.watermark(stream, self._log.end(stream)) for stream in kept]

    def changed(self) -> None:
        """Queries came or went."""
        self._concerned = None
        self.news = {name: time for name, time in self.news.items() if name in self._board.numbers}

    def _folds(self, state: QueryState) -> list[tuple[OperatorState, FoldState]]:
        return [(operator, operator.fold) for operator in self._board.of(state) if operator.fold is not None]

    # News

    @property
    def _matters_to(self) -> frozenset[int]:
        if self._concerned is None:
            self._concerned = self._find_concerned()
        return self._concerned

    def concerns(self, query: int) -> bool:
        """Whether event time matters to a query: it has folds, or what it writes leads to one."""
        return query in self._matters_to

    def concerned(self, nodes: Iterable[int]) -> set[int]:
        """The queries among those that need some operators to which event time matters."""
        if not self._matters_to:
            return set()
        return {query for number in nodes for query in self._board.operators[number].queries if self.concerns(query)}

    def _concerns_any(self, operator: OperatorState) -> bool:
        return any(map(self.concerns, operator.queries))

    def _find_concerned(self) -> frozenset[int]:
        board = self._board
        found = {query for operator in board.folds.values() for query in operator.queries}
        waiting = list(found)
        while waiting:
            edges = (edge.edge for operator in board.of(board.queries[waiting.pop()]) for edge in operator.edges)
            above = {
                board.numbers[edge.stream] for edge in edges if edge.kind == "output" and edge.stream in board.numbers
            }
            waiting += above - found
            found |= above
        return frozenset(found)

    def moved(self, streams: Iterable[str]) -> list[int]:
        """Looks at the queries for which streams that grew, or whose watermark moved, are news; returns operators that
        are closing since. All that has grown must be in the queues of the board by now."""
        queries: dict[int, None] = {}
        for stream in streams if self._matters_to else ():
            for edge in self._board.readers.get(stream, ()):
                operator = self._board.operators[edge.edge.node]
                concerned = [query for query in operator.queries if self.concerns(query) and query not in queries]
                if concerned and latest(self._log.watermark(stream, edge.cursor), edge.mark) != edge.mark:
                    queries |= dict.fromkeys(concerned)
        return self.look(queries)

    def look(self, queries: Iterable[int]) -> list[int]:
        """Brings what is known of queries up to date; returns the operators that are closing since."""
        if not self._matters_to:
            return []
        moment, closing = Moment(self._board, self._log), []
        states = (self._board.queries[query] for query in queries if self.concerns(query))
        for state in (state for state in states if state.active):
            for operator in self._board.of(state):
                for edge in operator.edges:
                    edge.mark = moment.before(edge)
            closing += [
                operator.node.number for operator, fold in self._folds(state) if self._close(operator, fold, moment)
            ]
            self._tell(state, moment)
        return closing

    def _close(self, operator: OperatorState, fold: FoldState, moment: Moment) -> bool:
        """Shows a fold that has something to do as an operator that is ready; returns whether that is new."""
        before = operator.closing
        operator.closing = not operator.running and self._is_due(fold, moment.possible(operator))
        if operator.closing and not before:
            operator.closing_since = self._board.now
        self._board.refresh(operator)
        return operator.closing and not before

    def _is_due(self, fold: FoldState, times: Sequence[int | None]) -> bool:
        return fold.operator.is_due(fold.seen, times) and has_state(fold, self._log)

    def _tell(self, state: QueryState, moment: Moment) -> None:
        """Notes how far the output of a query is, where somebody wants to know it."""
        readers = (self._board.operators[edge.edge.node] for edge in self._board.readers.get(state.name, ()))
        if not any(map(self._concerns_any, readers)):
            return
        time, told = moment.behind(self._board.operators[state.root]), self._told(state.name)
        if time is not None and latest(time, told) != told:
            self.news[state.name] = time

    def _told(self, stream: str) -> int | None:
        return self._log.watermark(stream, self._log.end(stream))

    def telling(self) -> Commit:
        """What is to be committed so that others learn how far event time is."""
        return Commit(watermarks=tuple(self.news.items()))

    def told(self) -> None:
        """It has been committed."""
        self.news.clear()

    # Units

    def _folds_in(self, chains: Iterable[Chain]) -> list[tuple[OperatorState, FoldState]]:
        """The folds in chains, each after those in front of it."""
        numbers = sorted(number for chain in chains for number in chain.nodes)
        operators = (self._board.operators[number] for number in numbers)
        return [(operator, operator.fold) for operator in operators if operator.fold is not None]

    def states(self, chains: Sequence[Chain]) -> tuple[State, ...]:
        """The states of the folds in chains."""
        folds = self._folds_in(chains)
        moment = Moment(self._board, self._log, chains) if folds else None
        return tuple(
            State(fold.name, tuple(map(self._range, fold.streams, fold.lows)), tuple(fold.seen), moment.act(operator))
            for operator, fold in folds
            if moment is not None
        )

    def _range(self, stream: str, low: int) -> Train:
        return self._log.train(stream, low, max(low, self._log.end(stream)))

    def began(self, unit: Unit) -> None:
        """A unit runs, its folds with it."""
        if unit.states:
            for operator, _ in self._folds_in(unit.chains):
                assert operator.running == 1, f"two units run {operator.node.name}"
                operator.closing = False
                self._refresh(operator)

    def commit_of(self, result: UnitResult, chains: Sequence[Chain], commit: Commit) -> Commit:
        """A unit's commit with what becomes of the states of its folds, and with how far event time comes.

        Args:
            result: What came of the unit.
            chains: Those of its chains that take effect.
            commit: What else is committed of them.
        """
        written = {member[0] for file in commit.files for member in file.members}
        marks = self._marks(result.unit, chains, written)
        return Commit((*commit.cursors, *self._moves(result, chains)), commit.files, marks)

    def _moves(self, result: UnitResult, chains: Sequence[Chain]) -> list[tuple[str, str, int, int]]:
        if not result.unit.states:
            return []
        lows = {
            stream: low
            for _, fold in self._folds_in(chains)
            for stream, low in zip(fold.streams, fold.lows, strict=True)
        }
        dropped = [(stream, rows) for done in result.chains for stream, rows in done.dropped if rows and stream in lows]
        assert len(dropped) == len({stream for stream, _ in dropped}), "a state is dropped from twice"
        return [(stream, stream, lows[stream], lows[stream] + rows) for stream, rows in dropped]

    def _marks(self, unit: Unit, chains: Sequence[Chain], written: set[str]) -> tuple[tuple[str, int], ...]:
        if not self._matters_to:
            return ()
        lasts = [(self._board.operators[chain.nodes[-1]], chain.writes) for chain in chains]
        concerned = [(operator, writes) for operator, writes in lasts if self._concerns_any(operator)]
        if not concerned:
            return ()
        mine = {fold.name for _, fold in self._folds_in(chains)}
        acted = {state.fold: state.after for state in unit.states if state.fold in mine}
        moment = Moment(self._board, self._log, chains, acted)
        marks = {state_stream(fold, port): time for fold, after in acted.items() for port, time in enumerate(after)}
        for operator, writes in concerned:
            marks |= {stream: moment.behind(operator) for stream in writes if stream in written}
        return tuple((stream, time) for stream, time in marks.items() if time is not None)

    def settled(self, result: UnitResult, chains: Sequence[Chain]) -> None:
        """A unit ended, and these of its chains took effect."""
        if not result.unit.states:
            return
        after = {state.fold: state.after for state in result.unit.states}
        dropped = {stream: rows for done in result.chains for stream, rows in done.dropped}
        for _, fold in self._folds_in(chains):
            fold.seen = list(after[fold.name])
            fold.lows = [low + dropped.get(stream, 0) for stream, low in zip(fold.streams, fold.lows, strict=True)]
        for operator, _ in self._folds_in(result.unit.chains):
            self._refresh(operator)

    def _refresh(self, operator: OperatorState) -> None:
        self._board.refresh(operator)
        for number in operator.before:
            self._board.refresh(self._board.operators[number])

    # Meters

    def memory(self, state: QueryState) -> Memory:
        """What the folds of a query remember, and how far event time has come in them."""
        rows = size = 0
        folds = self._folds(state)
        for _, fold in folds:
            for stream, low in zip(fold.streams, fold.lows, strict=True):
                end = self._log.end(stream)
                if end > low:
                    rows += end - low
                    size += self._log.bytes(stream, low, end)
        time = earliest([edge.mark for operator, _ in folds for edge in operator.edges])
        return Memory(rows, size, None if time is None else time / 1e6)
