"""The condition of a join, taken apart by what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from freshet.model.numbers import is_number
from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START
from freshet.model.schema import ARRIVAL, type_text
from freshet.sql.check.types import common_type, is_known, type_of
from freshet.sql.flows.flow import Flow
from freshet.sql.lower.logical import Join
from freshet.sql.parse.errors import fail, place_of
from freshet.sql.parse.limits import conjuncts
from freshet.sql.parse.text import column
from freshet.sql.parse.trees import cast, column_names, inline

Port = Literal[0, 1]
PORTS: tuple[Port, Port] = (0, 1)
SIDES = ("left", "right")
"""How the inputs of a join are called."""
Named = tuple[str, exp.Expr]
_LEFT = (
    "ON of a LEFT JOIN takes equal columns of both streams and conditions on the right stream alone, "
    "as in ON a.k = b.k AND b.v > 1"
)
_HIDDEN = {ARRIVAL, WINDOW_START, WINDOW_END, FROM, UNTIL}


class Sides:
    """The two inputs of a join: which of them a joined column is from, and what the condition of the join asks of each.

    Args:
        join: The join.
        columns: Names and types of the joined columns, those of the left input first.
        inputs: The inputs.
        stream: The input that is joined with a table; None: both are streams. The time, the validity and the window of
            what is joined are its own, and pairs can be looked at before it is known which of it have no partner.
    """

    def __init__(
        self,
        join: Join,
        columns: Sequence[tuple[str, pa.DataType]],
        inputs: tuple[Flow, Flow],
        stream: Port | None = None,
    ) -> None:
        self._types = {name.lower(): kind for name, kind in columns}
        own = [(port, name) for port in PORTS for name in inputs[port].traits.names]
        self.places: dict[str, tuple[Port, str]] = {
            joined.lower(): place for (joined, _), place in zip(columns, own, strict=True)
        }
        """Joined columns (lower case), each with the input and the name there."""
        self._own = {joined: column(name) for joined, (_, name) in self.places.items()}
        self._hidden = set(PORTS) if stream is None else {stream}
        self.keys: list[tuple[exp.Expr, exp.Expr]] = []
        """Pairs of keys, over the joined columns."""
        self.own: tuple[list[Named], list[Named]] = ([], [])
        """Conditions on one side, over the joined columns."""
        self.both: list[Named] = []
        """Conditions that need both sides, over the joined columns."""
        self._take_apart(join, pairs=stream is not None)

    def of(self, tree: exp.Expr) -> set[Port]:
        """The inputs that a condition over the joined columns reads."""
        names = column_names(tree)
        found = {self.places[name][0] for name in names if name in self.places}
        return found | self._hidden if names & _HIDDEN else found

    def inside(self, tree: exp.Expr) -> exp.Expr:
        """What is over joined columns of one input, over the columns of that input."""
        return inline(tree, self._own)

    def filters(self, conditions: Sequence[Named]) -> tuple[Named, ...]:
        """Conditions over joined columns of one input, over the columns of that input."""
        return tuple((name, self.inside(predicate)) for name, predicate in conditions)

    def _take_apart(self, join: Join, pairs: bool) -> None:
        for number, part in enumerate([] if join.condition is None else conjuncts(join.condition), start=1):
            named, sides = (f"{join.name}.on_{number}", part), self.of(part)
            pair = self._key(part)
            lonely = join.kind == "left" and sides != {1}
            if is_same_window(part):
                continue
            if pair is not None:
                self.keys.append(pair)
            elif lonely and not pairs:
                raise fail(_LEFT, join.places[1] if place_of(part) is None else part)
            elif len(sides) == 1 and not lonely:
                self.own[sides.pop()].append(named)
            else:
                self.both.append(named)

    def _key(self, part: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        if not isinstance(part, exp.EQ):
            return None
        sides = [self.of(part.this), self.of(part.expression)]
        if sorted(map(sorted, sides)) != [[0], [1]]:
            return None
        pair = (part.this, part.expression) if sides[0] == {0} else (part.expression, part.this)
        left, right = (type_of(each, self._types) for each in pair)
        kind = common_type(left, right)
        # Numbers of different types are compared as they are.
        if left == right or not is_known(kind) or is_number(kind):
            return pair
        one, two = (
            side if own == kind else cast(side, type_text(kind)) for side, own in zip(pair, (left, right), strict=True)
        )
        return one, two


def is_same_window(part: exp.Expr) -> bool:
    """``a.window_start = b.window_start``: true for every pair, because its tuples meet in a window."""
    if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
        return False
    return part.this.name in (WINDOW_START, WINDOW_END) and part.this == part.expression
