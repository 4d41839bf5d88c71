"""Overlapping queries: operators that several queries begin with run once for all of them (CAR §6.3.1-6.3.2).

Such operators get one name, which goes by what they do, in the graph of each of these queries. So the network has one
node for them, and the queries read it. Tuples keep their arrival, so latencies and ``now()`` are the same, and so are
the answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from typing import Final, Literal, NamedTuple

import sqlglot

from freshet.model import Filter, Operator, Project, Query, QueryGraph

_PREFIX: Final = "shared:"
"""Names of shared operators begin so."""
Mode = Literal["never", "auto", "always"]
"""When to share: where it is expected to save time, or regardless."""
_QUEUED: Final = 1e-6
"""Seconds that it takes to write a tuple to a queue and to read it there."""
_ENTER: Final = 1.5
_STAY: Final = 0.67
"""What queues count for where work is not shared yet, and where it is: a saving near nothing must not switch it on and
off again."""
_LEAST: Final = 1e-3
"""Seconds per second that sharing must be expected to save before it begins."""

Key = tuple[str, ...]
"""What an operator does, normalised: equal keys are the same work."""
Prefix = tuple[str, str, Hashable, tuple[Key, ...]]
"""Stream, start, what keeps queries apart, and what the operators up to a place do."""


class OperatorFigures(NamedTuple):
    """What was measured of an operator.

    Args:
        cost: Seconds per tuple.
        selectivity: Tuples out per tuple in.
        rate: Tuples in per second.
    """

    cost: float
    selectivity: float
    rate: float


_NOTHING_KNOWN: Final = OperatorFigures(0.0, 0.0, 0.0)
"""Of an operator that nobody measured: nothing speaks for a change."""


def shared_by(queries: Sequence[Query]) -> dict[str, tuple[str, ...]]:
    """The queries that have each shared operator, by its name; each operator after those that it reads."""
    found: dict[str, tuple[str, ...]] = {}
    for query in queries:
        for name in filter(query.graph.shared.__contains__, query.graph.order):
            found[name] = (*found.get(name, ()), query.name)
    return found


def share(
    queries: Sequence[Query],
    mode: Mode = "always",
    *,
    costs: Mapping[str, OperatorFigures] | None = None,
    shared_now: Collection[str] = (),
    apart: Mapping[str, Hashable] | None = None,
) -> tuple[Query, ...]:
    """Has the operators that queries begin with in common run once.

    Only straight queries take part (one path, no PERIOD), and only those whose errors give NULL: a failure must not hit
    a neighbour. The last operator always stays with its query.

    Args:
        queries: All queries, as they are without sharing.
        mode: ``always``: whatever can be shared. ``auto``: what is expected to save time: what the common operators
            cost, times the queries that need not do it again, less the queues to all readers but one. ``never``.
        costs: What was measured, by the name of the operator in its query, or by that of the shared one; None: nothing
            was, and then ``auto`` shares nothing.
        shared_now: Names of the operators that are shared now; they stay so until it is clearly worse.
        apart: Queries of different values here do not share (they stand at different tuples, say); the values are in
            the names of the shared operators.

    >>> from freshet.sql import build_query
    >>> from freshet.model import parse_schema
    >>> schemas = {"s": parse_schema("k int, v double")}
    >>> texts = {"a": "SELECT k FROM s WHERE v > 1 AND k = 2", "b": "SELECT v FROM s WHERE v>1", "c": "SELECT v FROM s"}
    >>> queries = [build_query(name, text, schemas) for name, text in texts.items()]
    >>> [[name[:10] for name in query.graph.order] for query in share(queries)]
    [['shared:be7', 'a.filter_2', 'a.project'], ['shared:be7', 'b.project'], ['c.project']]
    """
    if mode == "never" or (mode == "auto" and costs is None):
        return tuple(queries)
    begins = {query.name: _begins(query, (apart or {}).get(query.name)) for query in queries}
    tree = _Tree(queries, begins)
    chosen = tree.all() if mode == "always" else tree.worth(_Weighing(costs or {}, frozenset(shared_now)))
    return tuple(_renamed(query, takewhile(chosen.__contains__, begins[query.name])) for query in queries)


def _begins(query: Query, reason: Hashable) -> list[Prefix]:
    """What a query begins with, from its first operator to all but the last; none where it cannot share."""
    graph = query.graph
    if not graph.is_straight or query.promises.period is not None or query.on_error == "fail":
        return []
    keys = tuple(_key(graph.operators[name]) for name in graph.order)
    return [(graph.streams[0], query.start, reason, keys[:length]) for length in range(1, len(keys))]


def _key(operator: Operator) -> Key:
    if isinstance(operator, Filter):
        return ("filter", _normal(operator.predicate))
    assert isinstance(operator, Project), "a straight query has filters and projections only"
    return ("project", *(part for name, text in operator.columns for part in (name, _normal(text))))


def _normal(text: str) -> str:
    """Expressions of the same meaning but for spaces, letter case of keywords and needless quotes are one."""
    return sqlglot.parse_one(text, dialect="spark").sql(dialect="spark", comments=False)


def _name(prefix: Prefix) -> str:
    """A name that says what an operator and those in front of it do, so that it is the same after a restart."""
    stream, start, reason, keys = prefix
    return _PREFIX + sha256(repr((stream, start, list(keys), reason)).encode()).hexdigest()[:12]


def _operator(prefix: Prefix) -> Operator:
    """The last operator of a beginning, the same whichever query it was found in."""
    kind, *parts = prefix[3][-1]
    if kind == "filter":
        return Filter(_name(prefix), parts[0])
    return Project(_name(prefix), tuple(zip(parts[::2], parts[1::2], strict=True)))


def _renamed(query: Query, prefixes: Iterable[Prefix]) -> Query:
    """The query with shared operators in the place of its own first ones."""
    common = [_operator(prefix) for prefix in prefixes]
    if not common:
        return query
    own = [query.graph.operators[name] for name in query.graph.order[len(common) :]]
    return replace(query, graph=QueryGraph.straight(query.graph.streams[0], [*common, *own], shared=len(common)))


@dataclass(frozen=True, slots=True)
class _Weighing:
    """What is known of the operators, and which of them are shared now."""

    costs: Mapping[str, OperatorFigures]
    now: Collection[str]

    def figures(self, prefix: Prefix, names: Collection[str]) -> OperatorFigures | None:
        """Those of a shared operator, from what was measured of it or of those that it stands for."""
        found = [self.costs[name] for name in (_name(prefix), *names) if name in self.costs]
        if not found:
            return None
        cost, selectivity = (sum(each[place] for each in found) / len(found) for place in (0, 1))
        return OperatorFigures(cost, selectivity, max(each.rate for each in found))


class _Tree:
    """The beginnings of queries as a tree: each with the operators that it stands for, and how it goes on."""

    def __init__(self, queries: Sequence[Query], begins: Mapping[str, Sequence[Prefix]]) -> None:
        self._members: dict[Prefix, list[str]] = defaultdict(list)
        self._longer: dict[Prefix | None, dict[Prefix, None]] = defaultdict(dict)
        for query in queries:
            before: Prefix | None = None
            for prefix, name in zip(begins[query.name], query.graph.order, strict=False):
                self._members[prefix].append(name)
                self._longer[before].setdefault(prefix)
                before = prefix

    def all(self) -> set[Prefix]:
        """The beginnings that several queries have."""
        return {prefix for prefix, names in self._members.items() if len(names) > 1}

    def worth(self, weighing: _Weighing) -> set[Prefix]:
        """Those of them that are expected to save time."""
        chosen: set[Prefix] = set()
        for first in self._longer[None]:
            saved, shared = self._saved(first, weighing)
            if saved >= (0.0 if _name(first) in weighing.now else _LEAST):
                chosen |= shared
        return chosen

    def _saved(self, prefix: Prefix, weighing: _Weighing) -> tuple[float, set[Prefix]]:
        """Seconds per second that it saves to share a beginning where all in front of it is shared, with those longer
        ones that are to be shared then."""
        names, is_shared_now = self._members[prefix], _name(prefix) in weighing.now
        known = weighing.figures(prefix, names) or (_NOTHING_KNOWN if is_shared_now else None)
        if len(names) < 2 or known is None:
            return 0.0, set()
        queue = known.rate * known.selectivity * _QUEUED * (_STAY if is_shared_now else _ENTER)
        saved = (known.rate * known.cost - queue) * (len(names) - 1)
        shared = {prefix}
        for longer in self._longer[prefix]:
            # What goes on together needs one queue.
            more, others = self._saved(longer, weighing)
            more += queue * (len(self._members[longer]) - 1)
            if others and more >= 0.0:
                saved, shared = saved + more, shared | others
        return saved, shared
