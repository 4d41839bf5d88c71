"""Joins: pairs of tuples that are valid at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START, Join
from freshet.sql.flows.condition import PORTS, SIDES, Named, Sides, is_same_window
from freshet.sql.flows.flow import (
    Clock,
    Flow,
    Inputs,
    Span,
    Traits,
    Want,
    boundary,
    plus,
    timestamp,
)
from freshet.sql.flows.window import NO_WINDOW_COLUMNS, validity
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.logical import Join as LogicalJoin
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import column


class JoinFlow(Flow):
    """A join of two flows with windows; its columns are those of the left input, then those of the right one."""

    def __init__(
        self, join: LogicalJoin, columns: Sequence[tuple[str, pa.DataType]], inputs: tuple[Flow, Flow]
    ) -> None:
        names = tuple(name for name, _ in columns)
        super().__init__(Traits(names, "none"), join.places[1])
        self._name, self._kind = join.name, join.kind
        self._inputs = inputs
        spans = [_side_span(inputs[port], join.aliases[port], join.places[port]) for port in PORTS]
        self._sides = Sides(join, columns, inputs)
        self._places = self._sides.places
        clocks = {side.traits.clock for side in inputs}
        clock: Clock = "arrival" if clocks == {"arrival"} else "none"
        self.traits = replace(
            self.traits, clock=clock, span=self._pair_span(spans), events=self._events(), order=None,
            bounds={WINDOW_START: WINDOW_START, WINDOW_END: WINDOW_END},
        )  # fmt: skip

    def _pair_span(self, spans: Sequence[Span]) -> Span:
        left, right = spans
        assert left.size is not None
        assert right.size is not None
        if self._kind == "left":
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
        ports = PORTS if self._kind == "inner" else PORTS[:1]
        return {
            joined: self._inputs[port].traits.events[name.lower()]
            for joined, (port, name) in self._places.items()
            if port in ports and name.lower() in self._inputs[port].traits.events
        }

    def lag(self, name: str) -> int:
        port, own = self._places[name.lower()]
        return self._inputs[port].lag(own)

    def emit(self, want: Want, wiring: Wiring) -> str:
        filters = (*self._sides.both, *self._together())
        pushed: tuple[list[Named], list[Named]] = (list(self._sides.own[0]), list(self._sides.own[1]))
        kept: list[Named] = []
        for name, predicate in want.filters:
            sides = self._sides.of(predicate)
            if is_same_window(predicate):
                continue
            # A condition on one input cuts what has to be remembered; NULLs for a missing partner are seen behind.
            if len(sides) == 1 and (self._kind == "inner" or sides == {0}):
                pushed[sides.pop()].append((name, predicate))
            else:
                kept.append((name, predicate))
        behind = replace(want, filters=(*filters, *kept)).inlined(self._window_values(want))
        return self._emit(behind, pushed, want.time, wiring)

    def _emit(self, behind: Want, pushed: tuple[list[Named], list[Named]], time: str | None, wiring: Wiring) -> str:
        asked = behind.reads()
        taken = (Inputs(), Inputs())
        keys = [tuple(taken[port].name(self._sides.inside(pair[port])) for pair in self._sides.keys) for port in PORTS]
        columns = tuple(
            (name, port, taken[port].name(column(place)))
            for name, (port, place) in zip(self.traits.names, self._places.values(), strict=True)
            if name.lower() in asked
        )
        valid = [validity(side) for side in self._inputs]
        join = Join(self._name, self._kind, (valid[0][0], valid[1][0]), (keys[0], keys[1]), columns, self._behind(time))
        sources = []
        for port in PORTS:
            _, needed, clock = valid[port]
            taken[port].add(*needed)
            filters = self._sides.filters(pushed[port])
            wanted = Want(f"{self._name}.{SIDES[port]}.input", taken[port].columns, filters, clock)
            sources.append(self._inputs[port].emit(wanted, wiring))
        return behind.after(wiring, wiring.add(join, *sources))

    def _behind(self, time: str | None) -> tuple[int, int]:
        """How far the times that a reader goes by may lie behind the watermarks of the inputs.

        A pair is valid since the later of its tuples came, and that one is at or after its input's watermark. The event
        time of one of its tuples lies behind by less than this tuple is valid.
        """
        if time is None or time.lower() not in self._places:
            longest = self.traits.span.size if self.traits.span is not None else None
            return (0, longest or 0) if self._kind == "left" else (0, 0)
        port, _ = self._places[time.lower()]
        span, lag = self._inputs[port].traits.span, self.lag(time)
        own = lag if span is not None and span.interval else 0
        return (own, lag) if port == 0 else (lag, own)

    def _together(self) -> tuple[Named, ...]:
        """With a SLIDE, two tuples are a pair if there is a boundary at which both count."""
        span = self.traits.span
        if span is None or span.slide is None or span.slide == 1 or span.size == 1:
            return ()
        last = boundary(column(UNTIL), span)
        return ((f"{self._name}.together", exp.GT(this=last, expression=column(FROM))),)

    def _window_values(self, want: Want) -> Mapping[str, exp.Expr]:
        if not {WINDOW_START, WINDOW_END} & want.reads():
            return {}
        span = self.traits.span
        if span is None or span.slide is None or span.slide != span.width:
            raise self.wrong(NO_WINDOW_COLUMNS)
        end = boundary(column(UNTIL), span)
        return {WINDOW_START: timestamp(plus(end, -span.slide)), WINDOW_END: timestamp(end)}


def _common_slide(left: Span, right: Span) -> int | None:
    if (left.slide, left.offset) == (right.slide, right.offset):
        return left.slide
    # What is there for one moment meets what is there then, at that moment.
    moments = [span.slide for span in (left, right) if span.slide == 1]
    return 1 if moments and None in (left.slide, right.slide) else None


def _side_span(side: Flow, alias: str, place: exp.Expr | None) -> Span:
    span = side.traits.span
    if span is None:
        raise fail(
            f"{alias} needs a window in a join, as in [RANGE 1 MINUTE]: "
            "else all its tuples would have to be remembered for ever",
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
