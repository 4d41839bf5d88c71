"""Binding: from a step to a unit, that is, from operators to the trains that wait in front of them.

Within the operators of a step, an edge between two of them is *fused*: tuples go on without a queue. A tuple must not
overtake another one. So an operator waits while it, or one behind it, is running, and where tuples wait in a fused edge
at or behind it, these run first. Of the others those run that are fed: by tuples that wait where they read from
outside, by event time that has passed, or by one that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from freshet.engine.board import Board
from freshet.engine.states import EdgeState, OperatorState
from freshet.model import Chain, Input, State, Step, Train, Unit
from freshet.model.unit import components

Versions = Callable[[str], Train]
"""The versions of a table that are kept."""
States = Callable[[Sequence[Chain]], tuple[State, ...]]
"""The states of the folds in chains."""
_MOST_SHAPES: Final = 4096


def fed_by_running(board: Board, nodes: Collection[int]) -> bool:
    """Whether an operator in front of these is running: what it lets through belongs to their step."""
    inside = frozenset(nodes)
    sources = {source for number in nodes for source in board.operators[number].inputs if source not in inside}
    above = (number for source in sources for number in (source, *board.operators[source].before))
    return any(board.operators[number].running for number in above if number not in inside)


def by_themselves(board: Board, step: Step, alone: Collection[str]) -> list[Step]:
    """A step, cut so that queries which must run alone do: first all that others need, then each of them.

    Args:
        board: What waits where.
        step: What to run.
        alone: Names of the queries.
    """
    if not alone:
        return [step]
    groups: dict[frozenset[str], list[int]] = {frozenset(): []}
    for number in sorted(set(step.nodes)):
        needed = frozenset(board.queries[query].name for query in board.operators[number].queries)
        groups.setdefault(needed if needed.issubset(alone) else frozenset(), []).append(number)
    return [Step(tuple(nodes), step.rows) for nodes in groups.values() if nodes]


def next_train(board: Board, unit: Unit, rows: int) -> Step | None:
    """The parts of a running unit over full trains (of so many rows) for which another full one waits; None: none.

    Only operators without a state can work on two trains at once.
    """
    if not any(isinstance(each, Train) and each.rows == rows for chain in unit.chains for each in chain.inputs):
        return None
    parts = [[unit.chains[place] for place in part] for part in components(unit.chains)]
    full = (chain for part in parts if _can_read_ahead(board, part, rows) for chain in part)
    nodes = tuple(number for chain in full for number in chain.nodes)
    return Step(nodes, rows) if nodes else None


def _can_read_ahead(board: Board, part: Sequence[Chain], rows: int) -> bool:
    if any(board.operators[number].fold is not None for chain in part for number in chain.nodes):
        return False
    feeds = [(edge, train) for chain in part for edge, train in trains_of(board, chain)]
    return any(train.rows for _, train in feeds) and all(
        train.rows == rows <= edge.waiting or (not train.rows and not edge.waiting) for edge, train in feeds
    )


def trains_of(board: Board, chain: Chain) -> list[tuple[EdgeState, Train]]:
    """The trains of a chain, each with the edge that it comes from."""
    edges = board.operators[chain.nodes[0]].edges
    return [(edge, each) for edge, each in zip(edges, chain.inputs, strict=True) if isinstance(each, Train)]


@dataclass(frozen=True, slots=True)
class Shape:
    """Operators that run together, cut into chains: what is left to do is to look at what waits.

    Args:
        operators: All of them, each after those that it reads.
        nodes: Their numbers, by chain.
        inputs: What comes in at each port of a chain: what waits at an edge, or what another chain gives out.
        writes: Streams that what a chain gives out is appended to.
        fused: The edges inside.
    """

    operators: Sequence[OperatorState]
    nodes: Sequence[tuple[int, ...]]
    inputs: Sequence[tuple[EdgeState | int, ...]]
    writes: Sequence[tuple[str, ...]]
    fused: Sequence[EdgeState]

    def fits(self, ahead: bool) -> bool:
        """Whether all of them would run now, just so."""
        for operator in self.operators:
            if not operator.may_run or (operator.running and not ahead):
                return False
        for edge in self.fused:
            if edge.waiting or edge.apart:
                return False
        fed: list[bool] = []
        for inputs in self.inputs:
            fed.append(any(fed[each] if isinstance(each, int) else each.waiting for each in inputs))
        return all(fed)

    def over(self, limit: int, train: Callable[[str, int, int], Train]) -> tuple[Chain, ...]:
        """The chains over what waits, at most so many tuples of each edge."""
        trains: dict[tuple[str, int, int], Train] = {}

        def bound(each: EdgeState | int) -> Input:
            if isinstance(each, int):
                return each
            key = each.edge.stream, each.head, each.head + min(each.waiting, limit)
            if key not in trains:
                trains[key] = train(*key)
            return trains[key]

        inputs = (tuple([bound(each) for each in inputs]) for inputs in self.inputs)
        return tuple(map(Chain, self.nodes, inputs, self.writes))


def bind(
    board: Board,
    step: Step,
    unit: str,
    most_rows: int,
    train: Callable[[str, int, int], Train],
    states: States = lambda chains: (),
    ahead: bool = False,
    versions: Versions | None = None,
) -> Unit | None:
    """The unit of a step. None where nothing can run now.

    Args:
        board: What waits where.
        step: What to run.
        unit: Its id.
        most_rows: Most tuples of a train.
        train: Makes a train of a range of a stream.
        states: Finds the states of folds.
        ahead: Whether it is committed after what is running, and so need not wait for that.
        versions: Finds the versions of a table.
    """
    limit = most_rows if step.rows is None else min(step.rows, most_rows)
    shape = board.shapes.get(step.nodes)
    if shape is None or not shape.fits(ahead):
        shape = _shape(board, step.nodes, ahead)
    if not shape.operators:
        return None
    chains = shape.over(limit, train)
    # Not before the trains: the version that each of their tuples meets came into the log before the tuple.
    tables = tuple(map(versions, _tables(board, shape.operators))) if versions is not None and board.lookups else ()
    return Unit(unit, chains, states(chains), tables)


def _shape(board: Board, nodes: tuple[int, ...], ahead: bool) -> Shape:
    running = _Running(board, nodes, ahead)
    shape = _Cut(running).shape()
    if len(shape.operators) == len(nodes) and not any(edge.apart for each in shape.operators for edge in each.edges):
        # All of them run: as long as that is so, they are cut in the same way.
        if len(board.shapes) > _MOST_SHAPES:
            board.shapes.clear()
        board.shapes[nodes] = shape
    return shape


def _tables(board: Board, operators: Iterable[OperatorState]) -> list[str]:
    numbers = (operator.node.number for operator in operators)
    return list(dict.fromkeys(board.lookups[number] for number in numbers if number in board.lookups))


class _Running:
    """The operators of a step that run now, each after those that it reads."""

    def __init__(self, board: Board, nodes: Iterable[int], ahead: bool) -> None:
        self._board = board
        # An operator has a greater number than those that it reads.
        wanted = [operator for number in sorted(set(nodes)) if (operator := board.operators[number]).may_run]
        self._inside = {operator.node.number for operator in wanted}
        blocked: set[int] = set()
        for operator in reversed(wanted):
            if (operator.running and not ahead) or self._is_blocked(operator, blocked):
                blocked.add(operator.node.number)
        self._inside -= blocked
        self.operators: list[OperatorState] = []
        self._numbers: set[int] = set()
        for operator in wanted:
            if operator.node.number in self._inside and self._is_fed(operator):
                self.operators.append(operator)
                self._numbers.add(operator.node.number)

    def _is_blocked(self, operator: OperatorState, blocked: set[int]) -> bool:
        for reader in operator.readers:
            if reader in self._inside:
                edges = self._edges_between(operator, reader)
                if any(edge.waiting for edge in edges) or (edges and reader in blocked):
                    return True
        return False

    def _edges_between(self, operator: OperatorState, reader: int) -> list[EdgeState]:
        """The edges from one operator to another that could be fused."""
        number = operator.node.number
        return [edge for edge in self._board.operators[reader].edges if edge.edge.source == number and not edge.apart]

    def _is_fed(self, operator: OperatorState) -> bool:
        return operator.closing or any(self.is_fused(edge) or edge.waiting for edge in operator.edges)

    def is_fused(self, edge: EdgeState) -> bool:
        """Whether tuples come from an operator that runs, without a queue. Whoever reads such an operator within the
        step runs, too."""
        return edge.edge.source in self._numbers and not edge.apart

    def goes_on(self, operator: OperatorState) -> tuple[int, tuple[str, ...]]:
        """How many fused edges take what an operator gives out, and the streams that it is appended to."""
        board, number = self._board, operator.node.number
        edges = [
            edge for reader in operator.readers for edge in board.operators[reader].edges if edge.edge.source == number
        ]
        queues = [edge.edge.stream for edge in edges if edge.edge.node not in self._numbers or edge.apart]
        outputs = (board.queries[query].name for query in operator.outputs)
        return len(edges) - len(queues), (*outputs, *queues)


class _Cut:
    """Cuts operators that run into chains."""

    def __init__(self, running: _Running) -> None:
        self._running = running
        self._nodes: list[list[int]] = []
        self._inputs: list[tuple[EdgeState | int, ...]] = []
        self._writes: list[tuple[str, ...]] = []
        self._fused: list[EdgeState] = []
        self._ends: dict[int, int] = {}
        """The chain that an operator ends."""
        self._whole: set[int] = set()
        """Operators whose one reader goes on with their chain."""

    def shape(self) -> Shape:
        """The chains, each after those that it reads."""
        for operator in self._running.operators:
            self._place(operator)
        nodes = tuple(map(tuple, self._nodes))
        return Shape(self._running.operators, nodes, self._inputs, self._writes, self._fused)

    def _place(self, operator: OperatorState) -> None:
        number, [edge, *others] = operator.node.number, operator.edges
        source = edge.edge.source
        if source is not None and not others and source in self._whole and self._running.is_fused(edge):
            place = self._ends.pop(source)
            self._nodes[place].append(number)
            self._fused.append(edge)
        else:
            place = len(self._nodes)
            self._nodes.append([number])
            self._inputs.append(tuple(self._input(each) for each in operator.edges))
            self._writes.append(())
        fused, self._writes[place] = self._running.goes_on(operator)
        self._ends[number] = place
        if fused == 1 and not self._writes[place]:
            self._whole.add(number)

    def _input(self, edge: EdgeState) -> EdgeState | int:
        if edge.edge.source is None or not self._running.is_fused(edge):
            return edge
        self._fused.append(edge)
        return self._ends[edge.edge.source]
