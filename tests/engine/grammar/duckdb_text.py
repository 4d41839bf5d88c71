"""A form as one batch query for DuckDB over all that the log holds, as if all time had passed.

It is written from what docs/windows.md says of windows and joins, and knows nothing of how Freshet runs them. Every
relation has four columns of its own besides those of the query: the time of a row (``us_``, microseconds), its place in
the log (``pos_``), and from when until when it counts (``f_``, ``u_``). Times are microseconds everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.engine.grammar.forms import Body, Combined, Item, Member, Named, Query, Select, Slide, Term, Window
from tests.engine.grammar.shapes import body_shape, moves_into, output_shape, slide_of, with_each_tuple


def duck(body: Body) -> str:
    """The query; its columns, then those four."""
    if isinstance(body, Combined):
        return _combined(body)
    if body.distinct and body.keys is None:
        return duck(_distinct(body))
    if body.distinct:
        return f"SELECT DISTINCT * FROM ({duck(replace(body, distinct=False))})"
    if body.keys is None:
        return _plain(body)
    return _moving(body) if with_each_tuple(body) else _at_boundaries(body)


def output(query: Query) -> str:
    """What a query gives out: the time of its rows is what a column says, and they count for no time by themselves.

    A fifth column, ``at_``, is the time that they had.
    """
    body, shape = query.body, output_shape(query)
    time = shape.events[0] if shape.events else "us_" if shape.clock == "arrival" else "NULL::BIGINT"
    names = ", ".join(name for name, _ in shape.columns)
    hidden = f"{time} AS us_, pos_, NULL::BIGINT AS f_, NULL::BIGINT AS u_"
    return f"SELECT {names}, {hidden}, us_ AS at_ FROM ({duck(body)})"


def _floor(value: str, slide: Slide) -> str:
    length, offset = slide
    return f"({value} - (({value} - {offset}) % {length} + {length}) % {length})"


def _member(member: Member) -> str:
    source, window = member.source, member.window
    rows = source.name if isinstance(source, Named) else f"({duck(source.body)})"
    if window is not None and window.released:
        return _released(window, rows)
    if window is None or not window.of_time:
        return rows
    size = 1 if window.form == "now" else window.size
    time = "us_ - 1" if moves_into(member) else "us_"
    return f"(SELECT * REPLACE ({time} AS us_, {time} AS f_, {time} + {size} AS u_) FROM {rows})"


def _released(window: Window, rows: str) -> str:
    """What had arrived at each release of the query, in the table ``releases_``, as far as its window holds it, without
    what levels left out, in the table ``gone_``. The last tuples of a partition are those of the tuples that were kept;
    of a window of tuples some of the last ones are missing."""
    seen = "arr_ < r_" if window.form != "range" else f"arr_ < r_ AND arr_ >= r_ - {window.size}"
    part = f", {window.by}" if window.by else ""
    newest = f"row_number() OVER (PARTITION BY r_{part} ORDER BY pos_ DESC) <= {window.rows}"
    there = f"(r_, pos_) NOT IN (SELECT (g_, at_) FROM gone_ WHERE edge_ = '{window.edge}')" if window.edge else "true"
    partition = window.form == "partition"
    counted = f"SELECT * FROM {rows} JOIN releases_ ON {seen} WHERE {there if partition else 'true'}"
    counted += "" if window.form == "range" else f" QUALIFY {newest}"
    return f"(SELECT * EXCLUDE (r_) REPLACE (r_ AS us_, r_ - 1 AS f_, r_ AS u_) FROM ({counted}) WHERE {there})"


def _starts(members: Sequence[Member]) -> str:
    # greatest() and least() leave NULLs aside: those of a partner that is missing.
    return f"greatest({', '.join(f'{member.alias}.f_' for member in members)})"


def _ends(members: Sequence[Member]) -> str:
    return f"least({', '.join(f'{member.alias}.u_' for member in members)})"


def joined(select: Select) -> str:
    """All members, of which those are joined that count at the same time and, with a slide, at the same boundary."""
    members, slide = select.members, slide_of(select)
    parts = [f"{_member(members[0])} AS {members[0].alias}"]
    for number, join in enumerate(select.joins, start=1):
        both = members[: number + 1]
        meets = [f"{_starts(both)} < {_ends(both)}"]
        if slide is not None:
            meets.append(f"{_floor(_ends(both), slide)} > {_starts(both)}")
        conditions = " AND ".join([*(f"({term.duck})" for term in join.on), *meets])
        word = "LEFT JOIN" if join.kind == "left" else "JOIN"
        parts.append(f"{word} {_member(members[number])} AS {members[number].alias} ON {conditions}")
    return " ".join(parts)


def _where(terms: Sequence[Term]) -> str:
    return " AND ".join(f"({term.duck})" for term in terms) or "true"


def _items(items: Sequence[Item], bounds: dict[str, str]) -> str:
    return ", ".join(f"{bounds[item.bound] if item.bound else _term(item).duck} AS {item.name}" for item in items)


def _term(item: Item) -> Term:
    assert item.term is not None
    return item.term


def _plain(select: Select) -> str:
    members, slide = select.members, slide_of(select)
    start, end = _starts(members), _ends(members)
    shape = body_shape(select)
    if len(members) == 1:
        time, place = f"{members[0].alias}.us_", f"{members[0].alias}.pos_"
    elif shape.clock == "arrival":
        time, place = f"greatest({', '.join(f'{member.alias}.us_' for member in members)})", "NULL::BIGINT"
    else:
        carrier = next((item for item in select.items if item.name in shape.events), None)
        time, place = _term(carrier).duck if carrier else "NULL::BIGINT", "NULL::BIGINT"
    # Only where windows do not overlap has a single row a window.
    last = _floor(end, slide) if slide else "NULL"
    items = _items(select.items, {"end": last, "start": f"{last} - {slide.length if slide else 0}"})
    return (
        f"SELECT {items}, {time} AS us_, {place} AS pos_, {start} AS f_, {end} AS u_ "
        f"FROM {joined(select)} WHERE {_where(select.where)}"
    )


def _at_boundaries(select: Select) -> str:
    """One row for each group and boundary at which a row of it counts."""
    slide, members = slide_of(select), select.members
    assert slide is not None
    first, length = f"{_floor(_starts(members), slide)} + {slide.length}", slide.length
    boundaries = f"unnest(range({first}, {_ends(members)} + 1, {length}))"
    window = members[0].window
    size = 1 if window is None or window.form == "now" else window.size
    keys = ", ".join([*(key.duck for key in select.keys or ()), "b_"])
    return (
        f"SELECT {_items(select.items, {'end': 'b_', 'start': f'b_ - {size}'})}, "
        f"b_ AS us_, NULL::BIGINT AS pos_, b_ - 1 AS f_, b_ AS u_ "
        f"FROM {joined(select)}, LATERAL (SELECT {boundaries} AS b_) WHERE {_where(select.where)} "
        f"GROUP BY {keys} HAVING {select.having.duck if select.having else 'true'}"
    )


def _moving(select: Select) -> str:
    """One row for each row, over those of its group and window that came no later."""
    [member] = select.members
    window, alias, keys = member.window, member.alias, select.keys or ()
    assert window is not None
    part = f"PARTITION BY {window.by} " if window.by else ""
    numbered = f"(SELECT *, row_number() OVER ({part}ORDER BY pos_) AS rn_ FROM {_member(member)})"
    by = f", {window.by} AS by0" if window.by else ""
    own = "".join(f", {key.duck} AS key{number}" for number, key in enumerate(keys))
    where = _where(select.where)
    seen = [f"{alias}.pos_ <= pos0"]
    if window.form == "range":
        seen += [f"{alias}.us_ > us0 - {window.size}", f"{alias}.us_ <= us0"]
    elif window.form != "unbounded":
        seen += [f"{alias}.rn_ > rn0 - {window.rows}", f"{alias}.rn_ <= rn0"]
    if window.by:
        seen.append(f"{alias}.{window.by} IS NOT DISTINCT FROM by0")
    seen += [f"({key.duck}) IS NOT DISTINCT FROM key{number}" for number, key in enumerate(keys)]
    grouped = ", ".join(["pos0", "us0", *(key.duck for key in keys)])
    return (
        f"SELECT {_items(select.items, {'end': 'us0', 'start': f'us0 - {window.size}'})}, "
        f"us0 AS us_, pos0 AS pos_, NULL::BIGINT AS f_, NULL::BIGINT AS u_ FROM {numbered} AS {alias} JOIN "
        f"(SELECT us_ AS us0, pos_ AS pos0, rn_ AS rn0{by}{own} FROM {numbered} AS {alias} WHERE {where}) "
        f"ON {' AND '.join(seen)} WHERE {where} GROUP BY {grouped} "
        f"HAVING {select.having.duck if select.having else 'true'}"
    )


def _distinct(select: Select) -> Select:
    """The groups of all columns: at each boundary, or with a row that is the first of its kind in its window."""
    keys = tuple(item.term for item in select.items if item.term is not None)
    first = Term("", "count(*) = 1", "bool") if with_each_tuple(select) else None
    return replace(select, distinct=False, keys=keys, having=first)


def _combined(body: Combined) -> str:
    if body.kind == "UNION ALL":
        return " UNION ALL ".join(f"({_unplaced(duck(member), body)})" for member in body.members)
    names = ", ".join(name for name, _ in body_shape(body).columns)
    at = [f"(SELECT {names}, us_ AS b_ FROM ({duck(replace(each, distinct=True))}))" for each in body.members]
    members = f" {body.kind} ".join(at)
    return f"SELECT {names}, b_ AS us_, NULL::BIGINT AS pos_, b_ - 1 AS f_, b_ AS u_ FROM ({members})"


def _unplaced(query: str, body: Combined) -> str:
    valid = "f_, u_" if body_shape(body).valid else "NULL::BIGINT AS f_, NULL::BIGINT AS u_"
    names = ", ".join(name for name, _ in body_shape(body).columns)
    return f"SELECT {names}, us_, NULL::BIGINT AS pos_, {valid} FROM ({query})"
