"""Flows that remember nothing: streams, filters, projections, unions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START, Marked, Union
from freshet.model.schema import ARRIVAL
from freshet.sql.check.scope import TypedColumns
from freshet.sql.flows.flow import MEMBER, PASSES, TIME, Flow, Order, Span, TimeKind, Traits, Want, refuse_table
from freshet.sql.flows.wiring import Wiring
from freshet.sql.parse.text import column
from freshet.sql.parse.trees import timestamp


class StreamFlow(Flow):
    """A stream, the output of another query, or a table.

    ``ends`` tells whether its event time is the end of a window that the tuple stands for.
    """

    def __init__(
        self,
        name: str,
        columns: TypedColumns,
        clock: TimeKind,
        event_time: str | None,
        table: bool = False,
        order: Order = (),
        ends: bool = False,
        ordered: str | None = None,
    ) -> None:
        events = {} if event_time is None else {event_time.lower(): ends, TIME: ends}
        names = tuple(name for name, _ in columns)
        key = {name.lower(): kind for name, kind in columns if name == ordered}
        traits = Traits(names, clock, events=events, order=order, table=name if table else None, ordered=key)
        super().__init__(traits)
        self._ordered = ordered
        self._name = name
        self._event_time = event_time
        kind = next((kind for name, kind in columns if name == event_time), None)
        self._is_local = kind == pa.timestamp("us")

    def emit(self, want: Want, wiring: Wiring) -> str:
        time = timestamp(column(ARRIVAL)) if self._event_time is None else column(self._event_time)
        if self._is_local:
            time = exp.Cast(this=time, to=exp.DataType.build("TIMESTAMP"))
        want = want.inlined({TIME: time})
        assert not want.reads() & {FROM, UNTIL, PASSES, MEMBER, WINDOW_START, WINDOW_END}
        if not want.by_key:
            return want.after(wiring, self._name)
        assert self._ordered is not None
        return want.after(wiring, wiring.add(Marked(f"{want.name}.marked", self._ordered), self._name))


class FilterFlow(Flow):
    """The tuples of a flow for which a predicate is true."""

    def __init__(self, name: str, predicate: exp.Expr, child: Flow) -> None:
        traits = child.traits
        by_rows = traits.span is not None and traits.span.rows is not None
        super().__init__(replace(traits, marked=traits.marked or by_rows), child.place)
        self._name = name
        self._predicate = predicate
        self._child = child

    def emit(self, want: Want, wiring: Wiring) -> str:
        if PASSES not in want.reads():
            return self._child.emit(replace(want, filters=((self._name, self._predicate), *want.filters)), wiring)
        # A window of rows counts the tuples before the filter, so all of them must go on.
        predicate = self._predicate
        if self._child.traits.marked:
            operand = exp.Paren(this=predicate.copy()) if isinstance(predicate, exp.Or) else predicate.copy()
            predicate = exp.And(this=operand, expression=column(PASSES))
        return self._child.emit(want.inlined({PASSES: predicate}), wiring)

    def lag(self, name: str) -> int:
        return self._child.lag(name)


class ProjectFlow(Flow):
    """Columns computed from a flow's."""

    def __init__(self, columns: Sequence[tuple[str, exp.Expr]], child: Flow) -> None:
        self.child = child
        self._values = {name.lower(): value for name, value in columns}
        plain = {name: value.name.lower() for name, value in self._values.items() if isinstance(value, exp.Column)}
        super().__init__(child.traits.renamed(tuple(name for name, _ in columns), plain), child.place)

    def emit(self, want: Want, wiring: Wiring) -> str:
        return self.child.emit(want.inlined(self._values), wiring)

    def lag(self, name: str) -> int:
        value = self._values.get(name.lower())
        return self.child.lag(name if value is None else value.name)


class UnionFlow(Flow):
    """The tuples of several flows with the same columns."""

    def __init__(self, name: str, members: Sequence[Flow], place: exp.Expr | None) -> None:
        for member in members:
            refuse_table(member, "it has no part in UNION, EXCEPT or INTERSECT; join a stream with it", place)
        first = members[0].traits
        clocks = {member.traits.clock for member in members}
        clock: TimeKind = "none" if "none" in clocks else "arrival" if clocks == {"arrival"} else "event"
        shared = {
            name: all(member.traits.events[name] for member in members)
            for name in first.events
            if all(name in member.traits.events for member in members)
        }
        bounds = {
            name: which
            for name, which in first.bounds.items()
            if all(member.traits.bounds.get(name) == which for member in members)
        }
        span = _common_span([member.traits.span for member in members], same_clock=len(clocks) == 1)
        marked = any(member.traits.marked for member in members)
        super().__init__(Traits(first.names, clock, span, shared, bounds, None, marked), place)
        self._name = name
        self._members = tuple(members)

    def emit(self, want: Want, wiring: Wiring) -> str:
        inputs = [
            member.emit(want.inlined({MEMBER: exp.Literal.number(number)}), wiring)
            for number, member in enumerate(self._members)
        ]
        return wiring.add(Union(self._name), *inputs)

    def lag(self, name: str) -> int:
        return max(member.lag(name) for member in self._members)


def _common_span(spans: Sequence[Span | None], same_clock: bool) -> Span | None:
    if len(set(spans)) == 1 and (same_clock or spans[0] is None or spans[0].interval):
        return spans[0]
    known = [span for span in spans if span is not None]
    problem = next((span.problem for span in known if span.problem is not None), None)
    slides = {(span.slide, span.offset) for span in known}
    if problem is None and (len(known) < len(spans) or len(slides) > 1 or known[0].slide is None):
        problem = (
            "all members need windows with the same SLIDE, as in [RANGE 1 MINUTE SLIDE 10 SECONDS], "
            "so that there are moments at which each of them has an answer"
        )
    if problem is not None:
        return Span(problem=problem)
    widths = {span.width for span in known}
    sizes = [span.size for span in known if span.size is not None]
    width = widths.pop() if len(widths) == 1 else None
    return Span(max(sizes), known[0].slide, width=width, interval=True, offset=known[0].offset)
