"""Operators of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from freshet.model.functions import known_operator
from freshet.model.operators.base import Acted, Operator, Time, Typer, earliest, latest
from freshet.model.operators.fold import Fold


@dataclass(frozen=True, slots=True)
class Own(Operator):
    """Gives each tuple to a Python function, which makes any number of rows of it.

    Args:
        key: Of the function (:class:`~freshet.model.functions.OwnOperator`), which says its version, too.
        arguments: What the text gives the function besides the tuples.
        carried: Columns of the tuples that go along with the rows that are made of them.
    """

    tag: ClassVar[str] = "own"

    key: str
    arguments: tuple[str | int | float | bool, ...] = ()
    carried: tuple[str, ...] = ()

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        return pa.schema([*known_operator(self.key).returns, *(inputs[0].field(name) for name in self.carried)])

    def text(self) -> str:
        return _text(self.key, self.arguments)


@dataclass(frozen=True, slots=True)
class OwnFold(Fold):
    """Gives tuples to an operator of the user's that remembers rows.

    Args:
        key: Of the operator (:class:`~freshet.model.functions.OwnOperator`), which says its version, too.
        arguments: What the text gives the operator besides the tuples.
        by_time: Whether it hears how far event time has come, which may bring rows out.
    """

    tag: ClassVar[str] = "own_fold"

    key: str
    arguments: tuple[str | int | float | bool, ...] = ()
    by_time: bool = False

    @property
    def goes_by_time(self) -> bool:
        return self.by_time

    @property
    def states(self) -> int:
        return len(known_operator(self.key).states)

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        return known_operator(self.key).returns

    def watermark(self, before: Sequence[Time], acted: Acted) -> Time:
        return acted(0) if self.by_time else earliest(before)

    def is_due(self, seen: Sequence[Time], possible: Sequence[Time]) -> bool:
        return self.by_time and latest(*possible, *seen) != seen[0]

    def text(self) -> str:
        return _text(self.key, self.arguments)

    def state_text(self) -> str:
        return " and ".join(f"rows of ({', '.join(state.names)})" for state in known_operator(self.key).states)


def _text(key: str, arguments: Sequence[str | int | float | bool]) -> str:
    function = known_operator(key)
    given = "".join(f", {argument!r}" for argument in arguments)
    return f"{function.name}({', '.join(function.takes.names)}{given}) AS ({', '.join(function.returns.names)})"
