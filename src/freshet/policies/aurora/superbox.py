"""Superboxes: which operators are scheduled as one (CAR §3.3.1.1, §6.3.6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from freshet.model import View, push_through

Graph = Mapping[int, tuple[int, ...]]
"""The readers of each operator; an operator without readers is an output. Every operator is a key."""
SuperboxNodes = tuple[int, ...]
"""Operators of a superbox, each after all operators that lead to it (post order)."""
Selection = Callable[[Graph, Collection[int]], list[SuperboxNodes]]
"""Makes superboxes from a graph and the expensive operators that must end a superbox (CAR §6.3.7)."""


def graph_of(view: View) -> Graph:
    """The graph of all operators that some query needs.

    >>> from freshet.simulation.view import RecordView
    >>> graph_of(RecordView.over({0: (2,), 1: (2,), 2: ()}))
    {0: (2,), 2: (), 1: (2,)}
    """
    operators = view.operators
    graph: dict[int, tuple[int, ...]] = {}
    for number in (number for query in view.queries for number in query.operators):
        first = operators[number]
        if first.queries and number not in graph and len(first.inputs) < first.ports:
            graph.update({each: operators[each].readers for each in push_through(view, number) if each not in graph})
    return graph


def application_trees(graph: Graph, ends: Collection[int] = ()) -> list[SuperboxNodes]:
    """One superbox for each output: all operators that lead to it (AAAT).

    If queries overlap, an operator is part of several superboxes; see :func:`intersections` and :func:`composed`.
    An operator of ``ends`` becomes the root of a superbox of its own, so that the operators behind it need not wait
    for it (CAR §6.3.7).

    >>> application_trees({4: (2,), 5: (3,), 3: (2,), 2: (1,), 6: (1,), 1: ()})
    [(4, 5, 3, 2, 6, 1)]
    >>> application_trees({1: (2,), 2: (3,), 3: ()}, ends={2})
    [(1, 2), (3,)]
    """
    before = _upstream(graph)
    roots = [number for number, after in graph.items() if not after or number in ends]
    return [_post_order(root, before, ends) for root in roots]


def composed(superboxes: Iterable[SuperboxNodes]) -> list[SuperboxNodes]:
    """Merges superboxes with common operators, so that these are called once for all of them (CAR §6.3.3).

    >>> composed([(0, 1), (2, 3), (0, 4)])
    [(0, 1, 4), (2, 3)]
    """
    found: list[dict[int, None]] = []
    owner: dict[int, dict[int, None]] = {}
    for superbox in superboxes:
        others = list({id(owner[number]): owner[number] for number in superbox if number in owner}.values())
        whole: dict[int, None] = others[0] if others else {}
        if not others:
            found.append(whole)
        for members in (*others[1:], dict.fromkeys(superbox)):
            whole |= members
            owner |= dict.fromkeys(members, whole)
        found = [each for each in found if not any(each is other for other in others[1:])] if others[1:] else found
    return [tuple(each) for each in found]


def intersections(graph: Graph, ends: Collection[int] = ()) -> list[SuperboxNodes]:
    """Superboxes that do not overlap: one for each output and each split, with the operators that lead only to it.

    Box 1 is shared by the applications of 2 and 3:

    >>> intersections({0: (1,), 1: (2, 3), 2: (), 3: ()})
    [(0, 1), (2,), (3,)]
    """
    before = _upstream(graph)
    roots = [number for number, after in graph.items() if len(after) != 1 or number in ends]
    return [_post_order(root, before, roots) for root in roots]


def chains(graph: Graph, ends: Collection[int] = ()) -> list[SuperboxNodes]:
    """Chains of operators; all but the first have a single input, so that none waits for a second one.

    >>> chains({4: (2,), 5: (3,), 3: (2,), 2: (1,), 6: (1,), 1: ()})
    [(4,), (5, 3), (2,), (6,), (1,)]
    """
    before = _upstream(graph)

    def goes_on(number: int) -> bool:
        after = graph[number]
        return len(after) == 1 and number not in ends and len(before[after[0]]) == 1

    heads = [number for number in graph if len(before[number]) != 1 or not goes_on(before[number][0])]
    return [_follow(head, graph, goes_on) for head in heads]


def single_boxes(graph: Graph, ends: Collection[int] = ()) -> list[SuperboxNodes]:
    """A box at a time (BAAT); with trains of one tuple, a tuple at a time.

    >>> single_boxes({1: (2,), 2: ()})
    [(1,), (2,)]
    """
    return [(number,) for number in graph]


SELECTIONS: Final[Mapping[str, Selection]] = {
    "applications": application_trees,
    "intersections": intersections,
    "chains": chains,
    "boxes": single_boxes,
}
"""Superbox selections by name."""


def _upstream(graph: Graph) -> dict[int, list[int]]:
    before: dict[int, list[int]] = {number: [] for number in graph}
    for number, after in graph.items():
        for each in after:
            before[each].append(number)
    return before


def _post_order(root: int, before: Mapping[int, list[int]], borders: Collection[int]) -> SuperboxNodes:
    """The operators that lead to a root, the root last; other borders are left out with all that leads to them."""
    order: list[int] = []
    stack = [(root, False)]
    while stack:
        number, entered = stack.pop()
        if entered:
            order.append(number)
            continue
        stack.append((number, True))
        stack += [(each, False) for each in reversed(before[number]) if each not in borders]
    return tuple(dict.fromkeys(order))


def _follow(head: int, graph: Graph, goes_on: Callable[[int], bool]) -> SuperboxNodes:
    chain = [head]
    while goes_on(chain[-1]):
        chain.append(graph[chain[-1]][0])
    return tuple(chain)
