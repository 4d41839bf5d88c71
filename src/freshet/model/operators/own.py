"""Operators of the user's own that remember nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from freshet.model.functions import known_operator
from freshet.model.operators.base import Operator, Typer


@dataclass(frozen=True, slots=True)
class Own(Operator):
    """Gives each tuple to a Python function, which makes any number of rows of it.

    Args:
        name: Its name.
        key: Of the function (:class:`~freshet.model.functions.RowWise`), which says its version, too.
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
        function = known_operator(self.key)
        arguments = "".join(f", {argument!r}" for argument in self.arguments)
        return f"{function.name}({', '.join(function.takes.names)}{arguments}) AS ({', '.join(function.returns.names)})"
