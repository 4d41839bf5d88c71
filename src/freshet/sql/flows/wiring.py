"""The graph of a query under construction."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from freshet.model.graph import QueryGraph
from freshet.model.operators import Operator
from freshet.model.scheduling.instance import InputWindow

AGAIN: Final = "~"
"""Separates the name of an operator from its number, if a graph has several of that name."""


class Wiring:
    """Operators that run, and what each of them reads.

    What follows a UNION in the text may run before it, once for each of its members. All these operators
    have their name from the text; from the second one on, a number follows it.

    >>> from freshet.model import Filter
    >>> wiring = Wiring()
    >>> wiring.add(Filter("q.filter_1", "v > 1"), "s"), wiring.add(Filter("q.filter_1", "w > 1"), "t")
    ('q.filter_1', 'q.filter_1~2')
    """

    def __init__(self) -> None:
        self.operators: dict[str, Operator] = {}
        self.inputs: dict[str, tuple[str, ...]] = {}
        self.windows: dict[str, InputWindow] = {}
        """What an instance of a periodic query sees at operators that read a stream."""

    def add(self, operator: Operator, *inputs: str) -> str:
        """Adds an operator; returns its name."""
        name, number = operator.name, 1
        while name in self.operators:
            number += 1
            name = f"{operator.name}{AGAIN}{number}"
        self.operators[name] = operator if number == 1 else replace(operator, name=name)
        self.inputs[name] = inputs
        return name

    def graph(self, root: str) -> QueryGraph:
        """The whole graph."""
        return QueryGraph(self.operators, self.inputs, root)
