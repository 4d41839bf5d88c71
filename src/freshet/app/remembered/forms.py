"""How a query runs: as the graph of its own operators, or as one in which shared operators stand for some of them.

Both forms have the same shape: their operators correspond one by one, in the order from the output on. When a query
moves from one form to another, its cursors, its queues, the states of its folds and its record move with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freshet.engine.queues import QUEUE, STATE
from freshet.log import Log, QueryRecord, ReaderState, Rearrangement
from freshet.model import QueryGraph, SegmentFile, state_stream
from freshet.model.network import edge_name
from freshet.model.operators import earliest
from freshet.model.operators.codec import fields_of, operator_of


@dataclass(frozen=True, slots=True)
class Input:
    """An input of an operator: the name of its cursor, and what that reads: a stream, an output, or the queue of the
    same name."""

    reader: str
    stream: str

    @property
    def is_queue(self) -> bool:
        """Whether it reads what another operator of the graph gives out."""
        return self.reader == self.stream


def inputs_of(graph: QueryGraph) -> list[Input]:
    """All inputs of the operators of a graph, in an order that depends only on its shape.

    >>> from freshet.model import Filter
    >>> graph = QueryGraph.straight("s", [Filter("q.filter_1", "v > 1"), Filter("q.filter_2", "v < 9")])
    >>> [(each.reader, each.stream) for each in inputs_of(graph)]
    [('q.filter_2', 'q.filter_2'), ('q.filter_1', 's')]
    """
    return [each for name in graph.from_output for each in ports_of(graph, name)]


def ports_of(graph: QueryGraph, name: str) -> list[Input]:
    """The inputs of one operator of a graph."""
    sources = graph.inputs[name]
    readers = [edge_name(name, port, len(sources)) for port in range(len(sources))]
    streams = [reader if source in graph.operators else source for reader, source in zip(readers, sources, strict=True)]
    return list(map(Input, readers, streams))


def states_of(readers: Iterable[str], fold: str) -> list[str]:
    """The state streams of a fold among the names of readers. A state that never had a row has none.

    >>> states_of(["q.panes", "q.panes.state_3", "q.panes.state", "q.panes_2.state"], "q.panes")
    ['q.panes.state', 'q.panes.state_3']
    """
    first = state_stream(fold, 0)
    return sorted(name for name in readers if name == first or name.startswith(f"{first}_"))


def readers_of(log: Log, graph: QueryGraph) -> list[ReaderState]:
    """The readers of a graph that a log knows: those of its inputs, and those of its operators' states."""
    known = log.readers()
    return [known[name] for operator in graph.from_output for name in _readers(known, graph, operator)]


def _readers(known: Mapping[str, ReaderState], graph: QueryGraph, name: str) -> list[str]:
    inputs = [each.reader for each in ports_of(graph, name) if each.reader in known]
    return [*inputs, *(states_of(known, name) if graph.operators[name].remembers else ())]


def stored(graph: QueryGraph) -> dict[str, Any]:
    """A graph as plain values."""
    operators = [fields_of(graph.operators[name]) for name in graph.from_output]
    inputs = {name: list(graph.inputs[name]) for name in graph.from_output}
    shared = {"shared": sorted(graph.shared)} if graph.shared else {}
    return {"operators": operators, "inputs": inputs, **shared}


def graph_of(values: Mapping[str, Any]) -> QueryGraph:
    """The graph of plain values.

    >>> from freshet.model import Filter
    >>> graph = QueryGraph.straight("s", [Filter("shared:1f", "v > 1"), Filter("q.filter_2", "v < 9")], shared=1)
    >>> graph_of(stored(graph)) == graph
    True
    """
    operators = [operator_of(fields) for fields in values["operators"]]
    inputs = {name: tuple(sources) for name, sources in values["inputs"].items()}
    by_name = {operator.name: operator for operator in operators}
    return QueryGraph(by_name, inputs, operators[0].name, frozenset(values.get("shared", ())))


class Move:
    """A change of readers that one transaction makes. Nobody may read the log meanwhile; operators in ``stays`` are
    left as they are, because others need them."""

    def __init__(self, log: Log, stays: Collection[str] = ()) -> None:
        self._log, self._stays = log, set(stays)
        self._left: dict[str, list[str]] = {}
        self._readers = log.readers()
        self._gone: dict[str, None] = {}
        self._come: dict[str, ReaderState] = {}
        self._marks: list[tuple[str, int]] = []
        self._files: list[SegmentFile] = []
        self._queries: dict[str, QueryRecord | None] = {}

    def start(self, reader: ReaderState) -> None:
        """Adds a reader, in the place of the one of its name."""
        self.drop(reader.name)
        self._come[reader.name] = reader

    def drop(self, reader: str) -> None:
        """Removes a reader, if it exists, and the queue that only it reads."""
        if reader in self._readers:
            self._gone[reader] = None

    def know(self, query: str, record: QueryRecord | None) -> None:
        """Replaces what is known of a query."""
        self._queries[query] = record

    def place(self, target: Input, sources: Sequence[ReaderState | None], like: ReaderState) -> None:
        """Gives an input what ``sources`` have not read yet: for a stream, the reader whose cursor it takes over; for a
        queue, the readers of the queues that come together in it, None for each that does not exist. The input will be
        at work, quarantined or parked ``like`` another reader."""
        if not target.is_queue:
            [source] = sources
            if source is not None:  # else it has never been at work, and begins where its query says
                self.start(ReaderState(target.reader, target.stream, source.next, like.needed, parked=like.parked))
            return
        waiting = [each for each in sources if each is not None and each.next < self._log.end(each.stream)]
        if waiting:
            at = self._copy(target.stream, waiting, whole=len(waiting) == len(sources))
            # A queue holds the only copy of its tuples: they are kept even while the query is out.
            self.start(ReaderState(target.reader, target.stream, at, like.needed))

    def _copy(self, queue: str, sources: Sequence[ReaderState], whole: bool) -> int:
        """Copies what waits in queues to another one; returns where the copy begins."""
        log = self._log
        log.declare(queue, QUEUE, kind="queue")
        self._files += log.copied((log.train(each.stream, each.next, log.end(each.stream)) for each in sources), queue)
        mark = earliest([log.watermark(each.stream, each.next) for each in sources])
        # If nothing waits in one of the queues, tuples may still come there, and their event times are unknown here.
        if whole and mark is not None:
            self._marks.append((queue, mark))
        return log.end(queue)

    def shift(self, old: QueryGraph, new: QueryGraph, like: ReaderState) -> None:
        """Brings a query from one form to another of the same shape; its readers will be ``like`` that one."""
        for before, after in zip(old.from_output, new.from_output, strict=True):
            if before != after:
                self._left[before] = _readers(self._readers, old, before)
                if after not in self._stays:
                    for source, target in zip(ports_of(old, before), ports_of(new, after), strict=True):
                        self.place(target, [self._readers.get(source.reader)], like)
                    if old.operators[before].remembers:
                        self._remember(before, after, like)
            self._stays.add(after)

    def _remember(self, before: str, after: str, like: ReaderState) -> None:
        """Makes a fold continue with the states and the event time of another one."""
        log = self._log
        for name in states_of(self._readers, before):
            state, low, end = after + name.removeprefix(before), self._readers[name].next, log.end(name)
            log.declare(state, STATE, kind="state")
            self._files += log.copied([log.train(name, low, end)], state)
            if (mark := log.watermark(name, end)) is not None:
                self._marks.append((state, mark))
            self.start(ReaderState(state, state, log.end(state), like.needed, kind="state"))

    def commit(self) -> None:
        """Makes the change."""
        for operator, readers in self._left.items():
            for name in readers if operator not in self._stays else ():
                self.drop(name)
        gone = [self._readers[name] for name in self._gone]
        left = {reader.stream for name, reader in self._readers.items() if name not in self._gone}
        left |= {reader.stream for reader in self._come.values()}
        unread = {reader.stream for reader in gone if self._log.kind(reader.stream) in ("queue", "state")} - left
        drop = tuple(reader.name for reader in gone if reader.stream not in unread)
        come, files = tuple(self._come.values()), tuple(file for file in self._files if file.members)
        self._log.rearrange(Rearrangement(tuple(unread), drop, come, tuple(self._marks), files, self._queries))
