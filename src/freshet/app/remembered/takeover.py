"""Continuing from what earlier versions wrote. Only this file knows their form, and :mod:`freshet.log.old_names` their
names.

Until format 3 a query was a set of paths, one for each way from a stream to its output. A join was on two of them, once
for each side; a union was on none. The operators behind them had a queue for each path. Work that queries shared was a
hidden query whose output they read.

In the first versions of format 4 a join had two inputs: a FROM with more of them was a chain of joins, which remembered
the rows in between. A query that ran like this continues like this.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from freshet.app.remembered.forms import Input, Move, inputs_of, ports_of, stored
from freshet.log import Log, QueryRecord, ReaderState
from freshet.log.old_names import is_shared, path_endings, shared_reader, side
from freshet.model import Join, Operator, Query, QueryGraph, Union
from freshet.model.plain_values import named

Way = tuple[tuple[str, int], ...]
"""Operators from a stream to the output, each with the port that a tuple comes in at."""


@dataclass(frozen=True, slots=True)
class PathPlace:
    """An operator on a path."""

    reader: str
    fields: Mapping[str, Any]
    """What the fingerprint was made of."""
    target: Input
    """Where tuples that waited for it wait now."""


def old_queries(log: Log) -> dict[str, tuple[ReaderState, ...]]:
    """The readers of queries that have not been taken over yet, by query."""
    known = log.queries()
    found: dict[str, tuple[ReaderState, ...]] = {}
    for reader in log.readers().values():
        if reader.kind == "operator" and reader.owner not in ("", *known) and not is_shared(reader.owner):
            found[reader.owner] = (*found.get(reader.owner, ()), reader)
    return found


def is_out(readers: Sequence[ReaderState]) -> bool:
    """Whether a query was taken out."""
    return all(reader.parked for reader in _firsts(readers))


def old_fingerprint(query: Query) -> str:
    """The fingerprint that earlier versions gave a query."""
    paths = [(stream, [place.fields for place in places]) for stream, places in paths_of(query.graph)]
    told = json.dumps({"paths": paths, "on_error": query.on_error}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def as_it_ran(log: Log, query: Query, in_pairs: Callable[[], Query], fingerprint: Callable[[Query], str]) -> Query:
    """A query in the form in which a log knows it: itself, or ``in_pairs``, with streams joined two at a time."""
    if all(len(inputs) <= 2 for name, inputs in query.graph.inputs.items() if query.graph.operators[name].remembers):
        return query
    record = log.queries().get(query.name)
    old = _firsts(old_queries(log).get(query.name, ()))
    known = {each.state.get("fingerprint") for each in old} if record is None else {record.fingerprint}
    if not known or known == {fingerprint(query)}:
        return query
    paired = in_pairs()
    return paired if known in ({fingerprint(paired)}, {old_fingerprint(paired)}) else query


def take_over(log: Log, query: Query, fingerprint: str) -> None:
    """Brings the readers and queues of an unchanged query into its present form, in one transaction."""
    readers = old_queries(log).get(query.name)
    if readers is None or {each.state.get("fingerprint") for each in _firsts(readers)} != {old_fingerprint(query)}:
        return
    move, known = Move(log), log.readers()
    first = _firsts(readers)[0]
    for target, sources in _sources(log, query.graph, readers).items():
        found = known.get(target.reader)
        if found is None or found not in sources or found.stream != target.stream:
            move.place(target, sources, first)
    wanted = {(each.reader, each.stream) for each in inputs_of(query.graph)}
    for reader in readers:
        if (reader.name, reader.stream) not in wanted:
            move.drop(reader.name)
    state = {"graph": stored(query.graph)} | ({"fresh": True} if first.state.get("fresh") else {})
    move.know(query.name, QueryRecord(fingerprint, state))
    move.commit()
    _clear(log)


def forget_old(log: Log, query: str) -> None:
    """Forgets the readers and queues of a query that has changed."""
    _drop_readers(log, query)
    _clear(log)


def _drop_readers(log: Log, owner: str) -> None:
    move = Move(log)
    for reader in log.readers().values():
        if reader.owner == owner and reader.kind in ("operator", "state"):
            move.drop(reader.name)
    move.commit()


def paths_of(graph: QueryGraph) -> list[tuple[str, list[PathPlace]]]:
    """The paths of a query, those of a join's left input first: the stream, and the operators from there on.

    >>> from freshet.model import Filter
    >>> union = QueryGraph({"q.a": Filter("q.a", "v"), "q.b": Filter("q.b", "w"), "q.union": Union("q.union")},
    ...                    {"q.a": ("s",), "q.b": ("t",), "q.union": ("q.a", "q.b")}, "q.union")
    >>> [(stream, places[0].reader) for stream, places in paths_of(union)]
    [('s', 'q.a@1'), ('t', 'q.b@2')]
    """
    ways = list(_ways(graph, graph.root))
    endings = path_endings(len(ways))
    return [(stream, _places(graph, way, ending)) for (stream, way), ending in zip(ways, endings, strict=True)]


def _ways(graph: QueryGraph, name: str) -> Iterator[tuple[str, Way]]:
    if name not in graph.operators:
        yield name, ()
        return
    for port, source in enumerate(graph.inputs[name]):
        for stream, way in _ways(graph, source):
            yield stream, (*way, (name, port))


def _places(graph: QueryGraph, way: Way, ending: str) -> list[PathPlace]:
    places: list[PathPlace] = []
    target: Input | None = None
    for name, port in way:
        # Tuples that waited behind a union wait in front of it now.
        target = target or ports_of(graph, name)[port]
        operator = graph.operators[name]
        if not isinstance(operator, Union):
            fields = _fields(operator, port)
            places.append(PathPlace(f"{fields['name']}{ending}", fields, target))
            target = None
    return places


def _fields(operator: Operator, port: int) -> dict[str, Any]:
    if isinstance(operator, Join):
        return {**named(operator), "name": side(operator.name, port), "fold": operator.name, "port": port}
    fields: dict[str, Any] = named(replace(operator, name=operator.name.partition("~")[0]))
    return fields


def _firsts(readers: Sequence[ReaderState]) -> list[ReaderState]:
    """The readers of streams, outputs and shared work; a reader of a queue between operators has the queue's name."""
    return [reader for reader in readers if reader.stream != reader.name]


def _sources(log: Log, graph: QueryGraph, readers: Sequence[ReaderState]) -> dict[Input, list[ReaderState | None]]:
    """By input of a query, the readers whose places it takes over."""
    own = {reader.name: reader for reader in readers}
    found: dict[Input, list[ReaderState | None]] = {}
    paths = [places for _, places in paths_of(graph)]
    for places in paths:
        shared = _shared(log, places, own) if len(paths) == 1 else {}
        for number, place in enumerate(places):
            found.setdefault(place.target, []).append(shared.get(number) or own.get(place.reader))
    return found


def _shared(log: Log, path: Sequence[PathPlace], own: Mapping[str, ReaderState]) -> dict[int, ReaderState]:
    """Readers of shared work, by the place of their operator on the path."""
    known = log.readers()
    places = {each.reader: number for number, each in enumerate(path)}
    [first] = _firsts(list(own.values()))
    found, end = {places[first.name]: first}, places[first.name]
    while is_shared(first.stream):
        work = first.stream
        first = known[shared_reader(work, 1)]
        begin = int(first.state["skips"])
        for place in range(begin, end):
            reader = known.get(shared_reader(work, place - begin + 1))
            if reader is not None:
                found[place] = reader
        end = begin
    return found


def _clear(log: Log) -> None:
    """Drops shared work that has no readers any more; the rest waits for queries that are out."""
    while True:
        readers = log.readers().values()
        works = {reader.owner for reader in readers if reader.kind == "operator" and is_shared(reader.owner)}
        unread = works - {reader.stream for reader in readers}
        if not unread:
            break
        for work in unread:
            _drop_readers(log, work)
            if work in log.streams():
                log.forget(work)
    for reader in log.readers().values():
        if reader.owner in works and reader.needed:
            log.set_need(reader.name, False)
