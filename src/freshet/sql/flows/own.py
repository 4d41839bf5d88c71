"""The flow of an operator of the user's own."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from freshet.model.functions import OwnOperator
from freshet.model.operators import Own, OwnFold
from freshet.model.schema import ARRIVAL, type_text
from freshet.sql.check.scope import TypedColumns
from freshet.sql.check.types import is_known
from freshet.sql.flows.flow import TIME, Flow, Traits, Want, refuse_table
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.logical import Applied
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import column
from freshet.sql.parse.trees import cast


class OwnFlow(Flow):
    """The rows that an operator of the user's own makes from a flow's tuples."""

    def __init__(self, operator: Applied, columns: TypedColumns, child: Flow, place: exp.Expr | None) -> None:
        name, function = operator.function.name, operator.function
        refuse_table(child, f"{name}() makes rows of the tuples of a stream; join them with it", place)
        if child.traits.span is not None:
            raise fail(f"a window comes after an operator, not before it: {name}(s) [RANGE 1 MINUTE]", place)
        _check_input(function, child.traits, place)
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
                types = f"as {type_text(field.type)}, but it is {type_text(kind)}"
                raise fail(f"{name}() takes {field.name} {types}: CAST it in a WITH query", place)
            value = column(own) if is_known(kind) else cast(column(own), type_text(field.type))
            self._input.append((field.name, value))

    def emit(self, want: Want, wiring: Wiring) -> str:
        function = self._operator.function
        if function.time_column is not None:
            want = want.inlined({TIME: column(function.time_column)})
        if function.states:
            return self._emit_fold(function, want, wiring)
        own = {each.lower() for each in function.returns.names}
        checked = {TIME} if function.time_column is not None and self._child.traits.clock == "event" else set()
        carried = tuple(sorted(want.reads() - own - {ARRIVAL} | checked))
        columns = (*self._input, *((each, column(each)) for each in carried))
        before = Want(f"{self._operator.name}.input", columns, time=TIME if TIME in carried else None)
        source = self._child.emit(before, wiring)
        made = Own(self._operator.name, function.key, self._operator.arguments, carried)
        return replace(want, time=None).after(wiring, wiring.add(made, source))

    def _emit_fold(self, function: OwnOperator, want: Want, wiring: Wiring) -> str:
        by_time = function.time_column is not None
        time = TIME if by_time and self._child.traits.clock == "event" else None
        source = self._child.emit(Want(f"{self._operator.name}.input", tuple(self._input), time=time), wiring)
        made = OwnFold(self._operator.name, function.key, self._operator.arguments, by_time)
        return replace(want, time=None).after(wiring, wiring.add(made, source))


def _check_input(function: OwnOperator, before: Traits, place: exp.Expr | None) -> None:
    """Refuses tuples without the order or the time that an operator needs."""
    if function.states and before.order != () and not function.any_order:
        raise fail(
            f"{function.name}() remembers, and its tuples come in no order that is the same in every run: read a "
            "stream, or say any_order = True in the operator if its rows do not depend on the order",
            place,
        )
    if function.time_column is not None and before.clock == "none":
        raise fail(
            f"{function.name}() goes by the time of its tuples, and they have none: select the time column in what it "
            "reads (of a window: window_end)",
            place,
        )


def _traits(operator: Applied, before: Traits) -> Traits:
    function = operator.function
    names = tuple(function.returns.names)
    # As time passes, remembered rows may come out between others, at no fixed place.
    order = () if before.order == () and not function.states else None
    if function.time_column is not None:
        return Traits(names, "event", events={function.time_column.lower(): False, TIME: False}, order=order)
    if function.time == "none":
        return Traits(names, "none", order=order, untimed=function.name)
    kept = {TIME: before.events[TIME]} if TIME in before.events else {}
    return Traits(names, before.clock, events=kept, order=order)
