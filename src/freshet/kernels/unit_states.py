"""The states of folds while a worker runs a unit: as they are found, changed, written and kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from freshet.kernels.folds import CompiledFold, LiveFold
from freshet.kernels.folds.keyed import KeyedFold, divided
from freshet.kernels.folds.panes.stream import numbers
from freshet.kernels.kept_states import KeptStates, StateStamp, stamp_of
from freshet.kernels.superbox.pipeline import Memory
from freshet.model import State, Train, state_stream
from freshet.model.operators import UNTIL

ReadState = Callable[[str, Train, pa.Schema], pa.Table]
"""Reads rows of a state stream of a fold."""
Grown = Mapping[str, tuple[int, str, int]]
"""What was written to streams: rows, file and position."""


class StateChange(NamedTuple):
    """How a unit changes a state stream of a fold: rows that go from its low end, and new rows."""

    fold: str
    stream: str
    tables: Sequence[pa.Table]
    dropped: int


class _Found(NamedTuple):
    """A part of a fold as the unit found it."""

    place: Hashable
    stamp: StateStamp
    live: LiveFold


class _Used(NamedTuple):
    """A fold that the unit runs."""

    fold: CompiledFold
    own: range
    found: Sequence[_Found]
    memory: Memory

    def lives(self) -> Sequence[LiveFold]:
        """Its parts as the unit leaves them."""
        after = self.memory.fold
        return after.lives if isinstance(after, KeyedFold) else [after]


class UnitStates:
    """The states of the folds of a unit, or of those parts of them that a task runs.

    Args:
        states: The states as the unit finds them.
        kept: What the worker has kept of them.
        read: Reads rows from the log.
        folder: Tells the folds of different logs apart.
    """

    def __init__(self, states: Iterable[State], kept: KeptStates, read: ReadState, folder: Hashable = None) -> None:
        self._states = {state.fold: state for state in states}
        self._kept, self._read, self._folder = kept, read, folder
        self._used: dict[str, _Used] = {}
        self.own: dict[str, range] = {}
        """The parts of folds that this task runs, if others run the rest; it gets only tuples of these."""

    def state(self, fold: str) -> State | None:
        """The state of a fold as the unit finds it; None: it has none."""
        return self._states.get(fold)

    def memory(self, fold: str, compiled: CompiledFold) -> Memory:
        """What a fold remembers when the unit begins."""
        state = self._states[fold]
        if not state.ranges:  # it merges its part of the tuples, and reads no state
            nothing = [schema.empty_table() for schema in compiled.states]
            memory = Memory.of(compiled, nothing, state.before, state.after)
            self._used[fold] = _Used(compiled, range(0), (), memory)
            return memory
        own = self.own.get(fold, range(state.parts))
        found = [self._recalled(state, part, compiled) for part in own]
        lives = tuple([each.live for each in found])
        whole = lives[0] if len(lives) == 1 else KeyedFold(compiled, lives, own.start, state.parts)
        old = [each.rows for part in own for each in state.of_part(part)]
        memory = Memory(whole, old, state.before, state.after)
        self._used[fold] = _Used(compiled, own, found, memory)
        return memory

    def _recalled(self, state: State, part: int, compiled: CompiledFold) -> _Found:
        place, ranges = (self._folder, state.fold, part, state.parts), state.of_part(part)
        live = self._kept.recall(place, compiled, ranges, partial(self._read, state.fold))
        return _Found(place, stamp_of(ranges), live)

    def changes(self, failed: Collection[str] = ()) -> Iterator[StateChange]:
        """The changes of the states of all folds but those that failed."""
        for fold, used in self._used.items():
            if fold not in failed:
                yield from self._changes(self._states[fold], used)

    def _changes(self, state: State, used: _Used) -> Iterator[StateChange]:
        memory, streams = used.memory, len(used.fold.states)
        first = used.own.start * streams
        memory.rewrite([place - first for place in state.rewrites if 0 <= place - first < len(memory.old)])
        names = [each.stream for each in state.ranges[first : first + len(memory.old)]]
        names = names or [state_stream(state.fold, number) for number in range(streams)]
        if state.is_resplit:
            yield from self._resplit(state, used, names)
            return
        for name, tables, dropped in zip(names, memory.appended, memory.dropped, strict=True):
            yield StateChange(state.fold, name, tables, dropped)

    def _resplit(self, state: State, used: _Used, names: Sequence[str]) -> Iterator[StateChange]:
        """Divides all rows anew. One commit empties the old streams and fills the new ones."""
        assert len(used.own) == state.parts, f"{state.fold} is not here as a whole"
        parts = state.becomes or 1
        for name, old in zip(names, used.memory.old, strict=True):
            yield StateChange(state.fold, name, (), old)
        live, streams = used.memory.fold, len(used.fold.states)
        for number in range(streams):
            rows = []
            for place in range(number, len(names), streams):
                gathered, live = live.gathered(place)
                rows.append(gathered)
            for part, some in enumerate(divided(used.fold, _in_order(rows), parts)):
                stream = state_stream(state.fold, number, part, parts)
                yield StateChange(state.fold, stream, [some] if some.num_rows else [], 0)

    def keep(self, grown: Grown, failed: Collection[str] = ()) -> None:
        """Keeps the states of folds that did not fail, as they were and as the written file makes them."""
        for fold, used in self._used.items():
            if fold in failed:
                continue
            if self._states[fold].is_resplit:
                for each in used.found:
                    self._kept.forget(each.place)
                continue
            dropped = iter(used.memory.dropped)
            for each, live in zip(used.found, used.lives(), strict=False):
                after = tuple([mark.after(next(dropped), *grown.get(mark.stream, ())) for mark in each.stamp])
                self._kept.keep(each.place, used.fold, {each.stamp: each.live, after: live})


def _in_order(parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of several parts; those of tuples that end, by their ends. A state is dropped from its low end: a row
    that stays must not lie in front of those that go, and nobody knows in which order the rows of two parts came."""
    whole = pa.concat_tables(parts)
    if len(parts) == 1 or UNTIL not in whole.column_names:
        return whole
    return whole.take(pa.array(np.argsort(numbers(whole, UNTIL), kind="stable")))
