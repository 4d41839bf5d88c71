"""A form as a query for Freshet."""

from __future__ import annotations

from collections.abc import Sequence

from tests.engine.grammar.forms import SECOND, Body, Combined, Item, Member, Named, Query, Select, Term, Window
from tests.engine.grammar.shapes import source_shape


def query_text(query: Query) -> str:
    return f"{text(query.body)} PERIOD {_duration(query.period)}" if query.period else text(query.body)


def text(body: Body) -> str:
    if isinstance(body, Combined):
        first, second = (text(member) for member in body.members)
        return f"{first} {body.kind} {second}"
    return _select(body)


def _select(select: Select) -> str:
    form = _key_window(select)
    conditions = [*select.where, *(term for join in select.joins if join.kind == "comma" for term in join.on)]
    parts = [
        "SELECT DISTINCT" if select.distinct else "SELECT",
        ", ".join(_item(item, form is not None) for item in select.items),
        "FROM",
        _from(select),
    ]
    if conditions:
        parts += ["WHERE", _all(conditions)]
    keys = [key.text for key in select.keys or ()] + ([form] if form is not None else [])
    if keys:
        parts += ["GROUP BY", ", ".join(keys)]
    if select.having is not None:
        parts += ["HAVING", select.having.text]
    return " ".join([*parts, "EMIT CHANGES"] if select.changes else parts)


def _all(terms: Sequence[Term]) -> str:
    return " AND ".join(f"({term.text})" for term in terms)


def _item(item: Item, by_key: bool) -> str:
    if item.bound is not None:
        name = f"window.{item.bound}" if by_key else f"window_{item.bound}"
        return f"{name} AS {item.name}"
    assert item.term is not None
    return f"{item.term.text} AS {item.name}"


def _from(select: Select) -> str:
    parts = [_member(select.members[0])]
    for join, member in zip(select.joins, select.members[1:], strict=True):
        if join.kind == "comma":
            parts.append(f", {_member(member)}")
        else:
            word = "LEFT JOIN" if join.kind == "left" else "JOIN"
            parts.append(f" {word} {_member(member)} ON {_all(join.on)}")
    return "".join(parts)


def _member(member: Member) -> str:
    window = member.window
    source = member.source
    name = source.name if isinstance(source, Named) else f"({text(source.body)})"
    if window is not None and window.form in ("tumble", "hop"):
        [time] = source_shape(source).events
        durations = [window.size] if window.form == "tumble" else [window.slide, window.size]
        shown = ", ".join(f"INTERVAL {_duration(each)}" for each in durations)
        return f"{window.form.upper()}({name}, {time}, {shown}) AS {member.alias}"
    brackets = "" if window is None else _brackets(window)
    return f"{name}{brackets} AS {member.alias}"


def _brackets(window: Window) -> str:
    match window.form:
        case "range":
            return f" [RANGE {_duration(window.size)}]"
        case "slide":
            return f" [RANGE {_duration(window.size)} SLIDE {_duration(window.slide)}]"
        case "now":
            return " [NOW]"
        case "rows":
            return f" [ROWS {window.rows}]"
        case "partition":
            return f" [PARTITION BY {window.by} ROWS {window.rows}]"
        case "unbounded":
            return " [UNBOUNDED]"
        case _:
            return ""


def _key_window(select: Select) -> str | None:
    """The window as a key of GROUP BY, where it is one."""
    member = select.members[0]
    if member.window is None or member.window.form != "window":
        return None
    time = source_shape(member.source).events[0]
    durations = f"'{_duration(member.window.size)}', '{_duration(member.window.slide)}'"
    return f"window({time}, {durations})"


def _duration(microseconds: int) -> str:
    if microseconds % SECOND:
        return f"{microseconds // 1000} MILLISECONDS"
    return f"{microseconds // SECOND} SECONDS"
