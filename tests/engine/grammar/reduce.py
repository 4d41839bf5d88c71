"""A case that fails, made as small as it can be while it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.engine.grammar.cases import Case
from tests.engine.grammar.forms import SECOND, Body, Combined, Derived, Select

TRIES = 600
"""Cases that may be tried on the way."""


def reduced(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case found, taking away one thing after the other."""
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for simpler in _simpler(case):
            tries += 1
            if tries > TRIES:
                return case
            if fails(simpler):
                case, smaller = simpler, True
                break
    return case


def _simpler(case: Case) -> Iterator[Case]:
    """Cases with less in them, the greatest steps first."""
    for number in range(len(case.queries)):
        yield replace(case, queries=[*case.queries[:number], *case.queries[number + 1 :]])
    length = len(case.steps)
    size = length // 2
    while size:
        for first in range(0, length, size):
            yield replace(case, steps=[*case.steps[:first], *case.steps[first + size :]])
        size //= 2
    plain = replace(case, crash=None, policies=("everything", "everything"), slots=1, seed=0, pieces=64, resplits=0.0)
    for simpler in (
        plain,
        replace(case, crash=None),
        replace(case, twins=case.twins and "free"),
        replace(case, policies=plain.policies),
        replace(case, slots=1),
        replace(case, seed=0),
        replace(case, pieces=64),
        replace(case, resplits=0.0),
        replace(case, start=20 * SECOND),
    ):
        if simpler != case:
            yield simpler
    yield from _fewer_rows(case)
    for number, query in enumerate(case.queries):
        for body in _bodies(query.body):
            yield replace(
                case, queries=[*case.queries[:number], replace(query, body=body), *case.queries[number + 1 :]]
            )


def _fewer_rows(case: Case) -> Iterator[Case]:
    for number, (what, stream, gap, more) in enumerate(case.steps):
        if gap:
            yield replace(case, steps=[*case.steps[:number], (what, stream, 0, more), *case.steps[number + 1 :]])
        for row in range(len(more) if what == "append" and len(more) > 1 else 0):
            step = (what, stream, gap, [*more[:row], *more[row + 1 :]])
            yield replace(case, steps=[*case.steps[:number], step, *case.steps[number + 1 :]])


def _bodies(body: Body) -> Iterator[Body]:
    """Simpler queries; some of them make no sense, which is for others to find out."""
    if isinstance(body, Combined):
        for number, member in enumerate(body.members):
            for simpler in _selects(member):
                members = (simpler, body.members[1]) if number == 0 else (body.members[0], simpler)
                yield replace(body, members=members)
    else:
        yield from _selects(body)


def _selects(select: Select) -> Iterator[Select]:
    if select.where:
        yield replace(select, where=())
    for number in range(len(select.where)):
        yield replace(select, where=select.where[:number] + select.where[number + 1 :])
    if select.having is not None:
        yield replace(select, having=None)
    if len(select.items) > 1:
        for number in range(len(select.items)):
            yield replace(select, items=select.items[:number] + select.items[number + 1 :])
    for number in range(len(select.keys or ())):
        yield replace(select, keys=(select.keys or ())[:number] + (select.keys or ())[number + 1 :])
    if len(select.joins) > 1:
        yield replace(select, joins=select.joins[:-1], members=select.members[:-1])
    for number, join in enumerate(select.joins):
        for term in range(len(join.on) if len(join.on) > 1 else 0):
            fewer = replace(join, on=join.on[:term] + join.on[term + 1 :])
            yield replace(select, joins=(*select.joins[:number], fewer, *select.joins[number + 1 :]))
    for number, member in enumerate(select.members):
        if isinstance(member.source, Derived):
            for inner in _bodies(member.source.body):
                simpler = replace(member, source=Derived(inner))
                yield replace(select, members=(*select.members[:number], simpler, *select.members[number + 1 :]))
