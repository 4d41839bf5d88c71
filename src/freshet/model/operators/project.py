"""Projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        return typer.columns(self.name, self.columns, inputs[0])

    def text(self) -> str:
        return columns_text(self.columns)


def columns_text(columns: Columns) -> str:
    """Columns as a SELECT lists them.

    >>> columns_text((("k", "k"), ("twice", "v * 2")))
    'k, v * 2 AS twice'
    """
    return readable(", ".join(text if text == name else f"{text} AS {name}" for name, text in columns))
