"""A window of a periodic query: what an instance sees of a stream, as a batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp

from freshet.model.operators import FROM, UNTIL, WINDOW_END, WINDOW_START, Last
from freshet.model.scheduling.instance import InputWindow
from freshet.sql.flows.flow import PASSES, Flow, Inputs, Span, Want, refuse_table
from freshet.sql.flows.stateless import ProjectFlow, StreamFlow
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.logical import Window
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import parse_expression
from freshet.sql.parse.trees import cast

_MOMENT: Final = Span(1, 1, interval=True)
"""All tuples of an instance are there at one and the same boundary: from 0 up to 1."""
_BOUNDS: Final = (
    "window_start and window_end are known of an aggregate over one stream; here the release is a hidden column: see "
    "freshet read --instances"
)


class ReleasedFlow(Flow):
    """The tuples that an instance sees of a stream. Whatever is computed over them is computed once, over all of them.

    They become a batch by being valid at one moment only. So joins make all pairs, aggregates have one boundary, and
    no fold remembers anything from one instance to the next.
    """

    def __init__(self, window: Window, child: Flow, place: exp.Expr | None) -> None:
        super().__init__(child.traits, place)
        refuse_table(
            child, "no window is written for it, each tuple meets the rows that are there when it comes", place
        )
        check_window(window, place)
        if window.rows is not None and not window.partition and not _is_stream(child):
            raise self.wrong("with PERIOD a window of rows comes directly after the name of a stream")
        if child.traits.span is not None:
            raise self.wrong("with PERIOD there is one window over each stream, directly after its name")
        size = None if window.size is None else max(1, round(window.size * 1e6))
        self._child, self._name, self._rows = child, window.name, window.rows
        self._partition = [parse_expression(text) for text in window.partition]
        # No range of the log holds the last tuples of each partition, so a fold remembers them.
        self._window = InputWindow() if self._partition else InputWindow(size, window.rows)
        self.traits = replace(child.traits, span=_MOMENT, clock="arrival", events={}, bounds={}, order=None)

    def emit(self, want: Want, wiring: Wiring) -> str:
        if {WINDOW_START, WINDOW_END} & want.reads():
            raise self.wrong(_BOUNDS)
        number = (cast(exp.Literal.number(each), "bigint") for each in (0, 1))
        values = {PASSES: exp.true(), **dict(zip((FROM, UNTIL), number, strict=True))}
        want = replace(want.inlined(values), time=None)
        if not self._partition or self._rows is None:
            return self._child.emit(replace(want, window=self._window), wiring)
        inputs = Inputs()
        keys = tuple(inputs.name(each) for each in self._partition)
        own = {name.lower(): name for name in self.traits.names}
        inputs.add(*(own[name] for name in sorted(want.reads() & own.keys())))
        wanted = Want(f"{self._name}.input", inputs.columns, window=self._window)
        return want.after(wiring, wiring.add(Last(self._name, self._rows, keys), self._child.emit(wanted, wiring)))


def check_window(window: Window, place: exp.Expr | None) -> None:
    """Refuses windows that mean nothing at a release."""
    if window.slide is not None:
        raise fail("PERIOD says how often there is an answer: leave SLIDE out, as in [RANGE 1 MINUTE]", place)
    if window.time is not None:
        raise fail("the windows of a PERIOD query end at its releases, by the arrival: write [RANGE 1 MINUTE]", place)
    if window.size is None and window.rows is None:
        raise fail("PERIOD needs a window with an end, as in [RANGE 1 MINUTE] or [ROWS 100]", place)


def _is_stream(flow: Flow) -> bool:
    return isinstance(flow, StreamFlow) or (isinstance(flow, ProjectFlow) and _is_stream(flow.child))
