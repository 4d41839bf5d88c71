"""Joins: rows of tuples that are valid at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START, Join
from freshet.model.operators.join import port_names
from freshet.sql.check.scope import TypedColumns
from freshet.sql.flows.condition import Named, Sides, is_same_window
from freshet.sql.flows.flow import BOUNDS, Flow, Inputs, Span, TimeKind, Traits, Want, boundary
from freshet.sql.flows.window import NO_WINDOW_COLUMNS, validity
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.logical import LogicalJoin
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import column
from freshet.sql.parse.trees import plus, timestamp


class JoinFlow(Flow):
    """A join of flows with windows; its columns are those of the first input, then those of the second, and so on."""

    def __init__(self, join: LogicalJoin, columns: TypedColumns, inputs: tuple[Flow, ...]) -> None:
        names = tuple(name for name, _ in columns)
        by_arrival = all(side.traits.clock == "arrival" for side in inputs)
        clock: TimeKind = "arrival" if by_arrival else "none"
        super().__init__(Traits(names, clock, bounds=BOUNDS, order=None), join.places[-1])
        self.join, self.inputs = join, inputs
        spans = list(map(_side_span, inputs, join.aliases, join.places))
        self._sides = Sides(join, columns, inputs)
        self._places = self._sides.places
        self._span = reduce(self._pair_span, spans)
        self.traits = replace(self.traits, span=self._span, events=self._events())

    def _pair_span(self, left: Span, right: Span) -> Span:
        assert left.size is not None
        assert right.size is not None
        if self.join.kind == "left":
            if {left.slide, right.slide} - {None, 1}:
                raise self.wrong("a LEFT JOIN goes tuple by tuple: leave SLIDE out")
            return Span(left.size, interval=True, outer=True)
        slide = _common_slide(left, right)
        if slide is None and (left.slide is not None or right.slide is not None):
            raise self.wrong("the windows of a join have the same SLIDE and end together, or none of them has one")
        width = left.width if left.width == right.width else None
        outer = left.outer or right.outer
        offset = left.offset if left.slide == slide else 0
        return Span(min(left.size, right.size), slide, width=width, interval=True, outer=outer, offset=offset)

    def _events(self) -> dict[str, bool]:
        # The right columns of a left tuple without a partner are NULL, and so is the time in them.
        ports = range(len(self.inputs) if self.join.kind == "inner" else 1)
        return {
            joined: self.inputs[port].traits.events[name.lower()]
            for joined, (port, name) in self._places.items()
            if port in ports and name.lower() in self.inputs[port].traits.events
        }

    def lag(self, name: str) -> int:
        port, own = self._places[name.lower()]
        return self.inputs[port].lag(own)

    def emit(self, want: Want, wiring: Wiring) -> str:
        filters = (*self._sides.both, *self._together())
        pushed = [list(own) for own in self._sides.own]
        kept: list[Named] = []
        for name, predicate in want.filters:
            sides = self._sides.of(predicate)
            if is_same_window(predicate):
                continue
            # A condition on one input cuts what is remembered; NULLs for a missing partner are seen behind the join.
            if len(sides) == 1 and (self.join.kind == "inner" or sides == {0}):
                pushed[sides.pop()].append((name, predicate))
            else:
                kept.append((name, predicate))
        behind = replace(want, filters=(*filters, *kept)).inlined(self._window_values(want))
        return self._emit(behind, pushed, want.time, wiring)

    def _emit(self, behind: Want, pushed: Sequence[Sequence[Named]], time: str | None, wiring: Wiring) -> str:
        asked = behind.reads()
        taken = [Inputs() for _ in self.inputs]
        keys = tuple(
            tuple(each.name(self._sides.inside(key[port])) if port in key else None for key in self._sides.keys)
            for port, each in enumerate(taken)
        )
        columns = tuple(
            (name, port, taken[port].name(column(place)))
            for name, (port, place) in zip(self.traits.names, self._places.values(), strict=True)
            if name.lower() in asked
        )
        valid = [validity(side) for side in self.inputs]
        lifetimes = tuple(lifetime for lifetime, _, _ in valid)
        join = Join(self.join.name, self.join.kind, lifetimes, keys, columns, self._behind(time))
        sources = []
        for port, (_, needed, clock) in enumerate(valid):
            taken[port].add(*needed)
            wanted = Want(self._input_name(port), taken[port].columns, self._sides.filters(pushed[port]), clock)
            sources.append(self.inputs[port].emit(wanted, wiring))
        return behind.after(wiring, wiring.add(join, *sources))

    def _input_name(self, port: int) -> str:
        ports = len(self.inputs)
        return f"{self.join.name}.{port_names(ports)[port]}{'.input' if ports == 2 else ''}"

    def _behind(self, time: str | None) -> tuple[int, ...]:
        """How far the times that a reader goes by may lie behind the watermarks of the inputs.

        A row is valid from the time of its last tuple, which is at or after its input's watermark. The event time of
        another of its tuples lies behind that by less than that tuple is valid.
        """
        if time is None or time.lower() not in self._places:
            return (0, self._span.size or 0) if self.join.kind == "left" else (0,) * len(self.inputs)
        port, _ = self._places[time.lower()]
        span, lag = self.inputs[port].traits.span, self.lag(time)
        own = lag if span is not None and span.interval else 0
        return tuple(own if each == port else lag for each in range(len(self.inputs)))

    def _together(self) -> tuple[Named, ...]:
        """With a SLIDE, tuples make a row if there is a boundary at which all of them count."""
        if self._span.slide in (None, 1) or self._span.size == 1:
            return ()
        last = boundary(column(UNTIL), self._span)
        return ((f"{self.join.name}.together", exp.GT(this=last, expression=column(FROM))),)

    def _window_values(self, want: Want) -> Mapping[str, exp.Expr]:
        if not {WINDOW_START, WINDOW_END} & want.reads():
            return {}
        slide = self._span.slide
        if slide is None or slide != self._span.width:
            raise self.wrong(NO_WINDOW_COLUMNS)
        end = boundary(column(UNTIL), self._span)
        return {WINDOW_START: timestamp(plus(end, -slide)), WINDOW_END: timestamp(end)}


def _common_slide(left: Span, right: Span) -> int | None:
    if (left.slide, left.offset) == (right.slide, right.offset):
        return left.slide
    # A tuple that is there for one moment meets what is there at that moment.
    moments = [span.slide for span in (left, right) if span.slide == 1]
    return 1 if moments and None in (left.slide, right.slide) else None


def _side_span(side: Flow, alias: str, place: exp.Expr | None) -> Span:
    span = side.traits.span
    if span is None:
        raise fail(
            f"{alias} needs a window in a join, as in [RANGE 1 MINUTE]: "
            "else all its tuples would have to be remembered for ever. Without windows all streams of a join must "
            "declare ordered_by, and a query with PERIOD always needs windows",
            place,
        )
    if span.problem is not None:
        raise fail(span.problem, place)
    if span.rows is not None:
        raise fail(
            f"{alias} has a window of rows: which rows meet in a join would depend on the order in which streams "
            "came; write a window of time, as in [RANGE 10 SECONDS]",
            place,
        )
    if span.size is None:
        raise fail(
            f"{alias} [UNBOUNDED] would have to be remembered for ever in a join: write how long a tuple counts, "
            "as in [RANGE 1 DAY]",
            place,
        )
    return span
