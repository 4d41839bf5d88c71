"""The types of what operators give out, as the kernels make it."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from freshet.kernels.folds.calls import Calls
from freshet.kernels.superbox.program import Program, why_not
from freshet.model import Call, Filter, Project, UserError
from freshet.model.operators import Columns
from freshet.model.schema import with_arrival


class Fallback(Protocol):
    """Knows the types of expressions that are not compiled."""

    def columns(self, operator: str, columns: Columns, schema: pa.Schema) -> pa.Schema:
        """The columns of a projection over tuples of a schema."""

    def predicate(self, operator: str, predicate: str, schema: pa.Schema) -> None:
        """Refuses a predicate that is none."""


class KernelTyper:
    """A :class:`~freshet.model.operators.Typer` that asks the kernels, and Spark about what they do not compile.

    Args:
        fallback: Spark; None: all must be compiled.

    >>> KernelTyper().columns("q.project", (("w", "v / 2"),), pa.schema([("v", pa.int32())]))
    w: double
    """

    def __init__(self, fallback: Fallback | None = None) -> None:
        self._fallback = fallback

    def columns(self, operator: str, columns: Columns, schema: pa.Schema) -> pa.Schema:
        project = Project(operator, columns)
        if self._fallback is not None and why_not((project,), with_arrival(schema)) is not None:
            return self._fallback.columns(operator, columns, schema)
        made = pa.schema(list(Program(((project,),), with_arrival(schema)).schemas[0])[:-1])
        for field in made:
            if pa.types.is_null(field.type):
                raise UserError(f"operator {operator}: column {field.name} is only NULL: CAST it to a type")
        return made

    def predicate(self, operator: str, predicate: str, schema: pa.Schema) -> None:
        test = Filter(operator, predicate)
        if self._fallback is None:
            Program(((test,),), with_arrival(schema))
        elif why_not((test,), with_arrival(schema)) is not None:
            self._fallback.predicate(operator, predicate, schema)

    def call(self, call: Call, schema: pa.Schema) -> pa.DataType:
        [field] = Calls((call,), schema).fields
        return field.type
