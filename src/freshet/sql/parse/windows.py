"""Windows by functions, as users of other systems know them, in the form of windows after a stream's name.

``TUMBLE(s, ts, INTERVAL 1 MINUTE)`` in FROM is ``s [RANGE 1 MINUTE SLIDE 1 MINUTE]``, ``HOP(s, ts, INTERVAL 10 SECONDS,
INTERVAL 1 MINUTE)`` is ``s [RANGE 1 MINUTE SLIDE 10 SECONDS]`` (Flink's order of arguments), and so is
``GROUP BY window(ts, '1 minute', '10 seconds')`` (Spark's). Windows of functions begin at multiples of the slide, as
they do there, those after a stream's name end at them; that differs where the size is no multiple of the slide.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from freshet.model.errors import UserError
from freshet.model.units import parse_duration
from freshet.sql.check.functions import name_of
from freshet.sql.parse.dialect import StreamWindow
from freshet.sql.parse.errors import fail, place_of

_FORMS: Final = {
    "tumble": "TUMBLE(stream, ts, INTERVAL 1 MINUTE)",
    "hop": "HOP(stream, ts, INTERVAL 10 SECONDS, INTERVAL 1 MINUTE), the slide before the size",
    "window": "window(ts, '1 minute'), window(ts, '1 minute', '10 seconds') or, for windows that begin 5 s later, "
    "window(ts, '1 minute', '10 seconds', '5 seconds')",
}


def spread_table_functions(tree: exp.Expr) -> None:
    """Turns every TUMBLE and HOP of a query's FROMs into a stream with a window."""
    for table in list(tree.find_all(exp.Table)):
        call = table.this
        name = name_of(call)
        if name == "session":
            raise fail("session() is not supported: write GROUP BY window(ts, '1 minute')", call)
        if name in ("tumble", "hop"):
            stream, window = _table_function(call, name)
            table.set("this", stream)
            table.set("window", window)


def _table_function(call: exp.Expr, name: str) -> tuple[exp.Identifier, StreamWindow]:
    arguments = call.expressions
    if len(arguments) != (3 if name == "tumble" else 4):
        raise fail(f"the form is {_FORMS[name]}", call)
    stream, time = arguments[:2]
    if not isinstance(stream, exp.Column) or stream.table or not isinstance(stream.this, exp.Identifier):
        raise fail(f"the first argument is the name of a stream: {_FORMS[name]}", stream)
    if name_of(time) == "descriptor" and len(time.expressions) == 1:
        time = time.expressions[0]
    durations = [_duration(each, name) for each in arguments[2:]]
    return stream.this, _window(call, time, durations[-1], durations[0])


def window_key(call: exp.Expr) -> StreamWindow:
    """The window of a key ``window(ts, ...)`` of a GROUP BY."""
    arguments = call.expressions
    if not 2 <= len(arguments) <= 4:
        raise fail(f"the form is {_FORMS['window']}", call)
    durations = [_duration(each, "window") for each in arguments[1:3]]
    start = _seconds(arguments[3]) if len(arguments) == 4 else 0.0
    if start is None:
        raise fail(f"this is not a duration: {_FORMS['window']}", arguments[3])
    return _window(call, arguments[0], durations[0], durations[-1], start)


def _window(call: exp.Expr, time: exp.Expr, size: float, slide: float, start: float = 0.0) -> StreamWindow:
    if not isinstance(time, exp.Column):
        raise fail("a window goes by a time column of its stream: compute it in the query before", time)
    offset = (round(start * 1e6) + round(size * 1e6)) % round(slide * 1e6) / 1e6
    window = StreamWindow(size=size, slide=slide, time=time.copy(), offset=offset)
    place = place_of(call)
    if place is not None:
        window.meta.update(start=place[0], end=place[1])
    return window


def _duration(tree: exp.Expr, name: str) -> float:
    seconds = _seconds(tree)
    if seconds is None or seconds <= 0.0:
        raise fail(f"this is not a duration above 0: {_FORMS[name]}", tree)
    return seconds


def _seconds(tree: exp.Expr) -> float | None:
    if isinstance(tree, exp.Paren):
        return _seconds(tree.this)
    if isinstance(tree, exp.Add):
        parts = (_seconds(tree.this), _seconds(tree.expression))
        return None if None in parts else sum(part for part in parts if part is not None)
    text = None
    if isinstance(tree, exp.Interval) and isinstance(tree.this, exp.Literal):
        text = f"{tree.this.name} {tree.text('unit')}"
    elif isinstance(tree, exp.Literal) and tree.is_string:
        text = tree.name.lower().removeprefix("interval ")
    try:
        return None if text is None else parse_duration(text)
    except UserError:
        return None
