"""How a query runs: the graph of its own operators, or one in which shared operators stand for some of them.

Both have the same shape. So the inputs of one correspond to those of the other, in the order in which they are found
from the output on. A query moves from one form to another with its cursors, what waits for it and what is known of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freshet.engine.queues import QUEUE
from freshet.log import Log, QueryRecord, ReaderState, Rearrangement
from freshet.model import QueryGraph, SegmentFile, state_stream
from freshet.model.network import edge_name
from freshet.model.operators import earliest
from freshet.model.operators.codec import fields_of, operator_of


@dataclass(frozen=True, slots=True)
class Input:
    """An input of an operator.

    Args:
        reader: Name of its cursor.
        stream: What it reads: a stream, an output, or the queue of the same name.
    """

    reader: str
    stream: str

    @property
    def is_queue(self) -> bool:
        """Whether it reads what another operator gives out."""
        return self.reader == self.stream


def input_of(graph: QueryGraph, name: str, port: int) -> Input:
    """An input of an operator of a graph."""
    sources = graph.inputs[name]
    reader, source = edge_name(name, port, len(sources)), sources[port]
    return Input(reader, reader if source in graph.operators else source)


def inputs_of(graph: QueryGraph) -> list[Input]:
    """All inputs of the operators of a graph, in an order that depends on its shape alone.

    >>> from freshet.model import Filter
    >>> graph = QueryGraph.straight("s", [Filter("q.filter_1", "v > 1"), Filter("q.filter_2", "v < 9")])
    >>> [(each.reader, each.stream) for each in inputs_of(graph)]
    [('q.filter_2', 'q.filter_2'), ('q.filter_1', 's')]
    """
    return [input_of(graph, name, port) for name in graph.from_output for port in range(len(graph.inputs[name]))]


def readers_of(log: Log, graph: QueryGraph) -> list[ReaderState]:
    """The readers that a log has of a graph: of the inputs of its operators, and of what these remember."""
    known = log.readers()
    names = [each.reader for each in inputs_of(graph)]
    for name, operator in graph.operators.items():
        number = 0
        while operator.remembers and state_stream(name, number) in known:
            names.append(state_stream(name, number))
            number += 1
    return [known[name] for name in names if name in known]


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
    """A change of readers that becomes true as a whole.

    Args:
        log: Of which nobody reads meanwhile.
        stays: Readers that others need.
    """

    def __init__(self, log: Log, stays: Collection[str] = ()) -> None:
        self._log, self._stays = log, set(stays)
        self._left: set[str] = set()
        self._readers = log.readers()
        self._gone: dict[str, None] = {}
        self._come: dict[str, ReaderState] = {}
        self._marks: list[tuple[str, int]] = []
        self._files: list[SegmentFile] = []
        self._queries: dict[str, QueryRecord | None] = {}

    def start(self, reader: ReaderState) -> None:
        """A reader comes; one of its name goes."""
        if reader.name in self._readers:
            self.drop(reader.name)
        self._come[reader.name] = reader

    def drop(self, reader: str) -> None:
        """A reader goes, and the queue that it alone reads."""
        if reader in self._readers:
            self._gone[reader] = None

    def know(self, query: str, record: QueryRecord | None) -> None:
        """What is known of a query from then on."""
        self._queries[query] = record

    def place(self, target: Input, sources: Sequence[ReaderState | None], like: ReaderState) -> None:
        """Gives an input what others have not read yet.

        Args:
            target: The input.
            sources: For a stream the reader whose cursor it takes over; for a queue those of the queues that come
                together in it, None for one that does not exist.
            like: A reader that is at work, quarantined or parked as it shall be.
        """
        if not target.is_queue:
            [source] = sources
            if source is not None:  # else it has never been at work, and begins where it is to begin
                self.start(ReaderState(target.reader, target.stream, source.next, like.needed, parked=like.parked))
            return
        waiting = [each for each in sources if each is not None and each.next < self._log.end(each.stream)]
        if waiting:
            at = self._copy(target.stream, waiting, whole=len(waiting) == len(sources))
            # What is in a queue is nowhere else: it is held even while the query is out.
            self.start(ReaderState(target.reader, target.stream, at, like.needed))

    def _copy(self, queue: str, sources: Sequence[ReaderState], whole: bool) -> int:
        """Has what waits in queues written to another one; returns where that begins."""
        log = self._log
        log.declare(queue, QUEUE, kind="queue")
        self._files += log.copied((log.train(each.stream, each.next, log.end(each.stream)) for each in sources), queue)
        mark = earliest([log.watermark(each.stream, each.next) for each in sources])
        # Tuples of a source of which nothing waits may still come, and nobody knows here from when they are.
        if whole and mark is not None:
            self._marks.append((queue, mark))
        return log.end(queue)

    def shift(self, old: QueryGraph, new: QueryGraph, like: ReaderState) -> None:
        """Brings a query from one form to another of the same shape; its readers shall be ``like`` that one."""
        for before, after in zip(inputs_of(old), inputs_of(new), strict=True):
            if before.reader != after.reader and after.reader not in self._stays:
                self.place(after, [self._readers.get(before.reader)], like)
            self._left.add(before.reader)
        self._stays |= {each.reader for each in inputs_of(new)} - self._come.keys()

    def commit(self) -> None:
        """Makes it true."""
        for name in self._left - self._stays - self._come.keys():
            self.drop(name)
        gone = [self._readers[name] for name in self._gone]
        left = {reader.stream for name, reader in self._readers.items() if name not in self._gone}
        left |= {reader.stream for reader in self._come.values()}
        unread = {reader.stream for reader in gone if self._log.kind(reader.stream) in ("queue", "state")} - left
        drop = tuple(reader.name for reader in gone if reader.stream not in unread)
        come, files = tuple(self._come.values()), tuple(file for file in self._files if file.members)
        self._log.rearrange(Rearrangement(tuple(unread), drop, come, tuple(self._marks), files, self._queries))
