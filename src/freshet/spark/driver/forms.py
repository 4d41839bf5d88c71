"""Which operators of a network run together, and in which form. No PySpark here: ``freshet explain`` asks, too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache, cached_property
from itertools import groupby
from typing import Literal

from freshet.kernels.task_split import parted_at
from freshet.model import Network, Operator

Form = Literal["vectorised", "catalyst", "shuffled"]
"""``shuffled``: a large join."""
FormStage = tuple[Form, tuple[int, ...]]
"""Nodes that run in one form."""
WhyNot = Callable[[int, Operator], str | None]
"""Why a plain operator is not compiled, from its number and what it does; None: it is."""


class Forms:
    """The forms of the operators of a network, which may grow."""

    def __init__(self, network: Network, why_not: WhyNot) -> None:
        self.network = network
        self._why_not = why_not
        self.why_not = cache(self._judge)
        self.folds = cache(self._folds)
        self.stages = cache(self._stages)
        self.is_divisible = cache(self._is_divisible)

    def judge_anew(self) -> None:
        """Forgets all answers: the network has changed, and numbers may stand for other nodes."""
        for kept in (self.why_not, self.folds, self.stages, self.is_divisible):
            kept.cache_clear()
        self.__dict__.pop("others", None)

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
        """Why a node is not compiled; None: it is. Only filters and projections may fail to compile."""
        operator = self.network.nodes[number].operator
        return self._why_not(number, operator) if operator.plain else None

    def _stages(self, numbers: tuple[int, ...]) -> tuple[FormStage, ...]:
        """A chain, cut where its form changes. Plain operators in a row have one form; compiled stages are joined."""
        stages: list[FormStage] = []
        for _, group in groupby(numbers, lambda number: self.network.nodes[number].operator.plain):
            some = tuple(group)
            form = self.form(some)[0]
            if stages and stages[-1][0] == form == "vectorised":
                stages[-1] = (form, stages[-1][1] + some)
            else:
                stages.append((form, some))
        return tuple(stages)

    def form(self, numbers: Sequence[int]) -> tuple[Form, str]:
        """The physical form of a chain, or of its first operator that is not compiled, and the reason."""
        for number in numbers:
            if why := self.why_not(number):
                return "catalyst", f"{self.network.nodes[number].name}: {why}"
        return "vectorised", "all its expressions are compiled"

    @cached_property
    def others(self) -> frozenset[int]:
        """All nodes that are not compiled, of those that queries need."""
        used = (node.number for node in self.network.nodes if self.network.queries(node.number))
        return frozenset(number for number in used if self.why_not(number) is not None)

    def way(self, nodes: Collection[int]) -> str:
        """A word for how nodes would run as one step: compiled, in Spark's own form, side by side, or in stages."""
        others = {number for number in nodes if self.why_not(number) is not None}
        if not others or len(others) == len(nodes):
            return "catalyst" if others else "vectorised"
        inside = set(nodes)
        edges = ((number, source) for number in nodes for source in self.network.nodes[number].inputs)
        staged = any(source in inside and (number in others) != (source in others) for number, source in edges)
        return "staged" if staged else "vectorised+catalyst"

    def parted_at(self, numbers: tuple[int, ...]) -> int | None:
        """The place of the aggregate up to which a chain can run in parts; None: it cannot."""
        place = parted_at(self.operators(numbers))
        return place if place is not None and len(self.stages(numbers[: place + 1])) == 1 else None

    def _is_divisible(self, fold: str) -> bool:
        """Whether tasks can share the work of a fold by key: its keys follow, by compiled expressions, from each tuple
        that it or another fold gets."""
        node = next((each for each in self.network.nodes if each.name == fold), None)
        if node is None or node.operator.ordered or not node.operator.split_keys:
            return False
        sources = list(node.inputs)
        while sources:
            source = self.network.nodes[sources.pop()]
            if source.operator.remembers:
                continue
            if not source.operator.plain or self.why_not(source.number) is not None:
                return False
            sources += source.inputs
        return True
