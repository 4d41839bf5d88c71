"""Ways through a graph of operators: functions over a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from freshet.model.scheduling.view import View


def push_through(view: View, node: int) -> tuple[int, ...]:
    """A node and all nodes behind it, each after those that it reads: all that a waiting tuple still has to pass.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); _ = view.add("q", [(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)])
    >>> push_through(view, 1)
    (1, 2)
    """
    nodes = view.operators
    return tuple(reversed(_post_order(node, lambda number: reversed(nodes[number].readers))))


def lead_to(view: View, node: int) -> tuple[int, ...]:
    """A node and all nodes in front of it, each after those that it reads (post order)."""
    return tuple(_post_order(node, lambda number: view.operators[number].inputs))


def paths_to(view: View, node: int) -> list[tuple[int, ...]]:
    """All paths to a node, each from an operator that reads a stream; one that reads two streams begins two paths.

    A path segment is a slice of a path. (MAV §3.1 schedules both.)

    >>> from freshet.simulation.view import RecordView
    >>> paths_to(RecordView.over({0: (2,), 1: (2,), 2: (3,), 3: ()}), 3)
    [(0, 2, 3), (1, 2, 3)]
    """
    operator = view.operators[node]
    begun = [(node,)] * (operator.ports - len(operator.inputs))
    return [*begun, *((*path, node) for each in operator.inputs for path in paths_to(view, each))]


def _post_order(node: int, towards: Callable[[int], Iterable[int]]) -> dict[int, None]:
    """All nodes that can be reached, each once, after those that it leads to."""
    found: dict[int, None] = {}

    def visit(number: int) -> None:
        for other in towards(number):
            if other not in found:
                visit(other)
        found[number] = None

    visit(node)
    return found
