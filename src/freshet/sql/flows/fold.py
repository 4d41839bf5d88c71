"""Aggregates over windows: at the boundaries of sliding windows, or with each tuple."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START, Call, Moving, Panes
from freshet.model.schema import ARRIVAL
from freshet.sql.flows.flow import BOUNDS, PASSES, TIME, Flow, Inputs, Span, Traits, Want, refuse_table, renamed
from freshet.sql.flows.window import NO_WINDOW_COLUMNS, order_problem, partition_name, validity
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.calls import Aggregated, when
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import column
from freshet.sql.parse.trees import micros, plus, timestamp

_NEEDS_SLIDE = (
    "over several streams or a join this needs windows with the same SLIDE, as in [RANGE 1 MINUTE SLIDE 10 SECONDS]: "
    "without it the answer would depend on which stream came first"
)
_UNBOUNDED = (
    "over [UNBOUNDED] every {} that ever came would have to be remembered: give a window an end, "
    "as in [RANGE 1 DAY SLIDE 1 MINUTE]"
)
_OUTER = (
    "nothing is computed over a LEFT JOIN: that a tuple has no partner is known only after its window; "
    "make the join a sub-query with its time column and put a window behind it"
)


class Computation:
    """What to compute over a window of a flow: calls, for each combination of keys.

    >>> from freshet.sql.parse.text import parse_expression
    >>> computation = Computation(marked=False)
    >>> computation.key(parse_expression("src")), computation.call(Aggregated("sum", parse_expression("size * 2")))
    ('src', '__a1')
    >>> computation.calls
    (Call(output='__a1', function='sum', column='__c1', parameter=None),)
    """

    def __init__(self, marked: bool) -> None:
        self._marked = marked
        self.inputs = Inputs()
        self._keys: dict[str, exp.Expr] = {}
        self._calls: dict[tuple[str, str | None, float | None], Call] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the keys in the fold's input."""
        return tuple(self._keys)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls over columns of the fold's input."""
        return tuple(self._calls.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what it gives out: the keys, and the answers of the calls."""
        return (*self._keys, *(call.output for call in self._calls.values()))

    def plain_keys(self) -> set[str]:
        """Names in lower case of the keys that are columns of what it is computed over."""
        return {value.name.lower() for value in self._keys.values() if isinstance(value, exp.Column)}

    def key(self, value: exp.Expr) -> str:
        """The column of a key."""
        if self._marked and not isinstance(value, exp.Column):
            # Tuples that do not pass only take up room in the window; their values are not evaluated.
            value = when(column(PASSES), value)
        name = self.inputs.name(value)
        self._keys.setdefault(name, value)
        return name

    def call(self, call: Aggregated) -> str:
        """The column of a call's answer."""
        argument = when(column(PASSES), call.argument) if self._marked else call.argument
        over = None if argument is None else self.inputs.name(argument)
        made = Call(f"__a{len(self._calls) + 1}", call.function, over, call.parameter)
        return self._calls.setdefault((call.function, over, call.parameter), made).output


def fold_flow(name: str, computation: Computation, child: Flow, place: exp.Expr | None) -> Flow:
    """The flow of a computation over a window; its columns are the keys and the calls.

    Raises:
        SqlError: There is no window, or not one over which this can be computed.
    """
    refuse_table(child, "join a stream with it, and compute over that", place)
    span = child.traits.span
    if span is None:
        raise fail(
            "over a stream without an end this needs a window: put for example [RANGE 1 MINUTE SLIDE 10 SECONDS] "
            "after the name of the stream or the sub-query",
            place,
        )
    if span.problem is not None:
        raise fail(span.problem, place)
    if span.outer:
        raise fail(_OUTER, place)
    if span.slide is not None:
        return PanesFlow(name, computation, child, place)
    if span.interval:
        raise fail(_NEEDS_SLIDE, place)
    if span.size is not None:
        problem = order_problem(child.traits.order, computation.plain_keys(), "GROUP BY {}")
        if problem is not None:
            raise fail(problem, place)
    elif span.rows is None:
        _check_unbounded(computation, place)
    return MovingFlow(name, computation, child, place)


def _check_unbounded(computation: Computation, place: exp.Expr | None) -> None:
    if computation.keys:
        raise fail(_UNBOUNDED.format("group"), place)
    if any(call.function in ("count_distinct", "approx_percentile") for call in computation.calls):
        raise fail(_UNBOUNDED.format("value"), place)


class PanesFlow(Flow):
    """Answers at the boundaries of a sliding window.

    Each of its rows is there at one boundary only: it counts from a microsecond before the boundary up to it. So
    whatever is computed over it without another window is computed boundary by boundary.
    """

    def __init__(self, name: str, computation: Computation, child: Flow, place: exp.Expr | None) -> None:
        span = child.traits.span
        assert span is not None
        assert span.slide is not None
        own = Span(1, span.slide, width=span.width, interval=True, offset=span.offset)
        # The boundaries come in order, but the groups of a boundary come as they lie in the state.
        order = tuple(key.lower() for key in computation.keys)
        events, bounds = {WINDOW_END: True, TIME: True}, {WINDOW_END: WINDOW_END}
        super().__init__(Traits(computation.names, "event", own, events, bounds, order), place)
        valid, needed, self._time = validity(child)
        inputs = computation.inputs.copy()
        inputs.add(*needed)
        self._columns = inputs.columns
        self._panes = Panes(name, valid, span.slide, computation.keys, computation.calls, offset=span.offset)
        self._child = child

    def emit(self, want: Want, wiring: Wiring) -> str:
        end = column(WINDOW_END)
        values = {TIME: end, FROM: plus(micros(end), -1), UNTIL: micros(end)}
        if self._panes.validity.size is None and WINDOW_START in want.reads():
            # Only here is it known how wide the windows of pairs, or of rows of a window, are.
            width = self.traits.span.width if self.traits.span is not None else None
            if width is None:
                raise self.wrong("window_start is not one moment if the windows have different sizes")
            values[WINDOW_START] = timestamp(plus(micros(end), -width))
        behind = want.inlined(values)
        source = self._child.emit(Want(f"{self._panes.name}.input", self._columns, time=self._time), wiring)
        return behind.after(wiring, wiring.add(self._panes, source))


class MovingFlow(Flow):
    """Answers with each tuple, over the tuples before it."""

    def __init__(self, name: str, computation: Computation, child: Flow, place: exp.Expr | None) -> None:
        traits = child.traits
        keys = [key.lower() for key in computation.keys]
        events = {key: traits.events[key] for key in keys if key in traits.events}
        if traits.clock != "none":
            events |= dict.fromkeys((WINDOW_END, TIME), traits.events.get(TIME, False))
        order = renamed(traits.order, dict(zip(keys, keys, strict=True)))
        super().__init__(Traits(computation.names, traits.clock, None, events, BOUNDS, order), place)
        self._name = name
        self._computation = computation
        self._child = child

    def emit(self, want: Want, wiring: Wiring) -> str:
        span, marked = self._child.traits.span, self._child.traits.marked
        assert span is not None
        inputs, carried = self._computation.inputs.copy(), list(self._computation.keys)
        partition = tuple(inputs.name(column(partition_name(number))) for number in range(span.partitions))
        want = self._windowed(want, span)
        by_event = self._child.traits.clock == "event"
        if by_event and (TIME in want.reads() or span.size is not None):
            inputs.name(column(TIME))
        if by_event and TIME in want.reads():
            carried.append(TIME)
        if marked:
            carried.append(inputs.name(column(PASSES)))
            want = replace(want, filters=((f"{self._name}.passed", column(PASSES)), *want.filters))
        time = TIME if by_event and span.size is not None else None
        moving = Moving(
            self._name, time, span.size, span.rows, partition, self._computation.keys, self._computation.calls,
            tuple(carried),
        )  # fmt: skip
        source = self._child.emit(Want(f"{self._name}.input", inputs.columns, time=time), wiring)
        return want.after(wiring, wiring.add(moving, source))

    def _windowed(self, want: Want, span: Span) -> Want:
        arrival = self._child.traits.clock == "arrival"
        time = timestamp(column(ARRIVAL)) if arrival else column(TIME)
        values = {TIME: time} if arrival else {}
        asked = want.reads()
        if WINDOW_END in asked:
            if self._child.traits.clock == "none":
                raise self.wrong(NO_WINDOW_COLUMNS)
            values[WINDOW_END] = time
        if WINDOW_START in asked:
            if span.size is None:
                raise self.wrong("window_start is not known of a window without a RANGE")
            start = column(ARRIVAL) if arrival else micros(time)
            values[WINDOW_START] = timestamp(plus(start, -span.size))
        return want.inlined(values)
