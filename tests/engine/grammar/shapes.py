"""What can be known of a form without running it: columns, time, order, boundaries."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.grammar.forms import Body, Clock, Combined, Member, Named, Query, Select, Shape, Slide, Source, Window


def source_shape(source: Source) -> Shape:
    return source.shape if isinstance(source, Named) else body_shape(source.body)


def member_shape(member: Member) -> Shape:
    shape, window = source_shape(member.source), member.window
    if window is None:
        return shape
    if window.released:
        # All its rows are there at the release, for one moment.
        return Shape(shape.columns, "arrival", valid=True, slide=Slide(1))
    if not window.of_time:
        return replace(shape, valid=False, slide=None)
    clock: Clock = "event" if shape.clock == "none" else shape.clock
    ends = shape.ends and not moves_into(member)
    return replace(shape, clock=clock, valid=True, slide=boundaries_of(window), outer=False, ends=ends)


def moves_into(member: Member) -> bool:
    """Whether its rows stand for windows and are taken into the window that these end in."""
    slide = None if member.window is None else boundaries_of(member.window)
    return source_shape(member.source).ends and slide not in (None, Slide(1))


def boundaries_of(window: Window) -> Slide | None:
    """Its boundaries."""
    if window.released or window.form == "now":
        return Slide(1)
    if window.form == "tumble":
        return Slide(window.size)
    if window.form in ("hop", "window"):
        # They begin at multiples of the slide.
        return Slide(window.slide, window.size % window.slide)
    return None if window.with_each_tuple else Slide(window.slide)


def slide_of(select: Select) -> Slide | None:
    """The boundaries at which the rows of a FROM count."""
    slides = {member_shape(member).slide for member in select.members}
    # What is there for one moment meets what is there then, at that moment.
    return Slide(1) if slides == {Slide(1), None} else slides.pop()


def with_each_tuple(select: Select) -> bool:
    window = select.members[0].window
    return len(select.members) == 1 and window is not None and window.with_each_tuple


def output_shape(query: Query) -> Shape:
    """The shape of the output of a query: only a column carries event time out, and how long a row counts is lost. Rows
    of a periodic one bear its releases as their arrivals."""
    shape = body_shape(query.body)
    if query.period:
        return Shape(shape.columns, "arrival")
    clock: Clock = "event" if shape.events else "arrival" if shape.clock == "arrival" else "none"
    time = shape.events[:1]
    ended = shape.ended & {*time}
    return Shape(shape.columns, clock, time, shape.ordered, ended=ended, ends=bool(ended))


def body_shape(body: Body) -> Shape:
    return _combined(body) if isinstance(body, Combined) else _select(body)


def _combined(body: Combined) -> Shape:
    first, second = (body_shape(member) for member in body.members)
    shared = tuple(name for name in first.events if name in second.events)
    if body.kind != "UNION ALL":
        ends = tuple(item.name for item in body.members[0].items if item.bound == "end")
        both = tuple(name for name in ends if name in shared or _is_end(body.members[1], name))
        return Shape(first.columns, "event", both, valid=True, slide=first.slide, ended=frozenset(both), ends=True)
    clocks = {first.clock, second.clock}
    clock: Clock = "none" if "none" in clocks else "arrival" if clocks == {"arrival"} else "event"
    valid = first.valid and second.valid and first.slide == second.slide and first.slide is not None
    return Shape(
        first.columns, clock, shared, valid=valid, slide=first.slide if valid else None,
        ended=first.ended & second.ended & {*shared}, ends=first.ends and second.ends,
    )  # fmt: skip


def _is_end(select: Select, name: str) -> bool:
    return any(item.name == name and item.bound == "end" for item in select.items)


def _select(select: Select) -> Shape:
    columns = tuple((item.name, item.kind) for item in select.items)
    first = member_shape(select.members[0])
    computes = select.keys is not None or select.distinct
    if computes and with_each_tuple(select):
        own = {item.name for item in select.items if item.bound == "end"} if first.ends else set()
        ended = _ended(select) | own
        return Shape(columns, first.clock, carried(select), ordered=first.ordered, ended=ended, ends=first.ends)
    if computes:
        # Without a window of its own it goes by the windows inside, whose end is its end.
        inside = select.members[0].window is None
        ends = carried(select) if inside else tuple(item.name for item in select.items if item.bound == "end")
        return Shape(columns, "event", ends, valid=True, slide=slide_of(select), ended=frozenset(ends), ends=True)
    if not select.joins:
        return replace(first, columns=columns, events=carried(select), ended=_ended(select))
    shapes = [member_shape(member) for member in select.members]
    clock: Clock = "arrival" if {shape.clock for shape in shapes} == {"arrival"} else "none"
    outer = any(join.kind == "left" for join in select.joins)
    events, ended = carried(select), _ended(select)
    by_end = clock == "none" and bool(events) and events[0] in ended
    return Shape(columns, clock, events, False, True, slide_of(select), outer, ended, by_end)


def carried(select: Select) -> tuple[str, ...]:
    """The columns of a SELECT that are event times of its members, or the end of its window, in their order."""
    events = set()
    for number, member in enumerate(select.members):
        # The times of a partner that may be missing may be missing.
        if number == 0 or select.joins[number - 1].kind != "left":
            events |= {f"{member.alias}.{name}" for name in member_shape(member).events}
    ends = select.keys is not None or select.distinct
    return tuple(
        item.name
        for item in select.items
        if (ends and item.bound == "end") or (item.term is not None and item.term.column in events)
    )


def _ended(select: Select) -> frozenset[str]:
    """The columns of a SELECT that are such columns of its members as are ends of windows."""
    ends = {f"{member.alias}.{name}" for member in select.members for name in member_shape(member).ended}
    return frozenset(item.name for item in select.items if item.term is not None and item.term.column in ends)


def counts_rows(query: Query) -> bool:
    """Whether a periodic query gives answers for ever once there are tuples: then the windows of others over its last
    answer never close."""
    selects = query.body.members if isinstance(query.body, Combined) else (query.body,)
    windows = [member.window for select in selects for member in select.members]
    return query.period > 0 and any(window is not None and window.form != "range" for window in windows)
