"""Unions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from freshet.model.errors import UserError
from freshet.model.numbers import INTEGERS, common_number
from freshet.model.operators.base import Operator, Typer
from freshet.model.schema import type_text

_NUMBERS = (*INTEGERS, pa.float32(), pa.float64())


@dataclass(frozen=True, slots=True)
class Union(Operator):
    """UNION ALL: the tuples of all its inputs, which have the same columns.

    >>> Union("q.union").text()
    'UNION ALL'
    """

    tag: ClassVar[str] = "union"

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        common = inputs[0]
        for other in inputs[1:]:
            common = self._common(common, other)
        return common

    def text(self) -> str:
        return "UNION ALL"

    def _common(self, left: pa.Schema, right: pa.Schema) -> pa.Schema:
        """The columns that two inputs agree on: names of the first, the wider of the types."""
        where = f"operator {self.name}"
        if len(left) != len(right):
            raise UserError(f"{where}: the parts of its UNION ALL have {len(left)} and {len(right)} columns")
        fields = []
        for one, other in zip(left, right, strict=True):
            kind = wider(one.type, other.type)
            if kind is None:
                raise UserError(
                    f"{where}: column {one.name} is {type_text(one.type)} in one part of its UNION ALL and "
                    f"{type_text(other.type)} in another: CAST one of them"
                )
            fields.append(pa.field(one.name, kind))
        return pa.schema(fields)


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The common type where every value of both is one of its values (or, for a bigint as double, nearest to one).

    A type that is not known makes the common one unknown, too.

    >>> wider(pa.int8(), pa.int32()), wider(pa.int64(), pa.float32()), wider(pa.int8(), pa.string())
    (DataType(int32), DataType(double), None)
    """
    if one == other or pa.types.is_null(one):
        return one
    if pa.types.is_null(other):
        return other
    return common_number(one, other) if one in _NUMBERS and other in _NUMBERS else None
