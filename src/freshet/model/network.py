"""The network: all operators of all queries of an application, numbered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from freshet.model.errors import UserError
from freshet.model.operators import Fold, Operator, Side
from freshet.model.query import Query


@dataclass(frozen=True, slots=True)
class Node:
    """An operator in its place. A query of several paths has a node for each path that passes an operator.

    Args:
        number: Place in :attr:`Network.nodes`; plans name operators by it.
        name: Unique and stable over restarts: the name of its reader's cursor.
        query: Its query.
        operator: What it does.
        path: Numbers of all nodes of its path.
        reads: Stream that its queue is a range of: a stream, a query's output or an intermediate queue.
        writes: Stream that a chain ending here appends to.
    """

    number: int
    name: str
    query: str
    operator: Operator
    path: tuple[int, ...]
    reads: str
    writes: str

    @property
    def is_first(self) -> bool:
        """Whether it reads the path's stream itself rather than an intermediate queue."""
        return self.path[0] == self.number

    @property
    def is_last(self) -> bool:
        """Whether it writes the query's output rather than an intermediate queue."""
        return self.path[-1] == self.number


class Network:
    """Numbers the operators of queries; numbers are never used again, so a dropped query leaves its nodes behind.

    >>> from freshet.model import Filter, Project, Query, QueryGraph
    >>> graph = QueryGraph(
    ...     {"q.filter_1": Filter("q.filter_1", "v > 1"), "q.project": Project("q.project", (("v", "v"),))},
    ...     {"q.filter_1": ("s",), "q.project": ("q.filter_1",)}, "q.project")
    >>> network = Network()
    >>> network.add(Query("q", "SELECT v FROM s WHERE v > 1", graph))
    ((0, 1),)
    >>> [(node.name, node.reads, node.writes) for node in network.nodes]
    [('q.filter_1', 's', 'q.project'), ('q.project', 'q.project', 'q')]
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._paths: dict[str, tuple[tuple[int, ...], ...]] = {}
        self._ports: dict[str, tuple[int, ...]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __contains__(self, query: str) -> bool:
        return query in self._paths

    def add(self, query: Query) -> tuple[tuple[int, ...], ...]:
        """Numbers the operators of a query; returns the numbers of each of its paths."""
        if query.name in self._paths:
            raise UserError(f"query {query.name} is there already")
        paths = query.paths
        numbered = []
        for index, path in enumerate(paths):
            first = len(self.nodes)
            numbers = tuple(range(first, first + len(path.operators)))
            # A name tells the path only where there are several, so that it stays readable.
            names = [op.name if len(paths) == 1 else f"{op.name}@{index + 1}" for op in path.operators]
            reads = [path.stream, *names[1:]]
            writes = [*names[1:], query.name]
            self.nodes += [
                Node(number, name, query.name, operator, numbers, source, target)
                for number, name, operator, source, target in zip(
                    numbers, names, path.operators, reads, writes, strict=True
                )
            ]
            numbered.append(numbers)
        self._paths[query.name] = tuple(numbered)
        self._ports |= self._ports_of(numbered)
        return self._paths[query.name]

    def paths(self, query: str) -> tuple[tuple[int, ...], ...]:
        """The numbers of each path of a query."""
        return self._paths[query]

    def ports(self, fold: str) -> tuple[int, ...]:
        """The numbers of the nodes that are a fold's inputs: those of a join's left side first, else in path order.

        A side of a join has one for each path that leads to it: two, where it reads a join itself.
        """
        return self._ports[fold]

    def drop(self, query: str) -> tuple[tuple[int, ...], ...]:
        """Forgets a query; returns the numbers of its paths."""
        paths = self._paths.pop(query)
        for fold in self._ports_of(paths):
            del self._ports[fold]
        return paths

    def _ports_of(self, paths: Iterable[tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[tuple[int, int]]] = {}
        for number in (number for path in paths for number in path):
            operator = self.nodes[number].operator
            if isinstance(operator, Fold):
                side = operator.port if isinstance(operator, Side) else 0
                found.setdefault(operator.fold, []).append((side, number))
        return {fold: tuple(number for _, number in sorted(each)) for fold, each in found.items()}
