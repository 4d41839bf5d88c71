"""Joins without windows: tuples of streams that are ordered by the key on which they meet (WU ch. 3).

Such a join is one of windows that last for a moment, where the key is the time: a tuple is valid at its key alone, and
the key marks of the streams take the place of their watermarks.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from freshet.model.operators import FROM, UNTIL
from freshet.sql.check.scope import TypedColumns
from freshet.sql.flows.flow import Flow, Span, Want
from freshet.sql.flows.join import JoinFlow
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.logical import LogicalJoin
from freshet.sql.parse.text import column
from freshet.sql.parse.trees import cast, micros, plus


class KeyedFlow(Flow):
    """The tuples of a flow, each at the moment that its ordered key says."""

    def __init__(self, child: Flow) -> None:
        traits = replace(child.traits, span=Span(1, interval=True), clock="none", events={}, bounds={})
        super().__init__(traits, child.place)
        self.child = child

    def emit(self, want: Want, wiring: Wiring) -> str:
        name, kind = next(iter(self.traits.ordered.items()))
        key = column(name)
        if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
            key = cast(key, "timestamp")
        moment = cast(key, "bigint") if pa.types.is_integer(kind) else micros(key)
        values = {FROM: moment, UNTIL: plus(moment, 1)}
        return self.child.emit(replace(want.inlined(values), by_key=True), wiring)


class KeyJoinFlow(JoinFlow):
    """A join of flows that are ordered by the key on which they meet."""

    def __init__(self, join: LogicalJoin, columns: TypedColumns, inputs: tuple[Flow, ...]) -> None:
        keyed = tuple(each if isinstance(each, KeyedFlow) else KeyedFlow(each) for each in inputs)
        super().__init__(join, columns, keyed)
        ports = range(len(inputs) if join.kind == "inner" else 1)
        ordered = {
            joined: self.inputs[port].traits.ordered[name.lower()]
            for joined, (port, name) in self._places.items()
            if port in ports and name.lower() in self.inputs[port].traits.ordered
        }
        self.traits = replace(self.traits, span=None, ordered=ordered)

    def emit(self, want: Want, wiring: Wiring) -> str:
        self._check()
        return super().emit(want, wiring)

    def _check(self) -> None:
        """Refuses a join in which some streams do not meet on their ordered keys."""
        linked = {0}
        while True:
            found = {port for pair in self._links() if pair & linked for port in pair} - linked
            if not found:
                break
            linked |= found
        lonely = next((port for port in range(len(self.inputs)) if port not in linked), None)
        if lonely is None:
            return
        aliases, keys = self.join.aliases, [", ".join(each.traits.ordered) for each in self.inputs]
        raise self.wrong(
            f"without windows, {aliases[lonely]} must meet the others on their ordered keys, as in "
            f"{aliases[0]}.{keys[0]} = {aliases[lonely]}.{keys[lonely]}: else all tuples would have to be remembered "
            "for ever"
        )

    def _links(self) -> list[set[int]]:
        """Inputs that meet on their ordered keys."""
        return [{port for port in key if self._is_key(port, key[port])} for key in self._sides.keys]

    def _is_key(self, port: int, tree: exp.Expr) -> bool:
        own = self._sides.inside(tree)
        return isinstance(own, exp.Column) and own.name.lower() in self.inputs[port].traits.ordered


def join_flow(join: LogicalJoin, columns: TypedColumns, inputs: tuple[Flow, ...]) -> JoinFlow:
    """A join of flows: by ordered keys if none of them has a window and all are ordered."""
    if all(isinstance(each, KeyedFlow) or (each.traits.span is None and each.traits.ordered) for each in inputs):
        return KeyJoinFlow(join, columns, inputs)
    return JoinFlow(join, columns, tuple(each.child if isinstance(each, KeyedFlow) else each for each in inputs))
