"""What an operator does, together with all that it reads: queries with equal work can do it once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from freshet.model import Query
from freshet.model.operators.codec import fields_of


@dataclass(frozen=True, slots=True)
class WorkKey:
    """An operator of a query with all that it reads.

    Args:
        content: What it does. It is the same in all queries and after every restart.
        place: What it does and where it is. Only queries with equal places share.
        reads: Places of the works that it reads.
    """

    content: str
    place: str
    reads: tuple[str, ...]


def works_of(query: Query, marks: Mapping[str, Hashable]) -> dict[str, WorkKey]:
    """The works of a query by the operator that they end with, each after those that it reads.

    Args:
        query: The query, as it is without sharing.
        marks: Marks of operators, by name, such as where they are: different marks keep equal work apart.

    >>> from freshet.sql import build_query
    >>> from freshet.model import parse_schema
    >>> schemas = {"s": parse_schema("v int")}
    >>> [one, two] = [build_query(name, "SELECT v FROM s WHERE v > 1", schemas) for name in ("one", "two")]
    >>> works_of(one, {})["one.project"] == works_of(two, {})["two.project"]
    True
    >>> works_of(one, {"one.filter_1": 7})["one.project"] == works_of(two, {})["two.project"]
    False
    """
    graph = query.graph
    found: dict[str, WorkKey] = {}
    times: Counter[str] = Counter()
    for name in graph.order:
        does = json.dumps(fields_of(graph.operators[name].called("")), sort_keys=True)
        sources = graph.inputs[name]
        content = _hash(does, [found[each].content if each in found else (each, query.start) for each in sources])
        place = _hash(content, marks.get(name), [found[each].place for each in sources if each in found])
        # A query may do the same work twice. Each counts as a work of its own, so that the graph keeps its shape.
        times[place] += 1
        again = times[place]
        reads = tuple(found[each].place for each in sources if each in found)
        found[name] = (
            WorkKey(_hash(content, again), _hash(place, again), reads) if again > 1 else WorkKey(content, place, reads)
        )
    return found


def _hash(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass(slots=True)
class Group:
    """A work and the queries that have it at the same place.

    Args:
        work: The work.
        names_now: Names of the shared operators that do it now, the most common one first.
        operators: For each query, its own operator that does the work.
        readers: For each query, its own operators that read that operator.
    """

    work: WorkKey
    names_now: Sequence[str] = ()
    operators: dict[str, str] = field(default_factory=dict)
    readers: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_shared_now(self) -> bool:
        """Whether a shared operator already does it."""
        return bool(self.names_now)


def groups_of(
    queries: Sequence[Query], works: Mapping[str, Mapping[str, WorkKey]], names_now: Mapping[str, str]
) -> dict[str, Group]:
    """All works by place, each after those that it reads.

    Args:
        queries: The queries.
        works: Their works, by query and operator.
        names_now: The shared operators that stand for operators of queries now.
    """
    groups: dict[str, Group] = {}
    for query in queries:
        for name, work in works[query.name].items():
            group = groups.setdefault(work.place, Group(work))
            group.operators[query.name] = name
            group.readers[query.name] = [each for each, sources in query.graph.inputs.items() if name in sources]
    for group in groups.values():
        named = Counter(names_now[name] for name in group.operators.values() if name in names_now)
        group.names_now = [name for name, _ in named.most_common()]
    return groups
