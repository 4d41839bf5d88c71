"""What levels left out of the windows of instances: by their records, which the ledger must bear out."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from tests.engine.grammar.cases import Play
from tests.engine.grammar.forms import Body, Combined, Member, Query

from freshet.engine.states import EdgeState
from freshet.kernels.keeping import kept_mask
from freshet.model import Instance, Keep, Train
from freshet.model.network import edge_name

LeftOut = list[tuple[str, int, int]]
"""Edge, release and offset of each tuple that an instance does not see although it had arrived."""


def left_out(play: Play) -> LeftOut:
    """What the answers of all periodic queries lack.

    Raises:
        AssertionError: The ledger has something else.
    """
    found: LeftOut = []
    for query in (each for each in play.case.queries if each.period):
        answered = [each for each in play.app.instances(query.name) if each.state == "answered"]
        own = [gone for edge in _edges(play, query.name) for gone in _gone(play, edge, answered)]
        _check_ledger(play, query.name, own)
        found += own
    return found


def with_edges(play: Play) -> list[Query]:
    """The queries of a case, in which windows of periodic ones know their edges."""
    return [_with_edges(play, each) if each.period else each for each in play.case.queries]


def _with_edges(play: Play, query: Query) -> Query:
    edges = edges_in_order(play, query.name)
    body = query.body
    selects = list(body.members) if isinstance(body, Combined) else [body]
    assert len(edges) == sum(len(each.members) for each in selects), f"{play.case}\n{edges}"
    names = iter(edges)
    selects = [replace(each, members=tuple(_at(member, next(names)) for member in each.members)) for each in selects]
    found: Body = selects[0]
    if isinstance(body, Combined):
        found = replace(body, members=(selects[0], selects[1]))
    return replace(query, body=found)


def _at(member: Member, edge: str) -> Member:
    assert member.window is not None
    return replace(member, window=replace(member.window, edge=edge))


def edges_in_order(play: Play, query: str) -> list[str]:
    """The edges of a periodic query by the place of what they read in its text."""
    graph = play.app.queries[query].graph

    def below(name: str) -> Iterator[str]:
        for port, source in enumerate(graph.inputs[name]):
            if source in graph.operators:
                yield from below(source)
            else:
                yield edge_name(name, port, len(graph.inputs[name]))

    return list(below(graph.root))


def _edges(play: Play, query: str) -> list[EdgeState]:
    state = next(each for each in play.app.engine.board.queries if each.name == query)
    return [edge for each in play.app.engine.board.of(state) for edge in each.edges if edge.window is not None]


def _gone(play: Play, edge: EdgeState, answered: Sequence[Instance]) -> LeftOut:
    """Each instance sees a window of its own; where tuples are read once, it sees what it and earlier ones kept."""
    found: LeftOut = []
    reader, before, earlier = edge.edge.reader, 0, set[int]()
    for one in answered:
        first, end = _range(play, edge, one, before), one.ends[reader]
        ratio = one.kept.get(reader, 1.0)
        mask = kept_mask(Train(edge.edge.stream, first, end, keep=Keep(ratio, reader)))
        gone = {first + int(place) for place in np.flatnonzero(~mask)}
        assert edge.window is not None
        if edge.window.passes:
            earlier, before = earlier | gone, end
            gone = earlier
        found += [(reader, one.release, offset) for offset in sorted(gone)]
    return found


def _range(play: Play, edge: EdgeState, one: Instance, before: int) -> int:
    """The first offset that an instance reads."""
    window, end = edge.window, one.ends[edge.edge.reader]
    assert window is not None
    if window.passes:
        return before
    if window.rows is not None:
        return max(0, end - window.rows)
    return min(end, bisect_left(play.held[edge.edge.stream].arrivals, one.release - (window.size or 0)))


def _check_ledger(play: Play, query: str, gone: LeftOut) -> None:
    """The ledger has each tuple that an answer lacks, and no other."""
    told: dict[str, set[int]] = defaultdict(set)
    for entry in (each for each in play.app.missing(query) if each.kind == "thinned"):
        mask = kept_mask(Train(entry.stream, entry.first, entry.end, keep=entry.keep))
        assert entry.rows == int((~mask).sum()), f"{play.case}\n{entry}"
        told[entry.edge] |= {entry.first + int(place) for place in np.flatnonzero(~mask)}
    lacking: dict[str, set[int]] = defaultdict(set)
    for edge, _, offset in gone:
        lacking[edge].add(offset)
    assert {edge: each for edge, each in told.items() if each} == lacking, f"{play.case}\n{query}: {told} {lacking}"
