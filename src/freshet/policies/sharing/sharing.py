"""Which works queries share, what these works are called, and the forms in which the queries then run."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final, Literal

from freshet.model import Operator, Query, QueryGraph
from freshet.policies.sharing.work import Group, groups_of, works_of
from freshet.policies.sharing.worth import OperatorFigures, Worth

_PREFIX: Final = "shared:"
"""The beginning of the names of shared operators."""
Mode = Literal["never", "auto", "always"]
"""When to share: never, if it is expected to save time, or always."""


def shared_by(queries: Sequence[Query]) -> dict[str, tuple[str, ...]]:
    """For each shared operator, by name, the queries that have it; each operator comes after those that it reads."""
    found: dict[str, tuple[str, ...]] = {}
    for query in queries:
        for name in filter(query.graph.shared.__contains__, query.graph.order):
            found[name] = (*found.get(name, ()), query.name)
    return found


def why_never(query: Query) -> str | None:
    """Why a query can never share, whatever the others do; None: it may share."""
    if query.promises.period is not None:
        return "it has a PERIOD"
    if "thin" in query.promises.overload:
        return "it may be thinned, at edges of its own"
    # A failure must not hit a neighbour.
    return 'its on_error is "fail"' if query.on_error == "fail" else None


class Sharing:
    """What queries share.

    Args:
        queries: All queries, as they are without sharing.
        mode: ``always`` shares whatever can be shared, ``auto`` what is expected to save time, ``never`` nothing.
        costs: Measured figures, by the name of the operator in its query or of the shared operator; None: nothing was
            measured, and ``auto`` shares nothing.
        current: Graphs that run now, by query. What they share keeps its name, and ``auto`` goes on sharing it until
            that is clearly worse.
        marks: Marks of operators, by their names in the queries. Operators that do the same work share it only if their
            marks are equal, for example because they are at the same tuple.
        taken: Names that other queries use.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        mode: Mode = "always",
        *,
        costs: Mapping[str, OperatorFigures] | None = None,
        current: Mapping[str, QueryGraph] | None = None,
        marks: Mapping[str, Hashable] | None = None,
        taken: Collection[str] = (),
    ) -> None:
        self.queries, self.mode, self.costs = queries, mode, costs
        graphs = [(query.graph, (current or {}).get(query.name, query.graph)) for query in queries]
        now = {own: name for graph, form in graphs for own, name in _pairs(graph, form) if name in form.shared}
        self._operators_now = {name: form.operators[name] for _, form in graphs for name in form.shared}
        self.works = {query.name: works_of(query, marks or {}) if why_never(query) is None else {} for query in queries}
        groups = groups_of(queries, self.works, now)
        self.groups = {place: group for place, group in groups.items() if len(group.operators) > 1}
        self.names = self._named({*taken, *self._operators_now})
        self.worth = Worth(
            self.groups,
            {name: work.place for works in self.works.values() for name, work in works.items()},
            self.names,
            costs or {},
        )
        self.chosen = self._choose()

    def _choose(self) -> set[str]:
        if self.mode == "never" or (self.mode == "auto" and self.costs is None):
            return set()
        return set(self.groups) if self.mode == "always" else self.worth.chosen()

    def _named(self, taken: set[str]) -> dict[str, str]:
        """The name of each work, by place: the name that it has now, else one made from what it does."""
        names: dict[str, str] = {}
        given: set[str] = set()
        for place, group in self.groups.items():
            kept = (name for name in group.names_now if name not in given)
            names[place] = next(kept, "") or next(name for name in _candidates(group) if name not in taken | given)
            given.add(names[place])
        return names

    def form(self, query: Query, chosen: Collection[str] | None = None) -> Query:
        """A query with shared operators in place of its own; if given, only the ``chosen`` works are shared."""
        works = self.works[query.name]
        places = self.chosen if chosen is None else chosen
        names = {own: self.names[work.place] for own, work in works.items() if work.place in places}
        if not names:
            return query
        graph = query.graph
        operators = [self._operator(names[own], own) if own in names else each for own, each in graph.operators.items()]
        inputs = {
            names.get(own, own): tuple(names.get(each, each) for each in sources)
            for own, sources in graph.inputs.items()
        }
        by_name = {operator.name: operator for operator in operators}
        root = names.get(graph.root, graph.root)
        return replace(query, graph=QueryGraph(by_name, inputs, root, frozenset(names.values())))

    def _operator(self, name: str, own: str) -> Operator:
        """A shared operator: the one that runs now, else that of the first of its queries."""
        if name not in self._operators_now:
            place = self.worth.places[own]
            query, first = next(iter(self.groups[place].operators.items()))
            [graph] = [each.graph for each in self.queries if each.name == query]
            self._operators_now[name] = graph.operators[first].called(name)
        return self._operators_now[name]

    def joining(self, query: Query) -> Query:
        """The form of a new query while the others stay as they are: it shares what they already share."""
        live = [place for place in self.chosen if self.groups[place].is_shared_now]
        return self.form(query, live)


def _pairs(own: QueryGraph, form: QueryGraph) -> Iterator[tuple[str, str]]:
    """The corresponding operators of two forms of a query: both forms have the same shape."""
    return zip(own.from_output, form.from_output, strict=True)


def _candidates(group: Group) -> Iterator[str]:
    yield _PREFIX + group.work.content[:12]
    yield from (f"{_PREFIX}{group.work.content[:12]}-{number}" for number in count(2))


def share(
    queries: Sequence[Query],
    mode: Mode = "always",
    *,
    costs: Mapping[str, OperatorFigures] | None = None,
    current: Mapping[str, QueryGraph] | None = None,
    marks: Mapping[str, Hashable] | None = None,
    taken: Collection[str] = (),
) -> tuple[Query, ...]:
    """The forms of queries in which common work runs once; see :class:`Sharing`.

    >>> from freshet.sql import build_query
    >>> from freshet.model import parse_schema
    >>> schemas = {"s": parse_schema("k int, v double")}
    >>> texts = {"a": "SELECT k FROM s WHERE v > 1 AND k = 2", "b": "SELECT v FROM s WHERE v>1", "c": "SELECT v FROM s"}
    >>> queries = [build_query(name, text, schemas) for name, text in texts.items()]
    >>> [[name[:10] for name in query.graph.order] for query in share(queries)]
    [['shared:40e', 'a.filter_2', 'a.project'], ['shared:40e', 'b.project'], ['c.project']]
    """
    sharing = Sharing(queries, mode, costs=costs, current=current, marks=marks, taken=taken)
    return tuple(map(sharing.form, queries))
