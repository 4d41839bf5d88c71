"""The condition of a join, taken apart by what it reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from freshet.model.numbers import is_number
from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START
from freshet.model.schema import ARRIVAL, type_text
from freshet.sql.errors import SqlError, fail, place_of
from freshet.sql.inline import column_names
from freshet.sql.limits import conjuncts
from freshet.sql.types import common_type, is_known, type_of

Port = Literal[0, 1]
PORTS: tuple[Port, Port] = (0, 1)
SIDES = ("left", "right")
"""How the inputs of a join are called."""
Named = tuple[str, exp.Expr]
_HIDDEN = {ARRIVAL, WINDOW_START, WINDOW_END, FROM, UNTIL}


@dataclass(frozen=True, slots=True)
class Condition:
    """An ON taken apart: pairs of keys, conditions on one side, and those that need both; over the joined columns."""

    keys: tuple[tuple[exp.Expr, exp.Expr], ...]
    own: tuple[tuple[Named, ...], tuple[Named, ...]]
    both: tuple[Named, ...]


class Sides:
    """The two inputs of a join, and which of them a joined column is from.

    Args:
        columns: Names and types of the joined columns, those of the left input first.
        inputs: Names of the columns of the inputs.
        hidden: Inputs that the time, the validity and the window of what is joined belong to.
    """

    def __init__(
        self,
        columns: Sequence[tuple[str, pa.DataType]],
        inputs: tuple[Sequence[str], Sequence[str]],
        hidden: Collection[Port] = PORTS,
    ) -> None:
        self.types = {name.lower(): kind for name, kind in columns}
        own = [(port, name) for port in PORTS for name in inputs[port]]
        self.places: dict[str, tuple[Port, str]] = {
            joined.lower(): place for (joined, _), place in zip(columns, own, strict=True)
        }
        """Joined columns (lower case), each with the input and the name there."""
        self._hidden = set(hidden)

    def of(self, tree: exp.Expr) -> set[Port]:
        """The inputs that a condition over the joined columns reads."""
        names = column_names(tree)
        found = {self.places[name][0] for name in names if name in self.places}
        return found | self._hidden if names & _HIDDEN else found

    def taken_apart(
        self, name: str, condition: exp.Expr | None, outer: Port | None, place: exp.Expr | None, pairs: bool = False
    ) -> Condition:
        """The condition of a join.

        Args:
            name: Of the join.
            condition: Its ON.
            outer: The input that comes without a partner, too.
            place: Where it stands in the text.
            pairs: Whether pairs can be looked at before it is known which of the outer input have no partner.
        """
        keys: list[tuple[exp.Expr, exp.Expr]] = []
        own: tuple[list[Named], list[Named]] = ([], [])
        both: list[Named] = []
        for number, part in enumerate([] if condition is None else conjuncts(condition), start=1):
            named, sides = (f"{name}.on_{number}", part), self.of(part)
            pair = self._key(part)
            if is_same_window(part):
                continue
            if pair is not None:
                keys.append(pair)
            elif outer is not None and sides != {1 - outer}:
                if not pairs:
                    raise _outer(place if place_of(part) is None else part)
                both.append(named)
            elif len(sides) == 1:
                own[sides.pop()].append(named)
            else:
                both.append(named)
        return Condition(tuple(keys), (tuple(own[0]), tuple(own[1])), tuple(both))

    def _key(self, part: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        if not isinstance(part, exp.EQ):
            return None
        sides = [self.of(part.this), self.of(part.expression)]
        if sorted(map(sorted, sides)) != [[0], [1]]:
            return None
        pair = (part.this, part.expression) if sides[0] == {0} else (part.expression, part.this)
        left, right = (type_of(each, self.types) for each in pair)
        kind = common_type(left, right)
        # Numbers of different types are compared as they are.
        if left == right or not is_known(kind) or is_number(kind):
            return pair
        return _cast(pair[0], left, kind), _cast(pair[1], right, kind)


def is_same_window(part: exp.Expr) -> bool:
    """``a.window_start = b.window_start``: true for every pair, because its tuples meet in a window."""
    if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
        return False
    return part.this.name in (WINDOW_START, WINDOW_END) and part.this == part.expression


def _outer(place: exp.Expr | None) -> SqlError:
    return fail(
        "ON of a LEFT JOIN takes equal columns of both streams and conditions on the right stream alone, "
        "as in ON a.k = b.k AND b.v > 1",
        place,
    )


def _cast(tree: exp.Expr, kind: pa.DataType, wanted: pa.DataType) -> exp.Expr:
    if kind == wanted:
        return tree
    return exp.Cast(this=tree.copy(), to=exp.DataType.build(type_text(wanted), dialect="spark"))
