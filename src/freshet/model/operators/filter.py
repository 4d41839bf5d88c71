"""Filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from freshet.model.functions import readable
from freshet.model.operators.base import Operator, Typer


@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """Keeps the tuples for which the predicate is true (one conjunct of a WHERE).

    >>> Filter("q.filter_1", "size > 1000").text()
    'size > 1000'
    """

    tag: ClassVar[str] = "filter"

    predicate: str

    @property
    def keeps(self) -> str:
        return self.predicate

    def rewritten(self, change: Callable[[str], str]) -> Filter:
        return replace(self, predicate=change(self.predicate))

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        return typer.plain(self, inputs[0])

    def text(self) -> str:
        return readable(self.predicate)
