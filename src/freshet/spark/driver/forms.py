"""Which operators of a network run together, and in which form. No PySpark here: ``freshet explain`` asks, too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Literal

from freshet.kernels.parting import parted_at
from freshet.kernels.shuffling import why_never_shuffled
from freshet.model import Filter, Join, Network, Operator, Project

Form = Literal["vectorised", "catalyst", "shuffled"]
"""``shuffled``: a large join."""
Stage = tuple[Form, tuple[int, ...]]
"""Nodes that run in one form."""


WhyNot = Callable[[int, Filter | Project], str | None]
"""Why a filter or a projection is not compiled, from its number and what it does; None: it is."""


class Forms:
    """The forms of the operators of a network, which may grow: what is said of a node stays true.

    Args:
        network: The operators.
        why_not: Judges each of them.
    """

    def __init__(self, network: Network, why_not: WhyNot) -> None:
        self.network = network
        self._why_not = why_not
        self.why_not = cache(self._judge)
        self.folds = cache(self._folds)
        self.stages = cache(self._stages)

    def operators(self, numbers: Sequence[int]) -> tuple[Operator, ...]:
        """The operators of a chain."""
        return tuple([self.network.nodes[number].operator for number in numbers])

    def queries(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The queries that need a chain."""
        return self.network.queries(numbers[0])

    def _folds(self, numbers: tuple[int, ...]) -> tuple[str, ...]:
        """The folds that a chain goes through."""
        return tuple(each.name for each in self.operators(numbers) if each.remembers)

    def _judge(self, number: int) -> str | None:
        """Why a node is not compiled; None: it is, as all are that are neither filters nor projections."""
        operator = self.network.nodes[number].operator
        return self._why_not(number, operator) if isinstance(operator, Filter | Project) else None

    def _stages(self, numbers: tuple[int, ...]) -> tuple[Stage, ...]:
        """A chain, cut where its form changes: filters and projections in a row have one, and what is compiled goes
        together."""
        stages: list[Stage] = []
        place = 0
        while place < len(numbers):
            end = place + 1
            if self._is_stateless(numbers[place]):
                while end < len(numbers) and self._is_stateless(numbers[end]):
                    end += 1
            some = numbers[place:end]
            form = self.form(some)[0]
            if stages and stages[-1][0] == form == "vectorised":
                stages[-1] = (form, stages[-1][1] + some)
            else:
                stages.append((form, some))
            place = end
        return tuple(stages)

    def _is_stateless(self, number: int) -> bool:
        return isinstance(self.network.nodes[number].operator, Filter | Project)

    def form(self, numbers: Sequence[int]) -> tuple[Form, str]:
        """The physical form of a chain, or of its first piece that is not compiled, and why."""
        for number in numbers:
            if why := self.why_not(number):
                return "catalyst", f"{self.network.nodes[number].name}: {why}"
        return "vectorised", "all its expressions are compiled"

    def way(self, nodes: Collection[int]) -> str:
        """How nodes would run in one step: compiled, in Spark's own form, side by side, or one job after the other."""
        others = {number for number in nodes if self.why_not(number) is not None}
        if not others or len(others) == len(nodes):
            return "catalyst" if others else "vectorised"
        inside = others.symmetric_difference(nodes)
        sources = ((number, source) for number in nodes for source in self.network.nodes[number].inputs)
        mixed = any((a in others and b in inside) or (a in inside and b in others) for a, b in sources)
        return "staged" if mixed else "vectorised+catalyst"

    def parted_at(self, numbers: tuple[int, ...]) -> int | None:
        """The place of the aggregate up to which a chain can run in parts; None: it cannot."""
        place = parted_at(self.operators(numbers))
        return place if place is not None and len(self.stages(numbers[: place + 1])) == 1 else None

    def is_shufflable(self, number: int) -> bool:
        """Whether a node is a join that could be shuffled."""
        operator = self.network.nodes[number].operator
        return isinstance(operator, Join) and why_never_shuffled(operator) is None
