"""The grammar: queries at random."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.engine.grammar.forms import (
    SECOND,
    Body,
    Combined,
    Derived,
    Item,
    Join,
    Kind,
    Member,
    Named,
    Query,
    Select,
    Shape,
    Source,
    Term,
    Window,
)
from tests.engine.grammar.logs import STREAMS
from tests.engine.grammar.scopes import events_of, is_readable, own_name, scope_of
from tests.engine.grammar.shapes import counts_rows, output_shape, slide_of, source_shape
from tests.engine.grammar.terms import COMPARED, call, chance, condition, condition_value, of_kind, pick, term

SLIDES = [2 * SECOND, SECOND, 3 * SECOND, 1500_000]
SIZES = [SECOND, 1500_000, *(n * SECOND for n in (2, 3, 4, 5, 7, 10))]
Fits = Callable[[Shape], bool]
_SOME, _FEW = (0, 0, 0, 0, 1, 1, 2), (0, 0, 0, 0, 0, 1)

FORMS = ("boundaries", "moving", "join", "counted", "distinct", "set", "union", "plain", "periodic")
"""What a query may be at its outside."""


def queries(draw: random.Random, streams: Sequence[Named], form: str) -> list[Query]:
    """One to three queries, of which one has a form; a later one may read those before it."""
    pool, made = list(streams), []
    forms = [*draw.choices(FORMS, k=draw.randint(0, 2)), form]
    draw.shuffle(forms)
    for number, each in enumerate(forms):
        period = pick(draw, SLIDES) if each == "periodic" else 0
        query = Query(f"q{number}", Grammar(draw, pool, f"q{number}").query(each), period)
        made.append(query)
        if not (isinstance(query.body, Select) and query.body.changes) and not counts_rows(query):
            # As often as all streams together, so that there are chains of queries.
            pool += [Named(query.name, output_shape(query))] * len(streams)
    return made


@dataclass
class Grammar:
    """Draws the parts of one query.

    Args:
        draw: Where chance comes from.
        pool: What a FROM may name.
        name: Of the query.
    """

    draw: random.Random
    pool: Sequence[Named]
    name: str
    _made: int = 0

    def names(self, letter: str) -> Iterator[str]:
        """Names for columns that no other SELECT gives, so that an alias never hides a column."""
        self._made += 1
        return (f"{letter}{number}_{self.name}_{self._made}" for number in itertools.count())

    def query(self, form: str) -> Body:
        if form == "boundaries" and chance(self.draw, 1):
            return self.changes()
        if form == "periodic":
            return self.released()
        return self.body(form, 1)

    def body(self, form: str, depth: int) -> Body:
        match form:
            case "plain":
                return self.plain(depth)
            case "boundaries":
                return self.grouped(self.boundaries(depth))
            case "moving":
                return self.grouped(self.moving(depth))
            case "join":
                return self.joined(depth)
            case "counted":
                return self.grouped(*self.meeting(depth, self.slide()))
            case "distinct":
                return self.distinct(depth)
            case "set":
                return self.combined(depth)
            case _:
                return self.union(depth)

    # Sources

    def source(self, fits: Fits, depth: int) -> Source:
        """A stream, a query before, or a sub-query."""
        if depth > 0 and chance(self.draw, 2):
            form = pick(self.draw, ["plain", "plain", "union", "join", "boundaries"])
            derived = Derived(self.body(form, depth - 1))
            if fits(source_shape(derived)) and is_readable(source_shape(derived)):
                return derived
        return pick(self.draw, [named for named in self.pool if fits(named.shape) and is_readable(named.shape)])

    def member(self, alias: str, depth: int, window: Window, fits: Fits = lambda shape: shape.timed) -> Member:
        source = self.source(fits, depth)
        named = isinstance(source, Named)
        if window.form in ("tumble", "hop") and not (named and len(source_shape(source).events) == 1):
            window = replace(window, form="slide", slide=window.size if window.form == "tumble" else window.slide)
        if window.form == "window" and not source_shape(source).events:
            window = replace(window, form="slide")
        return Member(alias, source, window)

    def slide(self) -> int:
        return pick(self.draw, SLIDES)

    def sliding(self, slide: int | None = None) -> Window:
        step = self.slide() if slide is None else slide
        size = pick(self.draw, [each for each in SIZES if each >= step])
        return Window("slide", size, step)

    def boundaries(self, depth: int) -> Member:
        """A member with a window over which aggregates are given at boundaries."""
        if depth > 0 and chance(self.draw, 1):
            inner = Derived(self.body(pick(self.draw, ["boundaries", "set"]), 0))
            if is_readable(source_shape(inner)):
                return Member("a", inner)
        form = pick(self.draw, ["slide", "tumble", "hop", "window", "now"])
        window = self.sliding()
        match form:
            case "tumble":
                window = Window("tumble", window.size, window.size)
            case "now":
                window = Window("now", 1, 1)
            case "hop":
                window = replace(window, form="hop")
            case "window":
                window = replace(window, form="window")
        return self.member("a", depth, window)

    def moving(self, depth: int) -> Member:
        """A member with a window over which aggregates come with each tuple."""
        form = pick(self.draw, ["range", "rows", "partition", "unbounded"])
        if form == "range":
            window = Window("range", pick(self.draw, SIZES))
            return self.member("a", depth, window, lambda shape: shape.timed and shape.ordered)
        source = self.source(lambda shape: shape.ordered, depth)
        columns = [name for name, kind in source_shape(source).columns if kind in ("text", "int")]
        rows = self.draw.randint(1, 4)
        if form == "partition" and columns:
            return Member("a", source, Window("partition", rows=rows, by=pick(self.draw, columns)))
        return Member("a", source, Window("unbounded") if form == "unbounded" else Window("rows", rows=rows))

    # Queries

    def plain(self, depth: int) -> Select:
        member = Member("a", self.source(lambda shape: True, depth))
        if source_shape(member.source).timed and chance(self.draw, 3):
            member = replace(member, window=self.sliding())
        scope = scope_of([member])
        items = self.items(scope, [member])
        if member.window is not None and member.window.slide == member.window.size:
            items += tuple(self.bounds([member]))
        return Select(items, (member,), (), self.where(scope))

    def items(self, scope: Sequence[Term], members: Sequence[Member]) -> tuple[Item, ...]:
        """Columns of a SELECT without groups, mostly with the time."""
        times = [each for each in scope if each.column is not None and each.column in events_of(members)]
        items = [Item("ts", pick(self.draw, times))] if times and chance(self.draw, 8) else []
        kinds: list[Kind] = [pick(self.draw, ["int", "text", "float"]) for _ in range(self.draw.randint(1, 3))]
        items += [Item(name, term(self.draw, scope, kind)) for name, kind in zip(self.names("c"), kinds, strict=False)]
        return tuple(items)

    def where(self, scope: Sequence[Term], counts: Sequence[int] = _SOME) -> tuple[Term, ...]:
        return tuple(condition(self.draw, scope) for _ in range(pick(self.draw, counts)))

    def grouped(self, first: Member, others: tuple[Member, ...] = (), joins: tuple[Join, ...] = ()) -> Select:
        """Aggregates over members."""
        members = (first, *others)
        scope = scope_of(members)
        window = first.window
        keys = () if window is not None and window.form == "unbounded" else self.keys(scope)
        shown = [key for key in keys if chance(self.draw, 9)]
        items = [Item(name, key) for name, key in zip(self.names("k"), shown, strict=False)]
        bounded = window is None or window.form != "unbounded"
        names = itertools.islice(self.names("n"), self.draw.randint(1, 3))
        items += [Item(name, self.result(scope, keys, bounded)) for name in names]
        items += self.bounds(members)
        having = None
        if chance(self.draw, 2):
            having = condition(self.draw, [call(self.draw, scope, True, bounded) for _ in range(2)])
        return Select(tuple(items), members, joins, self.where(scope, _FEW if joins else _SOME), keys, having)

    def keys(self, scope: Sequence[Term]) -> tuple[Term, ...]:
        keys: list[Term] = []
        for _ in range(pick(self.draw, [1, 0, 2])):
            kinds: list[Kind] = sorted({column.kind for column in of_kind(scope, *COMPARED)})
            key = term(self.draw, scope, pick(self.draw, kinds), 1)
            if key not in keys:
                keys.append(key)
        return tuple(keys)

    def result(self, scope: Sequence[Term], keys: Sequence[Term], bounded: bool) -> Term:
        if not chance(self.draw, 2):
            return call(self.draw, scope, bounded=bounded)
        first, second = (call(self.draw, scope, True, bounded) for _ in range(2))
        if first.kind == second.kind == "int":
            return Term(f"({first.text} + {second.text})", f"({first.duck} + {second.duck})", "int")
        return condition_value(self.draw, [first, second, *keys])

    def bounds(self, members: Sequence[Member]) -> list[Item]:
        window = members[0].window
        if window is not None and window.released:
            return []  # the release is a hidden column
        with_each = window is not None and window.with_each_tuple
        if with_each and (not window or not window.of_time):
            return []
        if window is None and slide_of(Select((), tuple(members))) is None:
            return []
        items = [Item(next(self.names("till")), bound="end")] if chance(self.draw, 8) else []
        if len(members) == 1 and window is not None and chance(self.draw, 2):
            items.append(Item(next(self.names("since")), bound="start"))
        return items

    def changes(self) -> Select:
        """A query that tells open windows too, with all by which its rows can be told apart."""
        member = self.boundaries(0)
        scope = scope_of([member])
        keys = self.keys(scope)
        items = [Item(name, key) for name, key in zip(self.names("k"), keys, strict=False)]
        items += [Item("till", bound="end"), Item("n", call(self.draw, scope))]
        return Select(tuple(items), (member,), (), self.where(scope), keys, changes=True)

    def distinct(self, depth: int) -> Select:
        if chance(self.draw, 4):
            member = self.moving(depth)
            if member.window is not None and member.window.form == "unbounded":
                member = replace(member, window=Window("rows", rows=2))
        else:
            member = self.boundaries(depth)
            if member.window is not None and member.window.form == "window":
                member = replace(member, window=replace(member.window, form="slide"))
        scope = scope_of([member])
        return Select(self.comparable(self.columns(), scope, [member]), (member,), (), self.where(scope), distinct=True)

    # Periodic queries

    def released(self) -> Body:
        """What a periodic query computes over windows that end at its releases."""
        match pick(self.draw, ["plain", "grouped", "grouped", "join", "counted", "distinct", "set"]):
            case "plain":
                member = self.seen("a")
                scope = scope_of([member])
                return Select(self.items(scope, [member]), (member,), (), self.where(scope))
            case "grouped":
                return self.grouped(self.seen("a"))
            case "distinct":
                member = self.seen("a")
                scope = scope_of([member])
                items = self.comparable(self.columns(), scope, [member])
                return Select(items, (member,), (), self.where(scope), distinct=True)
            case "set":
                columns = self.columns()
                first, second = (self.choosing(columns, [], self.seen("a")) for _ in range(2))
                return Combined(pick(self.draw, ["EXCEPT", "INTERSECT", "UNION"]), (first, second))
            case form:
                members = [self.seen(alias) for alias in "abc"[: pick(self.draw, [2, 2, 3])]]
                joins = []
                for number in range(1, len(members)):
                    left = form == "join" and chance(self.draw, 4)
                    joins.append(Join("left" if left else "inner", self.on(members[: number + 1], left)))
                if form == "counted":
                    return self.grouped(members[0], tuple(members[1:]), tuple(joins))
                scope = scope_of(members)
                items = self.items(scope, self.carriers(members, joins))
                return Select(items, tuple(members), tuple(joins), self.where(scope, _FEW))

    def seen(self, alias: str) -> Member:
        """What an instance sees of a stream. What it sees of an output is in the log alone: when that came depends on
        the schedule."""
        source = pick(self.draw, [named for named in self.pool if named.name in STREAMS])
        columns = [name for name, kind in source.shape.columns if kind in ("text", "int")]
        match pick(self.draw, ["range", "range", "rows", "partition"]):
            case "range":
                window = Window("range", pick(self.draw, SIZES), released=True)
            case "rows":
                window = Window("rows", rows=self.draw.randint(1, 4), released=True)
            case _:
                rows, by = self.draw.randint(1, 3), pick(self.draw, columns)
                window = Window("partition", rows=rows, by=by, released=True)
        return Member(alias, source, window)

    def columns(self) -> list[tuple[str, Kind]]:
        """Names and types that a SELECT shall give."""
        kinds: list[Kind] = [pick(self.draw, ["text", "int", "float"]) for _ in range(self.draw.randint(1, 2))]
        return list(zip(self.names("c"), kinds, strict=False))

    def comparable(
        self, columns: Sequence[tuple[str, Kind]], scope: Sequence[Term], members: Sequence[Member]
    ) -> tuple[Item, ...]:
        """Columns of these names and types, and mostly the end of the window."""
        items = [Item(name, term(self.draw, scope, kind, 1)) for name, kind in columns]
        return (*items, *(item for item in self.bounds(members) if item.bound == "end"))

    def combined(self, depth: int) -> Combined:
        """UNION, EXCEPT, INTERSECT over windows with the same slide."""
        slide, columns = self.slide(), self.columns()
        ends = [Item(next(self.names("till")), bound="end")] if chance(self.draw, 7) else []
        first = self.member("a", depth, self.sliding(slide))
        members = [self.choosing(columns, ends, first)]
        again = chance(self.draw, 5)
        second = replace(first, window=self.sliding(slide)) if again else self.member("a", depth, self.sliding(slide))
        items = members[0].items if again and chance(self.draw, 5) else None
        members.append(self.choosing(columns, ends, second, items))
        return Combined(pick(self.draw, ["EXCEPT", "INTERSECT", "UNION"]), (members[0], members[1]))

    def choosing(
        self, columns: Sequence[tuple[str, Kind]], ends: Sequence[Item], member: Member, items: Any = None
    ) -> Select:
        """A member of a set operation."""
        scope = scope_of([member])
        made = [Item(name, term(self.draw, scope, kind, 1)) for name, kind in columns]
        return Select(items or (*made, *ends), (member,), (), self.where(scope))

    def union(self, depth: int) -> Combined:
        """UNION ALL of SELECTs with a time."""
        columns = self.columns()
        members = []
        for _ in range(2):
            member = Member("a", self.source(lambda shape: shape.clock == "event" and bool(shape.events), depth))
            scope = scope_of([member])
            time = next(each for each in scope if each.column == f"a.{source_shape(member.source).events[0]}")
            items = [Item("ts", time), *(Item(name, term(self.draw, scope, kind)) for name, kind in columns)]
            members.append(Select(tuple(items), (member,), (), self.where(scope)))
        return Combined("UNION ALL", (members[0], members[1]))

    # Joins

    def joined(self, depth: int) -> Select:
        slide = self.slide() if chance(self.draw, 2) else None
        first, others, joins = self.meeting(depth, slide)
        scope = scope_of([first, *others])
        members = (first, *others)
        items = self.items(scope, self.carriers(members, joins))
        return Select(items, members, joins, self.where(scope, _FEW))

    def carriers(self, members: Sequence[Member], joins: Sequence[Join]) -> list[Member]:
        """Members whose times are never missing."""
        return [m for number, m in enumerate(members) if number == 0 or joins[number - 1].kind != "left"]

    def meeting(self, depth: int, slide: int | None) -> tuple[Member, tuple[Member, ...], tuple[Join, ...]]:
        """Two to four members and how they are joined."""
        count = pick(self.draw, [2, 2, 3, 3, 4])
        members = [self.side(alias, depth, slide) for alias in "abcd"[:count]]
        commas = chance(self.draw, 2)
        joins = []
        for number in range(1, count):
            left = slide is None and not commas and chance(self.draw, 4)
            on = self.on(members[: number + 1], left)
            joins.append(Join("comma" if commas else "left" if left else "inner", on))
        return members[0], tuple(members[1:]), tuple(joins)

    def side(self, alias: str, depth: int, slide: int | None) -> Member:
        if slide is not None:
            return self.member(alias, depth, self.sliding(slide))
        window = Window("now", 1, 1) if chance(self.draw, 1) else Window("range", pick(self.draw, SIZES[1:]))
        return self.member(alias, depth, window)

    def equal(self, before: Sequence[Term], own: Sequence[Term]) -> Term:
        """A pair of keys; mostly columns of the same name, which meet more often than others do."""
        pairs = [(one, two) for one in before for two in own if one.kind == two.kind != "time"]
        same = [(one, two) for one, two in pairs if own_name(one) == own_name(two) and one.kind in ("text", "int")]
        if pairs and not chance(self.draw, 2):
            one, two = pick(self.draw, pairs if not same or chance(self.draw, 2) else same)
        else:
            kind: Kind = pick(self.draw, ["int", "text", "float"])
            one, two = term(self.draw, before, kind, 1), term(self.draw, own, kind, 1)
        return Term(f"{one.text} = {two.text}", f"{one.duck} = {two.duck}", "bool")

    def on(self, members: Sequence[Member], left: bool) -> tuple[Term, ...]:
        own = [each for each in scope_of(members) if str(each.column).startswith(f"{members[-1].alias}.")]
        before = [each for each in scope_of(members) if each not in own]
        terms = [self.equal(before, own) for _ in range(pick(self.draw, [1, 1, 1, 1, 2, 0]))]
        if not left and chance(self.draw, 1):
            terms.append(condition(self.draw, [*before, *own]))
        if not terms or chance(self.draw, 1):
            terms.append(condition(self.draw, own))
        return tuple(terms)
