"""Which joins of a query go by ordered keys, and which streams come in at each of their ports."""

from __future__ import annotations

from freshet.model.graph import QueryGraph
from freshet.model.operators import Join

KeyJoins = dict[str, tuple[tuple[tuple[str, str], ...], ...]]
"""By the name of the join, for each of its ports: the streams that lead to it, each with its ordered key."""


def key_joins(graph: QueryGraph) -> KeyJoins:
    """The joins of a graph that go by ordered keys.

    >>> from freshet.model import Lifetime
    >>> from freshet.model.operators import Marked
    >>> moment = Lifetime("__from", until="__until")
    >>> operators = {"x": Marked("x", "k"), "y": Marked("y", "k"),
    ...              "j": Join("j", "inner", (moment, moment), (("k",), ("k",)), ())}
    >>> key_joins(QueryGraph(operators, {"x": ("a",), "y": ("b",), "j": ("x", "y")}, "j"))
    {'j': ((('a', 'k'),), (('b', 'k'),))}
    """
    above: dict[str, tuple[tuple[str, str], ...]] = {}
    found: KeyJoins = {}
    for name in graph.order:
        operator, inputs = graph.operators[name], graph.inputs[name]
        if operator.ordered_by is not None:
            above[name] = ((inputs[0], operator.ordered_by),)
            continue
        ports = tuple(above.get(source, ()) for source in inputs)
        above[name] = tuple(dict.fromkeys(each for port in ports for each in port))
        if isinstance(operator, Join) and all(ports):
            found[name] = ports
    return found
