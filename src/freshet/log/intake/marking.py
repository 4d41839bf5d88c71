"""What the log enters about the order of streams: key marks, tuples past them, and what joins let go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from freshet.log.intake.asides import Asides
from freshet.log.intake.kept_rows import KeptStream, stretches
from freshet.log.marks import LetGo
from freshet.log.store.commits import Commits
from freshet.log.store.records import KeyMoves, KeyNews
from freshet.log.store.state import StreamState
from freshet.log.store.store import Transaction, pack_offsets
from freshet.model.join_budget import JoinBudget
from freshet.quality.disorder import Disorder
from freshet.quality.disorder.budget import (
    GRID,
    NO_MARK,
    NO_TRAIL,
    Buffering,
    Coming,
    KnownInput,
    Trail,
    gone,
    held_bytes,
    raises,
)
from freshet.quality.disorder.heights import Climb
from freshet.quality.disorder.replay import BudgetReplay, ReplayedStream

_COARSE: Final = 256
"""A mark is entered after every so many rows of a stream, however large batches are; more often if a join with a bound
reads it."""


class Marking(Commits):
    """The part of a log that knows how far ordered keys have come, and how much memory joins by them may have."""

    _budgets: dict[str, JoinBudget]
    """By join."""
    _intakes: dict[str, Asides]

    @contextmanager
    def _intake(self, stream: str) -> Iterator[Asides]:
        """Serialises appends to one stream."""
        with self._lock:
            self._state.stream(stream)  # says what is wrong
            intake = self._intakes[stream]
        with intake.lock:
            yield intake

    def give_memory(self, budget: JoinBudget, starts: Mapping[str, int] | None = None) -> None:
        """From now on a join has this much memory, reckoned from what comes into its streams. What has come before, and
        was not reckoned, is reckoned as if the join had had it then.

        All streams must be declared, each with an ordered key.

        Args:
            budget: The memory.
            starts: From which offset on the join has still to read each stream; one that is left out, at its end.
        """
        with self._lock:
            replay, kept = self._kept(budget, starts or {})
        for stretch in stretches(self._storage, kept):  # may take long, and rows come meanwhile
            replay.take(stretch)

        def work(tx: Transaction) -> None:
            streams = [self._state.stream(name) for name in budget.concerned]
            rest = {name: KeptStream.of(self._state.stream(name), known.at) for name, known in replay.streams.items()}
            for stretch in stretches(self._storage, rest):
                replay.take(stretch)
            for entry in replay.entries:
                self._enter_level(tx, self._state.stream(entry.stream), budget.join, *entry[1:])
            for stream in streams if kept else ():
                self._enter_level(tx, stream, budget.join, replay.streams[stream.name].at, None)
            level = max(self._level(budget), replay.level)
            inputs, how = self._inputs(budget), Buffering.of(budget)
            if held_bytes(inputs, level, how) > budget.size:
                # The join had more before, or was not there.
                highest = max(each.heights.newest for each in inputs if each.heights.newest is not None)
                levels = np.unique(np.concatenate([each.heights.kept for each in inputs]))
                fits = (int(each) for each in levels if held_bytes(inputs, int(each), how) <= budget.size)
                found = next(fits, highest)
                for stream in streams:
                    self._enter_level(tx, stream, budget.join, stream.index.end, found)
            tx.after(lambda: self._budgets.__setitem__(budget.join, budget))

        self._store.write(work, alone=True)

    def _kept(self, budget: JoinBudget, starts: Mapping[str, int]) -> tuple[BudgetReplay, dict[str, KeptStream]]:
        """What a join has still to read of its streams and nobody has reckoned; nothing if it is reckoned."""
        known, kept = dict[str, ReplayedStream](), dict[str, KeptStream]()
        for stream in map(self._state.stream, budget.concerned):
            has, order = stream.let_go.get(budget.join, LetGo()), stream.known_order()
            if has.reckoned:
                return BudgetReplay(budget, {}), {}
            at = max(has.end, stream.index.oldest, starts.get(stream.name, stream.index.end))
            heights, mark = order.heights.before(order.heights.rows - stream.index.end + at), stream.key_marks.at(at)
            trail = _trail(stream, order) if budget.rests else NO_TRAIL
            known[stream.name] = ReplayedStream(at, heights, NO_MARK if mark is None else mark, trail)
            kept[stream.name] = KeptStream.of(stream, at)
        return BudgetReplay(budget, known, self._level(budget)), kept

    def take_memory(self, join: str) -> None:
        """A join has no bound any more, or is gone."""
        with self._lock:
            self._budgets.pop(join, None)

    def forget_levels(self, join: str) -> None:
        """Forgets what a join let go: it begins anew."""

        def work(tx: Transaction) -> None:
            tx.execute("DELETE FROM key_marks WHERE joined = ?", (join,))
            tx.after(lambda: self._state.forget_levels(join))

        self._store.write(work, alone=True)

    def lapse(self, join: str) -> None:
        """Notes that tuples may have come for a join while it was out, which nobody has reckoned."""

        def work(tx: Transaction) -> None:
            tx.execute("DELETE FROM key_marks WHERE joined = ? AND key IS NULL AND length(past) = 0", (join,))
            tx.after(lambda: self._state.lapse(join))

        self._store.write(work, alone=True)

    def budget(self, join: str) -> JoinBudget | None:
        """The memory that a join has; None: it has no bound."""
        with self._lock:
            return self._budgets.get(join)

    def remembered_bytes(self, join: str) -> int | None:
        """Bytes that a join remembers at most, as the log reckons; None: it has no bound."""
        with self._lock:
            budget = self._budgets.get(join)
            if budget is None:
                return None
            return held_bytes(self._inputs(budget), self._level(budget), Buffering.of(budget))

    def needed_bytes(self, budget: JoinBudget) -> int:
        """Bytes that a join would remember without a bound, as the log reckons."""
        with self._lock:
            return held_bytes(self._inputs(budget), how=Buffering.of(budget))

    def raise_key_mark(self, stream: str, keys: KeyNews) -> None:
        """Enters a key mark without tuples: somebody says that no later tuple has a key at or below it."""
        with self._intake(stream):
            self._store.write(lambda tx: self._mark_key(tx, found := self._state.stream(stream), found.index.end, keys))

    def _is_bounded(self, stream: str) -> bool:
        """Whether a join with a bound reads a stream."""
        return any(stream in budget.streams for budget in list(self._budgets.values()))

    def _mark_key(self, tx: Transaction, stream: StreamState, first: int, keys: KeyNews) -> None:
        """Enters a key mark at the end of a stream, if it is new, and the tuples from an offset on that are past it."""
        at, past = tx.draft.get(("next", stream.id), stream.index.end), [first + place for place in keys.past]
        tx.execute("UPDATE streams SET disorder = ?, past = past + ? WHERE id = ?",
                   (keys.disorder, len(past), stream.id))  # fmt: skip
        newest = tx.draft.get(("key", stream.id), stream.key_marks.newest)
        mark = None if keys.mark is None or (newest is not None and keys.mark <= newest) else keys.mark
        if mark is not None:
            tx.draft["key", stream.id] = mark
        within = [] if keys.moves is None else self._within(stream, first, keys.moves, newest)
        for place, reached in within:
            self._enter_keys(tx, stream, place, reached, (), "")
        if past or mark is not None:
            self._enter_keys(tx, stream, at, mark, past, "")
        if keys.moves is not None:
            for budget in list(self._budgets.values()):
                if stream.name in budget.streams:
                    self._let_go(tx, budget, stream, first, keys.moves)

        def effect() -> None:
            stream.disorder, stream.past = keys.disorder, stream.past + len(past)
            stream.order = None if keys.moves is None else keys.moves.after
            for entry in within:
                stream.take_key_mark(*entry, ())
            stream.take_key_mark(at, mark, past)

        tx.after(effect)

    def _enter_keys(
        self, tx: Transaction, stream: StreamState, at: int, key: int | None, past: Sequence[int], join: str
    ) -> None:
        entry = (self._sequence(tx, 1), stream.id, at, key, pack_offsets(past), join)
        tx.execute("INSERT INTO key_marks (sequence, stream, at, key, past, joined) VALUES (?, ?, ?, ?, ?, ?)", entry)

    def _enter_level(
        self, tx: Transaction, stream: StreamState, join: str, at: int, key: int | None, past: Sequence[int] = ()
    ) -> None:
        self._enter_keys(tx, stream, at, key, past, join)
        tx.after(lambda: stream.take_let_go(join, at, key, past))

    def _within(self, stream: StreamState, first: int, moves: KeyMoves, newest: int | None) -> list[tuple[int, int]]:
        """The offsets inside of a batch, not at its end, at which a new mark is entered, each with the mark."""
        grid = GRID if self._is_bounded(stream.name) else _COARSE
        places = np.arange(grid - 1 - moves.before.heights.rows % grid, len(moves.marks) - 1, grid)
        marks = moves.marks[places]
        is_new = marks > np.concatenate([[NO_MARK if newest is None else newest], marks[:-1]])
        return list(zip((first + places[is_new] + 1).tolist(), marks[is_new].tolist(), strict=True))

    # What is reckoned

    def _level(self, budget: JoinBudget) -> int:
        """How far the marks of a join are raised."""
        known = [self._state.stream(name).let_go.get(budget.join) for name in budget.concerned]
        levels = [each.marks.newest for each in known if each is not None and each.marks.newest is not None]
        return max(levels, default=NO_MARK)

    def _inputs(self, budget: JoinBudget, instead: Mapping[str, Disorder] | None = None) -> list[KnownInput]:
        found = []
        for name, cost in zip(budget.streams, budget.costs, strict=True):
            stream = self._state.stream(name)
            known = (instead or {}).get(name) or stream.known_order()
            trail = _trail(stream, known) if budget.rests else NO_TRAIL
            found.append(KnownInput(known.heights, NO_MARK if known.mark is None else known.mark, cost, trail))
        return found

    def _let_go(self, tx: Transaction, budget: JoinBudget, stream: StreamState, first: int, moves: KeyMoves) -> None:
        """Raises the marks of a join so that it never remembers more than it may, and enters what that leaves out."""
        level = self._level(budget)
        ports = frozenset(port for port, name in enumerate(budget.streams) if name == stream.name)
        climb = Climb(moves.before.heights, moves.keys, moves.sizes)
        inputs = self._inputs(budget, {stream.name: moves.before})
        coming = Coming(ports, climb, moves.marks, moves.before.heights.rows)
        raised = raises(inputs, coming, budget.size, level, Buffering.of(budget))
        first_mark = NO_MARK if moves.before.mark is None else moves.before.mark
        marks = np.concatenate([[first_mark], moves.marks])[:-1]
        left_out = gone(moves.keys, (moves.keys <= marks) & (marks > NO_MARK), level, raised)
        for each in raised:
            self._enter_level(tx, stream, budget.join, first + each.row + 1, each.level)
        if left_out:
            end = first + len(moves.keys)
            self._enter_level(tx, stream, budget.join, end, None, [first + each for each in left_out])
        for name in budget.concerned if raised else ():
            if name != stream.name:
                other = self._state.stream(name)
                self._enter_level(tx, other, budget.join, other.index.end, raised[-1].level)


def _trail(stream: StreamState, known: Disorder) -> Trail:
    """Where the mark of a stream had come how far, while its tuples were still to come that it does not know."""
    entries = np.array(stream.key_marks.entries(), np.int64).reshape(-1, 2)
    return Trail.of(known.heights.rows - stream.index.end + entries[:, 0], entries[:, 1])
