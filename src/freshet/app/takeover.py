"""Going on from what earlier versions wrote. Only this file knows their form.

Until format 3 a query was a set of paths, one for each way from a stream to its output. A join was on two of them, once
for each side; a union was on none. What stood behind either of them had a queue for each path: ``x@1``, ``x@2``. Work
that queries shared was a hidden query ``__shared_...`` whose output they read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from freshet.app.forms import Input, Move, input_of, inputs_of, stored
from freshet.log import Log, QueryRecord, ReaderState
from freshet.model import Join, Operator, Query, QueryGraph, Union

_SIDES: Final = ("left", "right")
_SHARED: Final = "__shared_"

Way = tuple[tuple[str, int], ...]
"""Operators from a stream to the output, each with the port that a tuple comes in at."""


@dataclass(frozen=True, slots=True)
class Place:
    """An operator on a path.

    Args:
        reader: Name of its reader there.
        fields: What told it apart.
        target: Where tuples that waited for it wait now.
    """

    reader: str
    fields: Mapping[str, Any]
    target: Input


def old_queries(log: Log) -> dict[str, tuple[ReaderState, ...]]:
    """The readers of the queries that nobody has taken over yet, by query."""
    known = log.queries()
    found: dict[str, tuple[ReaderState, ...]] = {}
    for reader in log.readers().values():
        if reader.kind == "operator" and reader.owner not in ("", *known) and not reader.owner.startswith(_SHARED):
            found[reader.owner] = (*found.get(reader.owner, ()), reader)
    return found


def is_out(readers: Sequence[ReaderState]) -> bool:
    """Whether a query was taken out."""
    return all(reader.parked for reader in _firsts(readers))


def old_fingerprint(query: Query) -> str:
    """What told whether a query had changed."""
    paths = [(stream, [place.fields for place in places]) for stream, places in paths_of(query.graph)]
    told = json.dumps({"paths": paths, "on_error": query.on_error}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


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


def paths_of(graph: QueryGraph) -> list[tuple[str, list[Place]]]:
    """The paths of a query, those of a join's left input first: the stream, and the operators from there on.

    >>> from freshet.model import Filter
    >>> union = QueryGraph({"q.a": Filter("q.a", "v"), "q.b": Filter("q.b", "w"), "q.union": Union("q.union")},
    ...                    {"q.a": ("s",), "q.b": ("t",), "q.union": ("q.a", "q.b")}, "q.union")
    >>> [(stream, places[0].reader) for stream, places in paths_of(union)]
    [('s', 'q.a@1'), ('t', 'q.b@2')]
    """
    ways = list(_ways(graph, graph.root))
    numbers = [""] if len(ways) == 1 else [f"@{number}" for number in range(1, len(ways) + 1)]
    return [(stream, _places(graph, way, number)) for (stream, way), number in zip(ways, numbers, strict=True)]


def _ways(graph: QueryGraph, name: str) -> Iterator[tuple[str, Way]]:
    if name not in graph.operators:
        yield name, ()
        return
    for port, source in enumerate(graph.inputs[name]):
        for stream, way in _ways(graph, source):
            yield stream, (*way, (name, port))


def _places(graph: QueryGraph, way: Way, number: str) -> list[Place]:
    places: list[Place] = []
    target: Input | None = None
    for name, port in way:
        # Tuples that waited behind a union wait in front of it now.
        target = target or input_of(graph, name, port)
        operator = graph.operators[name]
        if not isinstance(operator, Union):
            fields = _fields(operator, port)
            places.append(Place(f"{fields['name']}{number}", fields, target))
            target = None
    return places


def _fields(operator: Operator, port: int) -> dict[str, Any]:
    if isinstance(operator, Join):
        name = f"{operator.name}.{_SIDES[port]}"
        return asdict(operator) | {"name": name, "fold": operator.name, "port": port}
    return asdict(replace(operator, name=operator.name.partition("~")[0]))


def _firsts(readers: Sequence[ReaderState]) -> list[ReaderState]:
    """Those of streams, outputs and shared work; readers of queues between operators are named like these."""
    return [reader for reader in readers if reader.stream != reader.name]


def _sources(log: Log, graph: QueryGraph, readers: Sequence[ReaderState]) -> dict[Input, list[ReaderState | None]]:
    """The readers whose places the inputs of a query take over."""
    own = {reader.name: reader for reader in readers}
    found: dict[Input, list[ReaderState | None]] = {}
    paths = [places for _, places in paths_of(graph)]
    for places in paths:
        shared = _shared(log, places, own) if len(paths) == 1 else {}
        for number, place in enumerate(places):
            found.setdefault(place.target, []).append(shared.get(number) or own.get(place.reader))
    return found


def _shared(log: Log, path: Sequence[Place], own: Mapping[str, ReaderState]) -> dict[int, ReaderState]:
    """Readers of shared work by the place of the operator that they read for."""
    known = log.readers()
    places = {each.reader: number for number, each in enumerate(path)}
    [first] = _firsts(list(own.values()))
    found, end = {places[first.name]: first}, places[first.name]
    while first.stream.startswith(_SHARED):
        work = first.stream
        first = known[f"{work}.1"]
        begin = int(first.state["skips"])
        for place in range(begin, end):
            reader = known.get(f"{work}.{place - begin + 1}")
            if reader is not None:
                found[place] = reader
        end = begin
    return found


def _clear(log: Log) -> None:
    """Forgets shared work that nobody reads any more; what is left waits for queries that are out."""
    while True:
        readers = log.readers().values()
        works = {reader.owner for reader in readers if reader.kind == "operator" and reader.owner.startswith(_SHARED)}
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
