"""Finds chains with the same filters and with sliding aggregates that can share panes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freshet.kernels.superbox.chain import ChainOutput
from freshet.kernels.superbox.pipeline import head
from freshet.model import ARRIVAL, Operator, Panes, Project

Operators = tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """Chains that are alike up to a sliding aggregate, except for the order of filters and the projected columns.

    Args:
        members: Numbers of the chains.
        panes: Their sliding aggregates.
        names: For each chain the names of its columns, with their names in the common projection.
        chains: First the chain that computes all columns. Then one for each other order of the filters, which counts
            how many tuples each filter lets through.
        counted: For each member, the number of the chain that has these counts.
    """

    members: tuple[int, ...]
    panes: tuple[Panes, ...]
    names: Mapping[int, Mapping[str, str]]
    chains: tuple[Operators, ...]
    counted: Mapping[int, int]

    @property
    def keys(self) -> tuple[str, ...]:
        """The expressions by which all its aggregates are grouped."""
        names, texts = self.names[self.members[0]], dict(self.chains[0][-1].makes or ())
        return tuple(texts[names[key]] for key in self.panes[0].keys)

    def output(self, number: int, outputs: Sequence[ChainOutput]) -> ChainOutput:
        """A member's output, from the outputs of the chains; the time of common work is divided among the members."""
        together, own = outputs[0], outputs[self.counted[number]]
        names = self.names[number]
        arrays = [together.batch.column(name) for name in names.values()]
        batch = pa.RecordBatch.from_arrays([*arrays, together.batch.column(ARRIVAL)], names=[*names, ARRIVAL])
        alike = sum(place == self.counted[number] for place in self.counted.values())
        filters = [nanos // alike for nanos in own.nanos[:-1]]
        return ChainOutput(batch, own.passed, (*filters, together.nanos[-1] // len(self.members)))


def families(chains: Sequence[Operators]) -> list[Family]:
    """The families with at least two members.

    >>> from freshet.model.operators import Filter, Lifetime
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
    """Equal for chains that can share panes; None if a chain cannot share."""
    panes = _panes(operators)
    if panes is None:
        return None
    *before, project = head(operators)
    columns = dict(project.makes or ())
    time = panes.validity.time
    keys = tuple(sorted(columns[key] for key in panes.keys))
    return _normal(before), None if time is None else columns.get(time, time), keys


def _panes(operators: Operators) -> Panes | None:
    """The first sliding aggregate of a chain, if others can use the same panes."""
    before = head(operators)
    panes = operators[len(before)] if before and len(before) < len(operators) else None
    if not isinstance(panes, Panes) or panes.validity.size is None or before[-1].makes is None:
        return None
    return panes


def _normal(operators: Sequence[Operator]) -> tuple[object, ...]:
    """What operators do, where the order of consecutive filters does not matter."""
    found: list[object] = []
    filters: set[str] = set()
    for operator in operators:
        if operator.keeps is not None:
            filters.add(operator.keeps)
        else:
            found += [frozenset(filters), operator.makes]
            filters = set()
    return (*found, frozenset(filters))


def _family(chains: Sequence[Operators], members: Sequence[int]) -> Family:
    heads = {number: head(chains[number]) for number in members}
    called: dict[str, str] = {}
    names = {}
    for number, before in heads.items():
        columns = before[-1].makes or ()
        names[number] = {name: called.setdefault(text, f"c{len(called)}") for name, text in columns}
    common = Project("common", tuple((name, text) for text, name in called.items()))
    orders = {tuple(_work(each) for each in before[:-1]): before[:-1] for before in heads.values()}
    places = {order: place for place, order in enumerate(orders)}
    counting = [(*before, common if place == 0 else _NOTHING) for place, before in enumerate(orders.values())]
    counted = {number: places[tuple(_work(each) for each in before[:-1])] for number, before in heads.items()}
    panes = tuple(each for number in members if (each := _panes(chains[number])) is not None)
    return Family(tuple(members), panes, names, tuple(counting), counted)


def _work(operator: Operator) -> object:
    return operator.keeps, operator.makes


_NOTHING = Project("nothing", ())
