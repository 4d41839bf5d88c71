"""The types of the columns that operators give out, according to the kernels."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from freshet.kernels.folds.aggregates.calls import Calls
from freshet.kernels.superbox.program import Program, why_not
from freshet.model import Call, Operator, UserError
from freshet.model.schema import with_arrival, without_arrival


class Fallback(Protocol):
    """Knows the types of expressions that are not compiled."""

    def plain(self, operator: Operator, schema: pa.Schema) -> pa.Schema:
        """The columns that a plain operator gives out for tuples of a schema."""


class KernelTyper:
    """A :class:`~freshet.model.operators.Typer` that asks the kernels, and Spark for what they do not compile.

    Args:
        fallback: Spark; None: every expression must be compiled.

    >>> from freshet.model import Project
    >>> KernelTyper().plain(Project("q.project", (("w", "v / 2"),)), pa.schema([("v", pa.int32())]))
    w: double
    """

    def __init__(self, fallback: Fallback | None = None) -> None:
        self._fallback = fallback

    def plain(self, operator: Operator, schema: pa.Schema) -> pa.Schema:
        if self._fallback is not None and why_not((operator,), with_arrival(schema)) is not None:
            return self._fallback.plain(operator, schema)
        made = without_arrival(Program(((operator,),), with_arrival(schema)).schemas[0])
        if operator.makes is None:
            return schema
        for field in made:
            if pa.types.is_null(field.type):
                raise UserError(f"operator {operator.name}: column {field.name} is only NULL: CAST it to a type")
        return made

    def call(self, call: Call, schema: pa.Schema) -> pa.DataType:
        [field] = Calls((call,), schema).fields
        return field.type
