"""Folds in a task: one task runs all chains of a query that go through folds, because they share their states."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from freshet.kernels import CompiledFold
from freshet.kernels.pipeline import Memory
from freshet.log.segment import read_train
from freshet.model import Chain, Fold, State, state_stream
from freshet.spark.failures import Retry
from freshet.spark.task import UNREADABLE, Task


@dataclass
class Folding:
    """The folds of a task."""

    task: Task
    _memories: dict[str, Memory] = field(default_factory=dict)
    _last: dict[str, tuple[int, int]] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for number, work in enumerate(self.task.assignment.works):
            for index, chain in enumerate(work.chains):
                self._last |= dict.fromkeys(self._folds(chain), (number, index))

    def has(self, chain: Chain) -> bool:
        """Whether a chain goes through a fold."""
        return bool(self._folds(chain))

    def is_mine(self, chain: Chain) -> bool:
        """Whether this task is the one to run a chain through folds."""
        query = self.task.spec.writes[chain.operators[-1]].partition(".")[0]
        return zlib.crc32(query.encode()) % self.task.assignment.parts == self.task.part

    def memories(self, folds: Mapping[str, CompiledFold], number: int, index: int) -> dict[str, Memory]:
        """What the folds of the chain at a place remember; the chains must run in their order."""
        # Only the last chain through a fold closes windows: what the others bring belongs into them.
        return {
            name: self._memory(name, fold, last=self._last[name] == (number, index)) for name, fold in folds.items()
        }

    def fail(self, chain: Chain) -> None:
        """Nothing of a query that failed is kept."""
        self._failed |= self._folds(chain)

    def finish(self) -> None:
        """Writes what became of the states."""
        for fold, memory in self._memories.items():
            if fold in self._failed:
                continue
            work, chain = self._last[fold]
            memory.gather(self._state(fold).ranges)
            for place, (tables, dropped) in enumerate(zip(memory.appended, memory.dropped, strict=True)):
                rows = pa.concat_tables(tables) if tables else memory.states[place].slice(0, 0)
                if rows.num_rows or dropped:
                    self.task.add_state(work, chain, state_stream(fold, place), rows, dropped)

    def _memory(self, name: str, fold: CompiledFold, last: bool) -> Memory:
        state = self._state(name)
        if name not in self._memories:
            self._memories[name] = Memory(self._read(state, fold.states), state.before, state.before, fold)
        memory = self._memories[name]
        memory.after = state.after if last else state.before
        return memory

    def _state(self, fold: str) -> State:
        return next(each for each in self.task.assignment.states if each.fold == fold)

    def _read(self, state: State, schemas: Sequence[pa.Schema]) -> list[pa.Table]:
        if not state.ranges:
            return [schema.empty_table() for schema in schemas]
        try:
            ranges = zip(state.ranges, schemas, strict=True)
            return [read_train(self.task.assignment.segments, each, schema) for each, schema in ranges]
        except OSError as error:
            raise Retry(f"the state of {state.fold} {UNREADABLE}: {error}") from error

    def _folds(self, chain: Chain) -> set[str]:
        operators = self.task.spec.chain(chain.operators)
        return {operator.fold for operator in operators if isinstance(operator, Fold)}
