"""Unions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import pyarrow as pa

from freshet.model.errors import UserError
from freshet.model.numbers import common_type
from freshet.model.operators.base import Operator, Typer
from freshet.model.schema import type_text


@dataclass(frozen=True, slots=True)
class Union(Operator):
    """UNION ALL: the tuples of all its inputs, which have the same columns.

    >>> Union("q.union").text()
    'UNION ALL'
    """

    tag: ClassVar[str] = "union"

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        return reduce(self._common, inputs)

    def text(self) -> str:
        return "UNION ALL"

    def _common(self, left: pa.Schema, right: pa.Schema) -> pa.Schema:
        """The columns that two inputs agree on: names of the first, the wider of the types."""
        where = f"operator {self.name}"
        if len(left) != len(right):
            raise UserError(f"{where}: the parts of its UNION ALL have {len(left)} and {len(right)} columns")
        fields = []
        for one, other in zip(left, right, strict=True):
            if not _agree(one.type, other.type):
                raise UserError(
                    f"{where}: column {one.name} is {type_text(one.type)} in one part of its UNION ALL and "
                    f"{type_text(other.type)} in another: CAST one of them"
                )
            fields.append(pa.field(one.name, common_type(one.type, other.type)))
        return pa.schema(fields)


def _agree(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of two types go into one column; a type that is not known yet may be any."""
    if one == other or pa.types.is_null(one) or pa.types.is_null(other):
        return True
    return not (pa.types.is_decimal(one) or pa.types.is_decimal(other) or pa.types.is_null(common_type(one, other)))
