"""The condition of a join, taken apart by what it reads."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from freshet.model.numbers import common_type, is_number
from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START
from freshet.model.schema import ARRIVAL, type_text
from freshet.sql.check.scope import TypedColumns
from freshet.sql.check.types import is_known, type_of
from freshet.sql.flows.flow import Flow
from freshet.sql.lower.logical import LogicalJoin
from freshet.sql.parse.errors import fail, place_of
from freshet.sql.parse.limits import conjuncts
from freshet.sql.parse.text import column
from freshet.sql.parse.trees import cast, column_names, inline

Named = tuple[str, exp.Expr]
Key = dict[int, exp.Expr]
"""What must be equal, by input, over the joined columns."""
_LEFT = (
    "ON of a LEFT JOIN takes equal columns of both streams and conditions on the right stream alone, "
    "as in ON a.k = b.k AND b.v > 1"
)
_HIDDEN = {ARRIVAL, WINDOW_START, WINDOW_END, FROM, UNTIL}


class Sides:
    """The inputs of a join: which of them a joined column is from, and what the condition of the join asks of each.

    ``columns`` are the joined ones, those of the first input first. ``stream`` is the input that is joined with a table
    (None: all are streams): it gives the rows their time, validity and window, and pairs can be looked at before it is
    known which of its tuples have no partner.
    """

    def __init__(
        self, join: LogicalJoin, columns: TypedColumns, inputs: Sequence[Flow], stream: int | None = None
    ) -> None:
        self._types = {name.lower(): kind for name, kind in columns}
        self._ports = range(len(inputs))
        own = [(port, name) for port in self._ports for name in inputs[port].traits.names]
        self.places: dict[str, tuple[int, str]] = {
            joined.lower(): place for (joined, _), place in zip(columns, own, strict=True)
        }
        """Joined columns (lower case), each with the input and the name there."""
        self._own = {joined: column(name) for joined, (_, name) in self.places.items()}
        self._hidden = set(self._ports) if stream is None else {stream}
        self._keys: list[tuple[Key, pa.DataType | None]] = []
        self.own: tuple[list[Named], ...] = tuple([] for _ in self._ports)
        """Conditions on one side, over the joined columns."""
        self.both: list[Named] = []
        """Conditions that need several sides, over the joined columns."""
        self._take_apart(join, pairs=stream is not None)

    @property
    def keys(self) -> list[Key]:
        """What must be equal."""
        return [key for key, _ in self._keys]

    def of(self, tree: exp.Expr) -> set[int]:
        """The inputs that a condition over the joined columns reads."""
        names = column_names(tree)
        found = {self.places[name][0] for name in names if name in self.places}
        return found | self._hidden if names & _HIDDEN else found

    def inside(self, tree: exp.Expr) -> exp.Expr:
        """An expression over joined columns of one input, in terms of that input's own columns."""
        return inline(tree, self._own)

    def filters(self, conditions: Sequence[Named]) -> tuple[Named, ...]:
        """Conditions over joined columns of one input, in terms of that input's own columns."""
        return tuple((name, self.inside(predicate)) for name, predicate in conditions)

    def _take_apart(self, join: LogicalJoin, pairs: bool) -> None:
        for number, part in enumerate([] if join.condition is None else conjuncts(join.condition), start=1):
            named, sides = (f"{join.name}.on_{number}", part), self.of(part)
            lonely = join.kind == "left" and sides != {1}
            if is_same_window(part):
                continue
            if (equal := self._key(part)) is not None:
                self._add_key(*equal)
            elif lonely and not pairs:
                raise fail(_LEFT, join.places[1] if place_of(part) is None else part)
            elif len(sides) == 1 and not lonely:
                self.own[sides.pop()].append(named)
            else:
                self.both.append(named)

    def _key(self, part: exp.Expr) -> tuple[Key, pa.DataType | None] | None:
        """What an equation compares, and the type of both sides if they have the same."""
        if not isinstance(part, exp.EQ):
            return None
        sides = [self.of(part.this), self.of(part.expression)]
        if [len(side) for side in sides] != [1, 1] or sides[0] == sides[1]:
            return None
        pair = dict(sorted(zip((*sides[0], *sides[1]), (part.this, part.expression), strict=True)))
        left, right = (type_of(each, self._types) for each in pair.values())
        kind = common_type(left, right)
        if left == right:
            return pair, kind if is_known(kind) else None
        # Numbers of different types are compared as they are.
        if not is_known(kind) or is_number(kind):
            return pair, None
        own = zip(pair.items(), (left, right), strict=True)
        return {port: side if each == kind else cast(side, type_text(kind)) for (port, side), each in own}, kind

    def _add_key(self, key: Key, kind: pa.DataType | None) -> None:
        """Adds an equation. With more than two inputs, all sides that are equal to each other become one key, so that
        any of them can meet any other by it. Values of different types are equal in pairs only: 2^53 + 1 is no double.
        """
        others = self._keys if len(self._ports) > 2 and kind is not None else []
        for other in list(others):
            shared = [port for port in key if other[0].get(port) == key[port]]
            if shared and other[1] == kind and all(key.get(port, each) == each for port, each in other[0].items()):
                others.remove(other)
                key = other[0] | key
        self._keys.append((key, kind))


def is_same_window(part: exp.Expr) -> bool:
    """``a.window_start = b.window_start``: true for every pair, because its tuples meet in a window."""
    if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
        return False
    return part.this.name in (WINDOW_START, WINDOW_END) and part.this == part.expression
