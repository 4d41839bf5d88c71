"""A window over a flow, and how long tuples count in it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START, Lifetime
from freshet.model.schema import ARRIVAL
from freshet.sql.flows.flow import BOUNDS, PASSES, TIME, Flow, Order, Span, TimeKind, Want, boundary, refuse_table
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.logical import Window
from freshet.sql.parse.text import column, parse_expression
from freshet.sql.parse.trees import micros, plus, timestamp

_NO_TIME = (
    "a window needs the time of its tuples, and {} has none: select the time column in it "
    "(of a window: window_end), so that it is passed on"
)
_UNTIMED = (
    "a window needs the time of its tuples, and operator {} declares time = 'none': declare 'keep', or 'column:X' "
    "where the column X holds it"
)
_NO_ORDER = (
    "the answer would depend on the order in which these rows were written, and that is not the same in every run: "
    "it needs a window with a SLIDE, as in [RANGE 1 MINUTE SLIDE 10 SECONDS]{}"
)
NO_WINDOW_COLUMNS = (
    "window_start and window_end are known of an aggregate or a DISTINCT over a window, "
    "and of single tuples only if windows do not overlap, as in [RANGE 1 MINUTE SLIDE 1 MINUTE]"
)


def order_problem(order: Order, covered: Collection[str], clause: str) -> str | None:
    """Why tuples cannot be looked at in their order; None: they can.

    Only tuples that are equal in the ``covered`` columns (lower case) are looked at together. ``clause`` is what would
    name the right columns.

    >>> order_problem(("k",), {"k", "v"}, "GROUP BY {}") is None
    True
    """
    if order is None:
        return _NO_ORDER.format("")
    return None if set(order) <= set(covered) else _NO_ORDER.format(f", or {clause.format(', '.join(order))}")


class WindowFlow(Flow):
    """The tuples of a flow, each for as long as the window says.

    A window by itself lets every tuple pass; whoever computes something over it asks for its span.
    """

    def __init__(self, window: Window, child: Flow, source: str, place: exp.Expr | None) -> None:
        super().__init__(child.traits, place)
        refuse_table(
            child, "no window is written for it, each tuple meets the rows that are there when it comes", place
        )
        self._child = child
        self._partition = [parse_expression(text) for text in window.partition]
        self._span = _span(window)
        if self._span.size is None:
            covered = {each.name.lower() for each in self._partition if isinstance(each, exp.Column)}
            problem = order_problem(child.traits.order, covered, "[PARTITION BY {} ROWS 10]")
            self._span = self._span if problem is None else Span(problem=problem)
        self._column: str | None = None
        clock = child.traits.clock
        if self._span.size is not None:
            clock, self._column = self._time(window, source)
        # A row for a window belongs to the outer window that holds its end, not to the next one: its last microsecond
        # counts. Without boundaries the question does not arise.
        ends = child.traits.events.get((self._column or TIME).lower(), False)
        self._ends = ends and self._span.slide not in (None, 1)
        self.traits = replace(
            child.traits,
            span=self._span,
            clock=clock,
            # The end of an inner window is a plain column here.
            bounds=BOUNDS,
            events={name: end for name, end in child.traits.events.items() if not name.startswith("__")}
            | {TIME: ends and not self._ends},
            marked=False,
        )

    def _time(self, window: Window, source: str) -> tuple[TimeKind, str | None]:
        traits = self._child.traits
        declared = next((name for name in traits.events if not name.startswith("__")), None)
        if window.time is not None:
            if window.time.lower() in traits.events:
                return "event", window.time
            instead = (
                f"declare event_time = '{window.time}' for the stream" if declared is None else f"that is {declared}"
            )
            raise self.wrong(f"{window.time} is not the event time of {source}: {instead}")
        if traits.clock != "none":
            return traits.clock, None
        if traits.untimed is not None:
            raise self.wrong(_UNTIMED.format(traits.untimed))
        if declared is None:
            raise self.wrong(_NO_TIME.format(source))
        return "event", declared

    def emit(self, want: Want, wiring: Wiring) -> str:
        if want.time is None and self.traits.clock == "event" and {FROM, UNTIL} & want.reads():
            # Here the time of a tuple tells how long it counts.
            want = replace(want, time=TIME)
        time = column(self._column or TIME)
        values = {PASSES: exp.true()} if self._column is None else {PASSES: exp.true(), TIME: time}
        values |= {partition_name(number): value for number, value in enumerate(self._partition)}
        size, asks_window = self._span.size, {WINDOW_START, WINDOW_END} & want.reads()
        if asks_window and (size is None or self._span.slide != size):
            raise self.wrong(NO_WINDOW_COLUMNS)
        if size is not None:
            start = column(ARRIVAL) if self.traits.clock == "arrival" else micros(time)
            if self._ends:
                start = plus(start, -1)
                values[TIME] = timestamp(start)
            values |= {FROM: start, UNTIL: plus(start, size)}
            if asks_window:
                first = boundary(start, self._span)
                values |= {WINDOW_START: timestamp(first), WINDOW_END: timestamp(plus(first, size))}
        return self._child.emit(want.inlined(values), wiring)


def partition_name(number: int) -> str:
    """Hidden column by which a window of rows is partitioned, counted from 0."""
    return f"__partition_{number + 1}"


def validity(flow: Flow) -> tuple[Lifetime, tuple[str, ...], str | None]:
    """How long a flow's tuples are valid, the hidden columns that tell it, and the column whose times decide it."""
    span = flow.traits.span
    assert span is not None
    if span.interval:
        return Lifetime(FROM, until=UNTIL), (FROM, UNTIL), None
    if flow.traits.clock == "arrival":
        return Lifetime(None, span.size), (), None
    return Lifetime(TIME, span.size), (TIME,), TIME


def _span(window: Window) -> Span:
    size, slide = (None if each is None else max(1, round(each * 1e6)) for each in (window.size, window.slide))
    offset = round(window.offset * 1e6)
    return Span(size, slide, window.rows, len(window.partition), width=size, offset=offset)
