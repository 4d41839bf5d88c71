"""The flow of an operator of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from freshet.model.operators import Own
from freshet.model.schema import ARRIVAL, type_text
from freshet.sql.check.types import is_known
from freshet.sql.flows.flow import TIME, Flow, Traits, Want, refuse_table
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.logical import Applied
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import column
from freshet.sql.parse.trees import cast


class OwnFlow(Flow):
    """What a function of the user's makes of a flow's tuples."""

    def __init__(
        self, operator: Applied, columns: Sequence[tuple[str, pa.DataType]], child: Flow, place: exp.Expr | None
    ) -> None:
        name, function = operator.function.name, operator.function
        refuse_table(child, f"{name}() makes rows of the tuples of a stream; join them with it", place)
        if child.traits.span is not None:
            raise fail(f"a window stands behind an operator, not before it: {name}(s) [RANGE 1 MINUTE]", place)
        super().__init__(_traits(operator, child.traits), place)
        self._operator, self._child = operator, child
        spelled = {each.lower(): (each, kind) for each, kind in columns}
        self._input = []
        for field in function.takes:
            own, kind = spelled.get(field.name.lower(), (None, field.type))
            if own is None:
                there = ", ".join(child.traits.names)
                raise fail(f"{name}() takes a column {field.name}, which is not there (there: {there})", place)
            if is_known(kind) and kind != field.type:
                wanted = type_text(field.type)
                raise fail(
                    f"{name}() takes {field.name} as {wanted}, but it is {type_text(kind)}: CAST it in a WITH", place
                )
            value = column(own) if is_known(kind) else cast(column(own), type_text(field.type))
            self._input.append((field.name, value))

    def emit(self, want: Want, wiring: Wiring) -> str:
        function = self._operator.function
        if function.time_column is not None:
            want = want.inlined({TIME: column(function.time_column)})
        own = {each.lower() for each in function.returns.names}
        carried = tuple(sorted(want.reads() - own - {ARRIVAL}))
        columns = (*self._input, *((each, column(each)) for each in carried))
        before = Want(f"{self._operator.name}.input", columns, time=TIME if TIME in carried else None)
        source = self._child.emit(before, wiring)
        made = Own(self._operator.name, function.key, self._operator.arguments, carried)
        return replace(want, time=None).after(wiring, wiring.add(made, source))


def _traits(operator: Applied, before: Traits) -> Traits:
    function = operator.function
    names, order = tuple(function.returns.names), () if before.order == () else None
    if function.time_column is not None:
        return Traits(names, "event", events={function.time_column.lower(): False, TIME: False}, order=order)
    if function.time == "none":
        return Traits(names, "none", order=order)
    kept = {TIME: before.events[TIME]} if TIME in before.events else {}
    return Traits(names, before.clock, events=kept, order=order)
