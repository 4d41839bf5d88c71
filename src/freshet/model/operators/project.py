"""Projections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from freshet.model.functions import readable
from freshet.model.operators.base import Columns, Operator, Typer


@dataclass(frozen=True, slots=True)
class Project(Operator):
    """Computes the columns ``(name, expression)``.

    >>> Project("q.project", (("host", "host"), ("kb", "size / 1024"))).text()
    'host, size / 1024 AS kb'
    """

    tag: ClassVar[str] = "project"

    columns: Columns

    @property
    def makes(self) -> Columns:
        return self.columns

    def rewritten(self, change: Callable[[str], str]) -> Project:
        return replace(self, columns=tuple((name, change(text)) for name, text in self.columns))

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        return typer.plain(self, inputs[0])

    def text(self) -> str:
        return columns_text(self.columns)


def columns_text(columns: Columns) -> str:
    """Columns as a SELECT lists them.

    >>> columns_text((("k", "k"), ("twice", "v * 2")))
    'k, v * 2 AS twice'
    """
    return readable(", ".join(text if text == name else f"{text} AS {name}" for name, text in columns))
