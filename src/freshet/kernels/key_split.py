"""Trains divided by key: several tasks run the same chains, each over the tuples of its own parts of all folds.

A fold whose state lies in parts can be run by as many tasks. For that, the keys must be known from the tuples of the
train, through the filters and projections in front of the fold. Each task computes these for the whole train, keeps the
tuples of its own parts, and only then begins. So no tuple is processed twice, and none is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.arrays import flat, select
from freshet.kernels.folds.folded import CompiledFold
from freshet.kernels.folds.keyed import key_columns, key_kinds, part_numbers
from freshet.kernels.folds.states.hashing import PartNumbers
from freshet.kernels.superbox.program import Program
from freshet.model import ARRIVAL, Chain, Operator, Project, State, Train

Place = tuple[int, int]
"""An input: the place of a chain, and the port."""


@dataclass(frozen=True, slots=True)
class KeyPath:
    """How the keys of a fold follow from the tuples of a train.

    Args:
        operators: Filters and projections in front of the fold.
        columns: The keys, behind these.
        kinds: The types in which keys are compared.
    """

    operators: tuple[Operator, ...]
    columns: tuple[str, ...]
    kinds: tuple[pa.DataType, ...]

    def parts(self, table: pa.Table, parts: int) -> PartNumbers:
        """The part of each tuple. Tuples that do not reach the fold belong to the first one.

        >>> from freshet.model import Filter
        >>> keep, keys = Filter("f", "v > 1"), Project("p", (("k", "v * 2"),))
        >>> table = pa.table({"v": [1, 2, 3, 2], ARRIVAL: [5, 6, 7, 8]})
        >>> found = KeyPath((keep, keys), ("k",), (pa.int64(),)).parts(table, 64).tolist()
        >>> found[0], found[1] == found[3], found[2] == found[3]
        (0, True, False)
        """
        if not self.operators:
            return part_numbers([flat(table, name) for name in self.columns], self.kinds, table.num_rows, parts)
        number = table.schema.get_field_index(ARRIVAL)
        rows = pa.array(np.arange(table.num_rows))
        [output] = _program(self, table.schema).run(table.set_column(number, ARRIVAL, rows))
        found: PartNumbers = np.zeros(table.num_rows, np.uint16)
        if output.failure is None:  # else the chain itself will fail in the same way
            keys = [output.batch.column(name) for name in self.columns]
            some = part_numbers(keys, self.kinds, output.batch.num_rows, parts)
            found[output.batch.column(ARRIVAL).to_numpy()] = some
        return found


@lru_cache(maxsize=256)
def _program(path: KeyPath, schema: pa.Schema) -> Program:
    return Program([path.operators], schema)


@dataclass(frozen=True, slots=True)
class KeyedTrain(Train):
    """The tuples of a train that belong to some parts.

    Args:
        path: How their keys are found.
        own: The parts.
        parts: Number of all parts.
    """

    path: KeyPath = KeyPath((), (), ())
    own: range = range(1)
    parts: int = 1

    def select(self, table: pa.Table) -> pa.Table:
        """Its tuples, of all tuples of the train that are kept."""
        numbers = self.path.parts(table, self.parts)
        return select(table, (numbers >= self.own.start) & (numbers < self.own.stop))


@dataclass(frozen=True, slots=True)
class Division:
    """Connected chains that several tasks can run, each for some parts of the folds in them.

    Args:
        parts: Number of parts of each of their folds.
        paths: For each of their trains, how the part of a tuple is found.
    """

    parts: int
    paths: dict[Place, KeyPath]

    def own(self, task: int, tasks: int) -> range:
        """The parts that belong to a task.

        >>> [list(Division(5, {}).own(task, 2)) for task in range(2)], list(Division(2, {}).own(0, 4))
        ([[0, 1], [2, 3, 4]], [])
        """
        return range(self.parts * task // tasks, self.parts * (task + 1) // tasks)

    def bound(self, place: int, chain: Chain, own: range) -> Chain:
        """A chain over the tuples of some parts."""
        inputs = (
            KeyedTrain(
                each.stream, each.first, each.end, each.segments, each.keep, self.paths[place, port], own, self.parts
            )
            if isinstance(each, Train)
            else each
            for port, each in enumerate(chain.inputs)
        )
        return replace(chain, inputs=tuple(inputs))


OperatorsOf = Callable[[Sequence[int]], tuple[Operator, ...]]
FoldOf = Callable[[int], CompiledFold]
"""A fold, compiled, by the number of its node."""


def division(
    chains: Sequence[Chain],
    component: Sequence[int],
    states: Callable[[str], State | None],
    operators: OperatorsOf,
    fold: FoldOf,
) -> Division | None:
    """How connected chains can be divided by key; None: one task must run all of them.

    Args:
        chains: The chains of a unit.
        component: The places of the connected ones.
        states: The state of a fold by its name; None if it is of no concern here.
        operators: Finds the operators of nodes.
        fold: Compiles a fold.
    """
    walk = _Walk(chains, operators)
    counts: set[int] = set()
    for place in component:
        nodes = chains[place].nodes
        for at, operator in enumerate(operators(nodes)):
            if not operator.remembers:
                continue
            state = states(operator.name)
            if operator.ordered or state is None or state.parts == 1 or state.is_resplit:
                return None
            counts.add(state.parts)
            compiled = fold(nodes[at])
            for port in range(len(chains[place].inputs) if at == 0 else 1):
                columns = key_columns(compiled, port)
                if not columns or not walk.back(place, at, port, columns, key_kinds(compiled)):
                    return None
    trains = {
        (place, port)
        for place in component
        for port, each in enumerate(chains[place].inputs)
        if isinstance(each, Train)
    }
    return Division(counts.pop(), walk.found) if len(counts) == 1 and trains == walk.found.keys() else None


class _Walk:
    """Goes back from folds to trains."""

    def __init__(self, chains: Sequence[Chain], operators: OperatorsOf) -> None:
        self._chains, self._operators = chains, operators
        self.found: Final[dict[Place, KeyPath]] = {}

    def back(self, place: int, at: int, port: int, columns: tuple[str, ...], kinds: tuple[pa.DataType, ...]) -> bool:
        """Goes back from a port of a node of a chain; returns whether the keys there follow from a train, and in the
        same way as for all other folds behind it."""
        before = self._operators(self._chains[place].nodes)[:at]
        while all(operator.plain for operator in before):
            each = self._chains[place].inputs[port]
            if isinstance(each, Train):
                path = KeyPath(_only(before, columns), columns, kinds)
                return self.found.setdefault((place, port), path) == path
            place, port = each, 0
            if len(self._chains[place].inputs) > 1:
                break
            before = (*self._operators(self._chains[place].nodes), *before)
        return False


def _only(operators: tuple[Operator, ...], columns: tuple[str, ...]) -> tuple[Operator, ...]:
    """Operators without what they compute besides some columns, as far as that is plain to see."""
    if not operators:
        return ()
    *before, last = operators
    if last.makes is None:
        return operators
    return (*before, Project("keys", tuple(each for each in last.makes if each[0] in columns)))
