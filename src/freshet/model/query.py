"""Continuous queries and their graphs of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from freshet.model.curve import Curve
from freshet.model.errors import NotRunnable, UserError
from freshet.model.fold import Fold
from freshet.model.lookup import Lookup
from freshet.model.operator import Filter, Operator, Project, Union

PathOperator = Filter | Project | Lookup | Fold
"""What stands on a path."""


@dataclass(frozen=True, slots=True)
class Path:
    """One way of a tuple through a query: from a stream, through operators, to the query's output.

    Paths that meet in a fold (the two sides of a join, the members of a UNION under an aggregate) share its state.
    """

    query: str
    stream: str
    operators: tuple[PathOperator, ...]

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Its operators that remember, in order."""
        return tuple(operator for operator in self.operators if not isinstance(operator, Filter | Project | Lookup))

    @property
    def stateless(self) -> tuple[Filter | Project, ...]:
        """Its filters and projections up to the first other operator; all, where there is none."""
        plain: list[Filter | Project] = []
        for operator in self.operators:
            if not isinstance(operator, Filter | Project):
                break
            plain.append(operator)
        return tuple(plain)


@dataclass(frozen=True, slots=True)
class QueryGraph:
    """A tree of named operators. ``inputs`` maps an operator's name to the operators or streams it reads.

    >>> graph = QueryGraph(
    ...     operators={"q.filter_1": Filter("q.filter_1", "v > 1"), "q.project": Project("q.project", (("k", "k"),))},
    ...     inputs={"q.filter_1": ("s",), "q.project": ("q.filter_1",)},
    ...     root="q.project",
    ... )
    >>> graph.streams
    ('s',)
    >>> [operator.name for operator in graph.paths("q")[0].operators]
    ['q.filter_1', 'q.project']
    """

    operators: Mapping[str, Operator]
    inputs: Mapping[str, tuple[str, ...]]
    root: str
    tables: tuple[str, ...] = ()
    """Tables that it joins with; they stand in ``inputs`` as streams do."""

    @classmethod
    def straight(cls, stream: str, operators: Sequence[Filter | Project]) -> QueryGraph:
        """One path over one stream.

        >>> QueryGraph.straight("s", [Filter("q.filter_1", "v > 1"), Filter("q.filter_2", "v < 9")]).inputs
        {'q.filter_1': ('s',), 'q.filter_2': ('q.filter_1',)}
        """
        names = [operator.name for operator in operators]
        inputs = {name: (source,) for name, source in zip(names, [stream, *names[:-1]], strict=True)}
        return cls({operator.name: operator for operator in operators}, inputs, names[-1])

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams (or queries) that are read, tables apart, each once, in order of appearance."""
        names = (name for inputs in self.inputs.values() for name in inputs if name not in self.operators)
        return tuple(name for name in dict.fromkeys(names) if name not in self.tables)

    def paths(self, query: str) -> tuple[Path, ...]:
        """The paths of a query of filters, projections and unions; others need :attr:`Query.lowered`."""
        return tuple(Path(query, stream, operators) for stream, operators in self._paths_to(query, self.root))

    def _paths_to(self, query: str, node: str) -> list[tuple[str, tuple[Filter | Project, ...]]]:
        operator = self.operators.get(node)
        if operator is None:
            return [(node, ())]
        above = [path for name in self.inputs[node] for path in self._paths_to(query, name)]
        if isinstance(operator, Union):
            return above
        if not isinstance(operator, Filter | Project):
            kind = type(operator).__name__.lower()
            raise NotRunnable(f"query {query}: {kind} is parsed and checked, but not run by this version")
        return [(stream, (*operators, operator)) for stream, operators in above]


@dataclass(frozen=True, slots=True)
class Query:
    """A continuous query with what was promised to it.

    Args:
        name: Names the query and its output stream.
        text: The SQL as the user wrote it.
        graph: Its operators.
        weight: Importance in (0, 1] (FAS §4.4).
        start: Where a new query begins to read: ``earliest`` or ``latest``.
        on_error: ``null``: an evaluation error gives NULL and is counted; ``fail``: it quarantines the query.
        period: Seconds between releases of a periodic query (RT §2.2).
        deadline: Seconds after release by which an instance should be answered.
        curve: What its answers are worth by their latency (CAR §4.2); None: the same at any latency.
        hidden: Whether it is work that other queries share, which nobody reads for itself.
        lowered: Its paths, where its graph has windows, joins, aggregates or DISTINCT.
        event_time: Column of its output that carries event time.
        has_time: Whether a window over its output is possible: by ``event_time``, or by the arrival where that is None.
        order: Columns (lower case) of its output such that rows which are equal in all of them come in an order of the
            log, not of the schedule; none: all rows do. None: there is no such order.
        ends: Whether ``event_time`` is the end of a window for which the row stands: a window with a slide over the
            output takes such a row into the window that this end is in.
    """

    name: str
    text: str
    graph: QueryGraph
    weight: float = 1.0
    start: Literal["earliest", "latest"] = "earliest"
    on_error: Literal["null", "fail"] = "null"
    period: float | None = None
    deadline: float | None = None
    columns: tuple[str, ...] = field(default=())
    curve: Curve | None = None
    hidden: bool = False
    lowered: tuple[Path, ...] | None = None
    event_time: str | None = None
    has_time: bool = True
    order: tuple[str, ...] | None = ()
    ends: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.weight <= 1.0:
            raise UserError(f"query {self.name}: weight {self.weight} is outside (0, 1]")

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its runnable paths; raises :class:`NotRunnable` where a part is left to a later version."""
        if self.period is not None:
            raise NotRunnable(f"query {self.name}: PERIOD is parsed and checked, but not run by this version")
        return self.graph.paths(self.name) if self.lowered is None else self.lowered
