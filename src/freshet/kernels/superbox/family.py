"""Which chains go through the same filters to sliding aggregates that can share panes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freshet.kernels.superbox.chain import ChainOutput
from freshet.kernels.superbox.pipeline import head
from freshet.model import ARRIVAL, Filter, Operator, Panes, Project

Operators = Sequence[Operator]


@dataclass(frozen=True, slots=True)
class Family:
    """Chains that are alike up to a sliding aggregate, but for the order of filters and the columns they project.

    Args:
        members: Numbers of the chains.
        names: For each of them its columns, and how they are called where all of them are computed together.
        chains: First the one that computes all columns. Then those that tell how many tuples each filter lets through
            where filters stand in another order.
        counted: For each member, which of these tells that.
    """

    members: tuple[int, ...]
    names: Mapping[int, Mapping[str, str]]
    chains: tuple[tuple[Filter | Project, ...], ...]
    counted: Mapping[int, int]

    def output(self, number: int, outputs: Sequence[ChainOutput]) -> ChainOutput:
        """A member's output, from those of the chains; what was done for several is charged to each in part."""
        together, own = outputs[0], outputs[self.counted[number]]
        names = self.names[number]
        arrays = [together.batch.column(name) for name in names.values()]
        batch = pa.RecordBatch.from_arrays([*arrays, together.batch.column(ARRIVAL)], names=[*names, ARRIVAL])
        alike = sum(place == self.counted[number] for place in self.counted.values())
        filters = [nanos // alike for nanos in own.nanos[:-1]]
        return ChainOutput(batch, own.passed, (*filters, together.nanos[-1] // len(self.members)))


def families(chains: Sequence[Operators]) -> list[Family]:
    """The families of two and more.

    >>> from freshet.model.operators import Lifetime
    >>> def chain(*filters, key="k"):
    ...     columns = Project("i", (("ts", "ts"), ("k", key)))
    ...     return (*(Filter("f", each) for each in filters), columns, Panes("p", Lifetime("ts", 9), 3, ("k",)))
    >>> [found] = families([chain("a > 1", "b"), chain("b", "a > 1"), chain("b"), chain("b", "a > 1", key="j")])
    >>> found.members, found.counted
    ((0, 1), {0: 0, 1: 1})
    """
    alike: dict[object, list[int]] = {}
    for number, operators in enumerate(chains):
        kind = _kind(operators)
        if kind is not None:
            alike.setdefault(kind, []).append(number)
    return [_family(chains, members) for members in alike.values() if len(members) > 1]


def _kind(operators: Operators) -> object:
    """Equal for chains that can share panes; None where a chain cannot."""
    before = head(operators)
    panes = operators[len(before)] if len(before) < len(operators) else None
    if not before or not isinstance(before[-1], Project) or not isinstance(panes, Panes):
        return None
    if panes.validity.size is None:
        return None
    columns = dict(before[-1].columns)
    time = panes.validity.time
    keys = tuple(sorted(columns[key] for key in panes.keys))
    return _normal(before[:-1]), None if time is None else columns.get(time, time), keys


def _normal(operators: Sequence[Filter | Project]) -> tuple[object, ...]:
    """What operators do: filters that follow each other may change places."""
    found: list[object] = []
    filters: set[str] = set()
    for operator in operators:
        if isinstance(operator, Filter):
            filters.add(operator.predicate)
        else:
            found += [frozenset(filters), operator.columns]
            filters = set()
    return (*found, frozenset(filters))


def _family(chains: Sequence[Operators], members: Sequence[int]) -> Family:
    heads = {number: head(chains[number]) for number in members}
    called: dict[str, str] = {}
    names = {}
    for number, before in heads.items():
        project = before[-1]
        assert isinstance(project, Project)
        names[number] = {name: called.setdefault(text, f"c{len(called)}") for name, text in project.columns}
    common = Project("common", tuple((name, text) for text, name in called.items()))
    orders = {tuple(_work(each) for each in before[:-1]): before[:-1] for before in heads.values()}
    places = {order: place for place, order in enumerate(orders)}
    counting = [(*before, common if place == 0 else _NOTHING) for place, before in enumerate(orders.values())]
    counted = {number: places[tuple(_work(each) for each in before[:-1])] for number, before in heads.items()}
    return Family(tuple(members), names, tuple(counting), counted)


def _work(operator: Filter | Project) -> object:
    return operator.predicate if isinstance(operator, Filter) else operator.columns


_NOTHING = Project("nothing", ())
