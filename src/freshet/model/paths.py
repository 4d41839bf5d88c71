"""Ways through a graph of operators: functions over a view."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from freshet.model.view import View


def push_through(view: View, node: int) -> tuple[int, ...]:
    """A node and all nodes behind it, each after those that it reads: all that a waiting tuple still has to pass.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); _ = view.add("q", [(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)])
    >>> push_through(view, 1)
    (1, 2)
    """
    nodes = view.operators
    found: dict[int, None] = {}

    def visit(number: int) -> None:
        for reader in reversed(nodes[number].readers):
            if reader not in found:
                visit(reader)
        found[number] = None

    visit(node)
    return tuple(reversed(found))


def lead_to(view: View, node: int, without: Collection[int] = ()) -> tuple[int, ...]:
    """A node and all nodes in front of it, each after those that it reads (post order).

    Args:
        view: The graph.
        node: The last one.
        without: Nodes that are left out, with all that leads to them alone.
    """
    nodes = view.operators
    found: dict[int, None] = {}

    def visit(number: int) -> None:
        for source in nodes[number].inputs:
            if source not in found and source not in without:
                visit(source)
        found[number] = None

    visit(node)
    return tuple(found)


def paths(view: View, query: int) -> Iterator[tuple[int, ...]]:
    """The ways of a tuple through a query: from each place where it reads a stream to its output.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); _ = view.add("q", [(1.0, 1.0), (1.0, 1.0)])
    >>> list(paths(view, 0))
    [(0, 1)]
    """
    nodes = view.operators

    def ways(number: int) -> Iterator[tuple[int, ...]]:
        node = nodes[number]
        for source in node.inputs:
            yield from ((*way, number) for way in ways(source))
        # One for each stream that it reads itself.
        yield from [(number,)] * (node.ports - len(node.inputs))

    return ways(view.queries[query].root)
