"""Overlapping queries: which of them read shared work, where they stand in it, and how they get there and back.

Shared work is a hidden query (see :mod:`freshet.policies.sharing`) whose output is a queue: its readers are the queries
that it serves. The log says who reads what, so it alone is asked. A query changes between its stream and shared work
only *at rest*: when nothing waits for it in between, its place in the stream is known exactly. Queries share where they
stand at the same tuple. All moves of a start are one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from freshet.app.restart import fingerprint
from freshet.engine.queues import QUEUE
from freshet.log import Log, ReaderState
from freshet.model import Query, QueryGraph
from freshet.policies.sharing import is_shared, share

HOME: Final = "home"
"""Where a reader of shared work keeps the name that it has as a reader of its stream."""
Place = tuple[str, int]
"""A stream and an offset in it."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a query runs.

    Args:
        hidden: The shared work that it reads, each after the one that it reads.
        query: What is left of it.
    """

    hidden: tuple[Query, ...]
    query: Query


class Standing:
    """Where the queries of a log stand, as it is now."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._of: dict[str, list[ReaderState]] = {}
        for name, reader in log.readers().items():
            query, dot, _ = name.partition(".")
            if dot:
                self._of.setdefault(query, []).append(reader)

    def first(self, query: str) -> ReaderState | None:
        """The reader of a straight query's stream."""
        found = [reader for reader in self._of.get(query, ()) if reader.stream != reader.name]
        return found[0] if len(found) == 1 else None

    def queues(self, query: str) -> list[ReaderState]:
        """The readers of the queues between its operators."""
        return [reader for reader in self._of.get(query, ()) if reader.stream == reader.name]

    def served(self) -> set[str]:
        """The queries that read shared work."""
        return {name for name in self._of if not is_shared(name) and self.works(name)}

    def works(self, query: str) -> list[str]:
        """The shared work that a query reads, the last first."""
        found: list[str] = []
        reader = self.first(query)
        while reader is not None and is_shared(reader.stream):
            found.append(reader.stream)
            reader = self.first(reader.stream)
        return found

    def place(self, query: str) -> Place | None:
        """How far a query has answered its stream; None where tuples wait for it in between, or are gone."""
        end = self._log.end
        reader = self.first(query)
        while reader is not None and all(between.next == end(between.stream) for between in self.queues(query)):
            if not is_shared(reader.stream):
                is_there = reader.next >= self._log.oldest(reader.stream)
                return (reader.stream, reader.next) if is_there else None
            if reader.next != end(reader.stream):
                return None
            query = reader.stream
            reader = self.first(query)
        return None


def form_of(log: Log, query: Query) -> Form:
    """How a query runs, by where its reader stands."""
    standing = Standing(log)
    reader = standing.first(query.name)
    if reader is None or not is_shared(reader.stream):
        return Form((), query)
    operators = query.paths[0].stateless
    end = [operator.name for operator in operators].index(reader.name)
    rest = replace(query, graph=QueryGraph.straight(reader.stream, operators[end:]))
    hidden: list[Query] = []
    for name in standing.works(query.name):
        reader = standing.first(name)
        assert reader is not None, f"{name} is read, but reads nothing"
        begin = int(reader.state["skips"])
        own = [replace(each, name=f"{name}.{index + 1}") for index, each in enumerate(operators[begin:end])]
        graph = QueryGraph.straight(reader.stream, own)
        hidden.insert(0, Query(name, "", graph, start=query.start, hidden=True))
        end = begin
    return Form(tuple(hidden), rest)


def arrange(log: Log, queries: Sequence[Query], enabled: bool) -> None:
    """Brings the readers of queries to where they share work, or, where it is not enabled, back to their streams.

    Args:
        log: Of which nobody reads yet.
        queries: Those of one path whose text says exactly what they do.
        enabled: Whether to share.
    """
    if not enabled and not any(map(is_shared, log.streams())):
        return
    standing = Standing(log)
    places, busy = _places(log, standing, queries)
    at_rest = [query for query in queries if query.name in places and busy.isdisjoint(standing.works(query.name))]
    wanted: tuple[Query, ...] = tuple(at_rest)
    if enabled:
        shared = share(at_rest, apart={query.name: (*places[query.name], log.epoch) for query in at_rest})
        wanted = shared.queries
        places |= {name: places[served[0]] for name, served in shared.members.items()}
    moved = [query for query in wanted if is_shared(query.graph.streams[0]) or query.hidden
             or standing.works(query.name)]  # fmt: skip
    _move(log, standing, moved, {query.name: query for query in at_rest}, places)
    _clear(log, queries)


def leave(log: Log, query: str) -> None:
    """Brings the reader of a query that runs no more back to its stream, if it is at rest, and parks it there."""
    standing = Standing(log)
    reader, place = standing.first(query), standing.place(query)
    if reader is None or place is None or not is_shared(reader.stream):
        return
    for between in standing.queues(query):
        log.forget(between.stream)
    home = reader.state[HOME]
    log.replace_readers([reader.name], [(home, *place, {"fingerprint": reader.state["fingerprint"]})])
    log.park([home])


def forget_work(log: Log, work: str) -> None:
    """Forgets shared work that nobody reads."""
    standing = Standing(log)
    for between in standing.queues(work):
        log.forget(between.stream)
    reader = standing.first(work)
    if reader is not None:
        log.drop_reader(reader.name)
    log.forget(work)


def _places(log: Log, standing: Standing, queries: Iterable[Query]) -> tuple[dict[str, Place], set[str]]:
    """Where queries stand that are at rest or new, and the shared work that must stay because one is not.

    A query that changed starts anew, so it is in neither.
    """
    places: dict[str, Place] = {}
    busy: set[str] = set()
    for query in queries:
        reader = standing.first(query.name)
        if reader is None:
            stream = query.graph.streams[0]
            places[query.name] = stream, log.oldest(stream) if query.start == "earliest" else log.end(stream)
        elif reader.state.get("fingerprint") == fingerprint(query):
            place = standing.place(query.name)
            if place is None:
                busy.update(standing.works(query.name))
            else:
                places[query.name] = place
    return places, busy


def _move(
    log: Log,
    standing: Standing,
    moved: Sequence[Query],
    originals: Mapping[str, Query],
    places: Mapping[str, Place],
) -> None:
    """Sets the readers of queries and of new shared work anew, all in one transaction."""
    depth: dict[str, int] = {}
    gone: list[str] = []
    parked: list[str] = []
    come: list[tuple[str, str, int, dict[str, Any]]] = []
    for query in moved:
        stream, operators = query.graph.streams[0], query.paths[0].stateless
        state: dict[str, Any] = {"skips": depth.get(stream, 0)}
        if query.hidden:
            depth[query.name] = depth.get(stream, 0) + len(operators)
            log.declare(query.name, QUEUE)
        else:
            for between in standing.queues(query.name):
                log.forget(between.stream)
            reader = standing.first(query.name)
            gone += [] if reader is None else [reader.name]
            parked += [operators[0].name] if reader is not None and reader.parked else []
            original = originals[query.name]
            state = {"fingerprint": fingerprint(original), HOME: original.paths[0].stateless[0].name}
            state |= {"fresh": True} if reader is None else {}
        come.append((operators[0].name, stream, 0 if is_shared(stream) else places[query.name][1], state))
    log.replace_readers(gone, come)
    log.park(parked)  # they are back, but not at work yet


def _clear(log: Log, queries: Iterable[Query]) -> None:
    """Forgets shared work that nobody reads, and sends that out which only absent queries read."""
    present = {query.name for query in queries}
    for name in Standing(log).served() - present:
        leave(log, name)
    while True:
        readers = log.readers()
        works = [stream for stream in log.streams() if is_shared(stream) and "." not in stream]
        unread = set(works) - {reader.stream for reader in readers.values()}
        if not unread:
            break
        for work in unread:
            forget_work(log, work)
    standing = Standing(log)
    used = {work for name in present for work in standing.works(name)}
    firsts = [standing.first(work) for work in works if work not in used]
    log.park([reader.name for reader in firsts if reader is not None and not reader.parked])
