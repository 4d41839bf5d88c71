"""Binding: from a step to a unit, that is, from operators to the trains that wait in front of them.

Within the operators of a step, an edge between two of them is *fused*: tuples pass on without a queue. A tuple must not
overtake another one. So an operator waits while it, or one behind it, is running, and where tuples wait in a fused edge
at or behind it, these run first. Of the rest, an operator runs if something feeds it: tuples that wait at an input from
outside, event time that has passed, or another operator that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from freshet.engine.board import Board
from freshet.engine.protocols import Executor, TrainSource
from freshet.engine.states import EdgeState, OperatorState
from freshet.model import Chain, Input, Keep, State, Step, Train, Unit
from freshet.model.scheduling.unit import components

States = Callable[[Sequence[Chain]], tuple[State, ...]]
"""Finds the states of the folds that some chains run."""
_MOST_SHAPES: Final = 4096


def fed_by_running(board: Board, nodes: Collection[int]) -> bool:
    """Whether an operator in front of these is running: what it outputs belongs to their step."""
    inside = frozenset(nodes)
    sources = {source for number in nodes for source in board.operators[number].inputs if source not in inside}
    above = (number for source in sources for number in (source, *board.operators[source].before))
    return any(board.operators[number].running for number in above if number not in inside)


def cut(board: Board, step: Step, executor: Executor) -> list[Step]:
    """A step, cut into those that an executor should run apart."""
    alone = by_themselves(board, whole(board, step), executor.alone)
    return [part for each in alone for part in by_way(board, each, executor.slow)]


def whole(board: Board, step: Step) -> Step:
    """A step with all operators that must not run without those that it has."""
    if not board.undivided:
        return step
    nodes = (each for number in step.nodes for each in board.undivided.get(number, (number,)))
    return Step(tuple(dict.fromkeys(nodes)), step.rows)


def by_themselves(board: Board, step: Step, alone: Collection[str]) -> list[Step]:
    """A step, cut so that each query of ``alone`` runs by itself, after all that other queries need."""
    if not alone:
        return [step]
    groups: dict[frozenset[str], list[int]] = {frozenset(): []}
    for number in sorted(set(step.nodes)):
        needed = frozenset(board.queries[query].name for query in board.operators[number].queries)
        groups.setdefault(needed if needed.issubset(alone) else frozenset(), []).append(number)
    return [Step(tuple(nodes), step.rows) for nodes in groups.values() if nodes]


def by_way(board: Board, step: Step, slow: Collection[int]) -> list[Step]:
    """A step, cut in two if only some of its operators are slow, or connected with such: the others run first."""
    waiting = [number for number in step.nodes if number in slow] if slow else []
    if not waiting or len(waiting) == len(step.nodes):
        return [step]
    quick = dict.fromkeys(step.nodes)
    while waiting:
        if (number := waiting.pop()) in quick:
            del quick[number]
            waiting += (*board.operators[number].inputs, *board.operators[number].readers)
    rest = [number for number in step.nodes if number not in quick]
    return [Step(tuple(nodes), step.rows) for nodes in (quick, rest) if nodes]


def next_train(board: Board, unit: Unit, rows: int) -> Step | None:
    """Those parts of a running unit for which another full train (of ``rows`` tuples) waits; None: there are none.

    Only operators without a state can work on two trains at once.
    """
    if not any(isinstance(each, Train) and each.rows == rows for chain in unit.chains for each in chain.inputs):
        return None
    parts = [[unit.chains[place] for place in part] for part in components(unit.chains)]
    full = (chain for part in parts if _can_read_ahead(board, part, rows) for chain in part)
    nodes = tuple(number for chain in full for number in chain.nodes)
    return Step(nodes, rows) if nodes else None


def _can_read_ahead(board: Board, part: Sequence[Chain], rows: int) -> bool:
    if board.folds(number for chain in part for number in chain.nodes):
        return False
    feeds = [(edge, train) for chain in part for edge, train in trains_of(board, chain)]
    return any(train.rows for _, train in feeds) and all(
        train.rows == rows <= edge.waiting or (not train.rows and not edge.waiting) for edge, train in feeds
    )


def trains_of(board: Board, chain: Chain) -> list[tuple[EdgeState, Train]]:
    """The trains of a chain, each with the edge that it comes from."""
    edges, inputs = board.operators[chain.nodes[0]].edges, chain.inputs
    if len(inputs) == 1:  # most have one, and this is asked several times for each chain of a unit
        return [(edges[0], inputs[0])] if isinstance(inputs[0], Train) else []
    return [(edge, each) for edge, each in zip(edges, inputs, strict=True) if isinstance(each, Train)]


def queued(trains: Iterable[tuple[EdgeState, Train]]) -> list[tuple[EdgeState, Train]]:
    """Those of some trains that come from queues, not from windows of periodic queries."""
    return [(edge, train) for edge, train in trains if edge.window is None]


@dataclass(frozen=True, slots=True)
class Shape:
    """Operators that run together, cut into chains, whatever waits in front of them.

    Args:
        operators: All of them, each after those that it reads.
        nodes: Their numbers, by chain.
        inputs: What comes in at each port of a chain: what waits at an edge, or what another chain outputs.
        writes: Streams that what a chain outputs is appended to.
        fused: The edges inside.
        tables: Streams with the versions of the tables that they read.
    """

    operators: Sequence[OperatorState]
    nodes: Sequence[tuple[int, ...]]
    inputs: Sequence[tuple[EdgeState | int, ...]]
    writes: Sequence[tuple[str, ...]]
    fused: Sequence[EdgeState]
    tables: Sequence[str]

    def fits(self, ahead: bool) -> bool:
        """Whether all of them would run now, cut in this way."""
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

    def over(self, limit: int, log: TrainSource) -> tuple[Chain, ...]:
        """The chains over what waits, at most ``limit`` tuples of each edge that may be cut."""
        trains: dict[tuple[str, int, int, Keep | None, bool, str], Train] = {}
        ends = self._ends(limit, log)

        def bound(each: EdgeState | int) -> Input:
            if isinstance(each, int):
                return each
            end = ends[each] if each in ends else each.head + min(each.waiting, limit)
            key = each.edge.stream, each.head, end, each.keep, each.by_key, each.join
            if key not in trains:
                whole, keep = log.train(*key[:3]), each.keep
                if each.by_key and (past := log.past(*key[:3])):
                    keep = replace(keep or Keep(1.0, each.edge.reader), past=past)
                if each.join and (gone := log.let_go(*key[:3], each.join)):
                    keep = replace(keep or Keep(1.0, each.edge.reader), let_go=gone)
                trains[key] = whole if keep is None else replace(whole, keep=keep)
            return trains[key]

        inputs = (tuple([bound(each) for each in inputs]) for inputs in self.inputs)
        return tuple(map(Chain, self.nodes, inputs, self.writes))

    def _ends(self, limit: int, log: TrainSource) -> dict[EdgeState, int]:
        """Where the trains of joins with a bound on their memory end. What such a join remembers is reckoned in the
        append sequence, so no train of it goes further there than any other, nor than a tuple that the board does not
        know of yet; and each ends where the log knows the mark, maybe some tuples behind the limit. If leading inputs
        rest, they were let on as far as all that waits of the others reaches: then all of it goes together, however
        much it is."""
        joins: dict[str, list[EdgeState]] = {}
        for inputs in self.inputs:
            for each in inputs:
                if not isinstance(each, int) and each.join:
                    joins.setdefault(each.join, []).append(each)
        found: dict[EdgeState, int] = {}
        for edges in joins.values():
            if any(edge.rests for edge in edges):
                found |= {edge: edge.end for edge in edges}
                continue
            ends = {edge: edge.head + min(edge.waiting, limit) for edge in edges}
            ends = {edge: log.marked(edge.edge.stream, edge.head, end) for edge, end in ends.items()}
            rest = (log.place(edge.edge.stream, end) for edge, end in ends.items())
            first = min((place for place in rest if place is not None), default=None)
            found |= {edge: _until(log.train(edge.edge.stream, edge.head, end), first) for edge, end in ends.items()}
        return found


def _until(train: Train, place: int | None) -> int:
    """Where a train ends if nothing behind a place of the append sequence may be in it."""
    inside = (each.end for each in train.segments if place is None or each.sequence <= place)
    return min(train.end, max(inside, default=train.first))


class MadeUp:
    """Trains without segments and tables without versions, for worlds whose tuples have no columns."""

    def train(self, stream: str, first: int, end: int) -> Train:
        return Train(stream, first, end)

    def past(self, stream: str, first: int, end: int) -> tuple[int, ...]:
        return ()

    def let_go(self, stream: str, first: int, end: int, join: str) -> tuple[int, ...]:
        return ()

    def place(self, stream: str, offset: int) -> int | None:
        return None

    def marked(self, stream: str, first: int, end: int) -> int:
        return end

    def newest_key(self, stream: str) -> int | None:
        return None

    def reached(self, stream: str, key: int, join: str = "") -> int | None:
        return None

    def versions(self, stream: str) -> Train:
        return Train(stream, 0, 0)


def bind(
    board: Board, step: Step, unit: str, most_rows: int, log: TrainSource, states: States, ahead: bool = False
) -> Unit | None:
    """The unit of a step, over at most ``most_rows`` tuples of each edge; None if nothing can run now. Only where a
    join with a bound on its memory lets inputs rest, a train may be longer.

    A unit that runs ``ahead`` is committed after what is running, so it need not wait for that.
    """
    limit = most_rows if step.rows is None else min(step.rows, most_rows)
    shape = board.shapes.get(step.nodes)
    if shape is None or not shape.fits(ahead):
        shape = shape_of(board, step.nodes, ahead)
    if not shape.operators:
        return None
    chains = shape.over(limit, log)
    # Not before the trains: the version that each of their tuples meets came into the log before the tuple.
    return Unit(unit, chains, states(chains), tuple(map(log.versions, shape.tables)))


def shape_of(board: Board, nodes: tuple[int, ...], ahead: bool = False, windows: bool = False) -> Shape:
    """Those of some operators that can run now, cut into chains; only an instance also feeds them with ``windows``."""
    shape = _Cut(board, nodes, ahead, windows).shape()
    if len(shape.operators) == len(nodes) and not any(edge.apart for each in shape.operators for edge in each.edges):
        # All of them run: as long as that is so, they are cut in the same way.
        if len(board.shapes) > _MOST_SHAPES:
            board.shapes.clear()
        board.shapes[nodes] = shape
    return shape


class _Cut:
    """The operators of a step that run now, each after those that it reads, cut into chains."""

    def __init__(self, board: Board, nodes: Iterable[int], ahead: bool, windows: bool) -> None:
        self._board, self._windows = board, windows
        # An operator has a greater number than those that it reads.
        wanted = [operator for number in sorted(set(nodes)) if (operator := board.operators[number]).may_run]
        wanted = [operator for operator in wanted if self._may_all_run(operator)] if board.undivided else wanted
        inside = {operator.node.number for operator in wanted}
        blocked: set[int] = set()
        for operator in reversed(wanted):
            fusible = (edge for edge in operator.out if edge.edge.node in inside and not edge.apart)
            waits = any(edge.waiting or edge.edge.node in blocked for edge in fusible)
            if waits or (operator.running and not ahead):
                blocked.add(operator.node.number)
        self._operators: list[OperatorState] = []
        self._numbers: set[int] = set()
        for operator in wanted:
            if operator.node.number not in blocked and self._is_fed(operator):
                self._operators.append(operator)
                self._numbers.add(operator.node.number)
        self._nodes: list[list[int]] = []
        self._inputs: list[tuple[EdgeState | int, ...]] = []
        self._writes: list[tuple[str, ...]] = []
        self._fused: list[EdgeState] = []
        self._ends: dict[int, int] = {}
        """The chain that an operator ends."""
        self._whole: dict[int | None, int] = {}
        """The same, if its one reader continues the chain."""

    def _may_all_run(self, operator: OperatorState) -> bool:
        """Whether all operators may run that must run with one."""
        return all(self._board.operators[each].may_run for each in self._board.undivided.get(operator.node.number, ()))

    def _is_fed(self, operator: OperatorState) -> bool:
        return operator.closing or any(
            self._is_fused(edge) or edge.waiting or (self._windows and edge.window is not None)
            for edge in operator.edges
        )

    def _is_fused(self, edge: EdgeState) -> bool:
        """Whether an operator that runs feeds the edge without a queue. If so, the reader runs, too."""
        return edge.edge.source in self._numbers and not edge.apart

    def shape(self) -> Shape:
        """The chains, each after those that it reads."""
        for operator in self._operators:
            self._place(operator)
        tables = tuple(dict.fromkeys(stream for operator in self._operators for stream in operator.node.tables))
        return Shape(self._operators, tuple(map(tuple, self._nodes)), self._inputs, self._writes, self._fused, tables)

    def _place(self, operator: OperatorState) -> None:
        number, [edge, *others] = operator.node.number, operator.edges
        if not others and edge.edge.source in self._whole:
            place = self._whole[edge.edge.source]
            self._nodes[place].append(number)
            self._fused.append(edge)
        else:
            place = len(self._nodes)
            self._nodes.append([number])
            self._inputs.append(tuple(self._input(each) for each in operator.edges))
            self._writes.append(())
        outputs = (self._board.queries[query].name for query in operator.outputs)
        queues = (each.edge.stream for each in operator.out if each.edge.node not in self._numbers or each.apart)
        self._writes[place] = (*outputs, *queues)
        self._ends[number] = place
        if len(operator.out) == 1 and not self._writes[place]:
            self._whole[number] = place

    def _input(self, edge: EdgeState) -> EdgeState | int:
        if edge.edge.source is None or not self._is_fused(edge):
            return edge
        self._fused.append(edge)
        return self._ends[edge.edge.source]
