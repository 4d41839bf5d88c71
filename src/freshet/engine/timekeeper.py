"""The timekeeper: which folds have something to do because event time went on, and who is told how far it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from freshet.engine.board import Board, FoldState, QueryState
from freshet.engine.event_time import Moment, has_state
from freshet.engine.protocols import QueueLog
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
        self._running: dict[str, tuple[FoldState, ...]] = {}
        self.news: dict[str, int] = {}
        """Watermarks of outputs that are not in the log yet."""

    # Queries

    def add(self, state: QueryState, streams: Callable[[str], int]) -> None:
        """Takes up the folds of a query where they were; ``streams`` says how many state streams one has."""
        self._concerned = None
        for fold in self._folds(state):
            fold.streams = tuple(state_stream(fold.name, number) for number in range(streams(fold.name)))
            fold.lows = [self._log.start_reader(stream, stream, "earliest") for stream in fold.streams]
            # A unit leaves in the first state streams how far it has brought the ports.
            kept = (state_stream(fold.name, port) for port in range(len(fold.ports)))
            fold.seen = [self._log.watermark(stream, self._log.end(stream)) for stream in kept]

    def drop(self, state: QueryState) -> None:
        """Forgets a query."""
        self._concerned = None
        self.news.pop(state.name, None)

    def readers(self, state: QueryState) -> list[str]:
        """Readers of the states of a query."""
        return [stream for fold in self._folds(state) for stream in fold.streams]

    def _folds(self, state: QueryState) -> list[FoldState]:
        return list({fold.name: fold for path in state.paths for fold in self._board.operators[path[0]].folds}.values())

    # News

    def concerns(self, query: int) -> bool:
        """Whether event time matters to a query: it has folds, or what it writes leads to one."""
        if self._concerned is None:
            self._concerned = self._find_concerned()
        return query in self._concerned

    def _find_concerned(self) -> frozenset[int]:
        found = {fold.query for fold in self._board.folds.values()}
        waiting = list(found)
        while waiting:
            state = self._board.queries[waiting.pop()]
            above = {self._board.numbers.get(operator.node.reads) for operator in self._board.of(state)}
            new = {number for number in above if number is not None and number not in found}
            found |= new
            waiting += new
        return frozenset(found)

    def moved(self, streams: Iterable[str]) -> list[int]:
        """Looks at the queries for which streams that grew, or whose watermark moved, are news; returns operators that
        are closing since. All that has grown must be in the queues of the board by now."""
        queries: dict[int, None] = {}
        for stream in streams:
            for number in self._board.readers.get(stream, ()):
                operator = self._board.operators[number]
                if self.concerns(operator.query) and operator.query not in queries:
                    mark = self._log.watermark(stream, operator.cursor)
                    if latest(mark, operator.mark) != operator.mark:
                        queries[operator.query] = None
        return self.look(queries)

    def look(self, queries: Iterable[int]) -> list[int]:
        """Brings what is known of queries up to date; returns the operators that are closing since."""
        moment, closing = Moment(self._board, self._log), []
        for query in queries:
            state = self._board.queries[query]
            if not state.active or not self.concerns(query):
                continue
            for operator in self._board.of(state):
                operator.mark = moment.before(operator.node.number)
            closing += [number for fold in self._folds(state) if (number := self._close(fold, moment)) is not None]
            self._tell(state, moment)
        return closing

    def _close(self, fold: FoldState, moment: Moment) -> int | None:
        """Shows a fold that has something to do as an operator that is ready; returns it where that is new."""
        operator = self._board.operators[fold.ports[0][0]]
        before = operator.closing
        operator.closing = not fold.busy and self._is_due(fold, moment.possible(fold))
        if operator.closing != before and not operator.waiting:
            operator.head_arrival = operator.tail_arrival = self._board.now if operator.closing else float("inf")
        self._board.refresh(operator)
        return operator.node.number if operator.closing and not before else None

    def _is_due(self, fold: FoldState, times: Sequence[int | None]) -> bool:
        return fold.operator.is_due(fold.seen, times) and has_state(fold, self._log)

    def _tell(self, state: QueryState, moment: Moment) -> None:
        """Notes how far the output of a query is, where somebody wants to know it."""
        if not any(self.concerns(self._board.operators[number].query) for number in self._readers_of(state)):
            return
        time = earliest([moment.behind(path[-1]) for path in state.paths])
        if time is not None and latest(time, self._told(state.name)) != self._told(state.name):
            self.news[state.name] = time

    def _readers_of(self, state: QueryState) -> Sequence[int]:
        return self._board.readers.get(state.name, ())

    def _told(self, stream: str) -> int | None:
        return self._log.watermark(stream, self._log.end(stream))

    def telling(self) -> Commit:
        """What is to be committed so that others learn how far event time is."""
        return Commit(watermarks=tuple(self.news.items()))

    def told(self) -> None:
        """It has been committed."""
        self.news.clear()

    # Units

    def states(self, chains: Sequence[Chain], ends: Mapping[int, int]) -> tuple[State, ...]:
        """The states of the folds in chains whose trains end there."""
        names = {fold.fold for chain in chains for number in chain.operators if (fold := self._board.fold(number))}
        if not names:
            return ()
        moment = Moment(self._board, self._log, ends, self._fed(chains))
        folds = [fold for name, fold in self._board.folds.items() if name in names]
        return tuple(
            State(fold.name, tuple(map(self._range, fold.streams, fold.lows)), tuple(fold.seen), moment.act(fold))
            for fold in folds
        )

    def _range(self, stream: str, low: int) -> Train:
        return self._log.train(stream, low, max(low, self._log.end(stream)))

    def _fed(self, chains: Iterable[Chain]) -> set[int]:
        """Operators whose queues chains write to."""
        last = (self._board.operators[chain.operators[-1]].node for chain in chains)
        return {node.path[node.path.index(node.number) + 1] for node in last if not node.is_last}

    def began(self, unit: Unit) -> None:
        """A unit runs: its folds are its own until it is settled."""
        folds = tuple(self._board.folds[state.fold] for state in unit.states)
        self._running[unit.id] = folds
        for fold in folds:
            assert not fold.busy, f"two units run {fold.name}"
            fold.busy = True
            operator = self._board.operators[fold.ports[0][0]]
            operator.closing = False
            self._refresh(fold)

    def commit_of(self, result: UnitResult, stopped: Collection[int], commit: Commit) -> Commit:
        """A unit's commit with what becomes of the states of its folds, and with how far event time comes."""
        chains = [
            (chain, work.train.end)
            for work in result.unit.works
            for chain in work.chains
            if self._board.operators[chain.operators[0]].query not in stopped
        ]
        moves = self._moves(result, stopped)
        marks = self._marks(result, chains, {member[0] for file in commit.files for member in file.members})
        return Commit((*commit.cursors, *moves), commit.files, marks)

    def _moves(self, result: UnitResult, stopped: Collection[int]) -> list[tuple[str, str, int, int]]:
        lows = {
            stream: low
            for fold in self._running.get(result.unit.id, ())
            if fold.query not in stopped
            for stream, low in zip(fold.streams, fold.lows, strict=True)
        }
        dropped = [(stream, rows) for done in result.chains for stream, rows in done.dropped if rows and stream in lows]
        assert len(dropped) == len({stream for stream, _ in dropped}), "a state is dropped from twice"
        return [(stream, stream, lows[stream], lows[stream] + rows) for stream, rows in dropped]

    def _marks(
        self, result: UnitResult, chains: Sequence[tuple[Chain, int]], written: Collection[str]
    ) -> tuple[tuple[str, int], ...]:
        mine = {self._board.operators[chain.operators[0]].query for chain, _ in chains}
        if not any(map(self.concerns, mine)):
            return ()
        folds = {fold.name for fold in self._running.get(result.unit.id, ()) if fold.query in mine}
        states = [state for state in result.unit.states if state.fold in folds]
        ends = {chain.operators[0]: end for chain, end in chains}
        acted = {state.fold: state.after for state in states}
        moment = Moment(self._board, self._log, ends, self._fed(chain for chain, _ in chains), acted)
        marks = {state_stream(state.fold, port): time for state in states for port, time in enumerate(state.after)}
        for chain, _ in chains:
            node = self._board.operators[chain.operators[-1]].node
            if self.concerns(self._board.operators[node.number].query) and node.writes in written:
                marks[node.writes] = self._behind(node.number, moment)
        return tuple((stream, time) for stream, time in marks.items() if time is not None)

    def _behind(self, number: int, moment: Moment) -> int | None:
        node = self._board.operators[number].node
        if not node.is_last:
            return moment.behind(number)
        state = self._board.queries[self._board.operators[number].query]
        return earliest([moment.behind(path[-1]) for path in state.paths])

    def settled(self, result: UnitResult, stopped: Collection[int] | None) -> None:
        """A unit ended; ``stopped`` is None where nothing of it was committed."""
        after = {state.fold: state.after for state in result.unit.states}
        dropped = {stream: rows for done in result.chains for stream, rows in done.dropped}
        for fold in self._running.pop(result.unit.id, ()):
            fold.busy = False
            if stopped is not None and fold.query not in stopped:
                fold.seen = list(after[fold.name])
                fold.lows = [low + dropped.get(stream, 0) for stream, low in zip(fold.streams, fold.lows, strict=True)]
            self._refresh(fold)

    def _refresh(self, fold: FoldState) -> None:
        for operator in self._board.of(self._board.queries[fold.query]):
            self._board.refresh(operator)

    # Meters

    def memory(self, state: QueryState) -> Memory:
        """What the folds of a query remember, and how far event time has come in them."""
        rows = size = 0
        folds = self._folds(state)
        for fold in folds:
            for stream, low in zip(fold.streams, fold.lows, strict=True):
                end = self._log.end(stream)
                if end > low:
                    rows += end - low
                    size += self._log.bytes(stream, low, end)
        into = (number for fold in folds for port in fold.ports for number in port)
        time = earliest([self._board.operators[number].mark for number in into])
        return Memory(rows, size, None if time is None else time / 1e6)
