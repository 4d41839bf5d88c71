"""Two levels: which superbox to run, then how to traverse it."""

from __future__ import annotations

import math
import random
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from typing import ClassVar, Final, Literal, TypeVar

from freshet.model import Decision, Step, UserError, View, push_through
from freshet.policies.aurora.superbox import SELECTIONS, SuperboxNodes, composed, graph_of
from freshet.policies.aurora.trains import RowLimit, Trains, WholeQueue
from freshet.policies.aurora.traversal import (
    TRAVERSALS,
    Box,
    Boxes,
    TraversalName,
    faster,
    memory_rate,
    output_cost,
    releases_of,
    ways_of,
)
from freshet.policies.base import Policy

T = TypeVar("T")
_STILL_DEAR: Final = 0.8
"""An expensive operator is cheap again below this share of the high cost. So a cost near the limit does not select
superboxes again with every run."""
_MOST_RUNS: Final = 4096
"""After this number of completed steps, plans that depend on costs are made again. The first plans are replaced sooner,
because the first costs change much."""


class TwoLevel(Policy):
    """Serves superboxes in turn, each by a traversal (CAR §3.3).

    On Spark a min-cost superbox is one fused job, and intermediate queues exist only between superboxes. Min-latency
    makes a job for each way to an output, so that an answer does not wait for the others. Work that several ways share
    runs once, and its output waits in their queues. Min-memory ends a job where that frees memory early. The answers
    are the same; overhead, memory and latency differ.

    Args:
        selection: The kind of superboxes: ``applications`` (one per query, AAAT; queries that share work form one, CAR
            §6.3.3), ``intersections``, ``chains``, ``boxes`` (a box at a time, BAAT).
        traversal: ``min-cost``, ``min-latency``, ``min-memory``, or ``auto``: the first or the second, whichever has
            the lower expected latency according to the measured costs and overhead.
        size: Number of superboxes in a plan; None: every superbox that has waiting tuples, once.
        trains: How many of the waiting tuples to take.
        high_cost: From this many seconds per tuple on, an operator ends a superbox, so that what lies behind it need
            not wait for it, and its superbox yields to others (CAR §6.3.7). Superboxes are selected again when a
            learned cost reaches this or falls well below it.
        seed: Seed for a random order of the turns; None: the order of the operators.
    """

    name: ClassVar[str] = "two-level"

    def __init__(
        self,
        selection: str = "applications",
        traversal: TraversalName | Literal["auto"] = "min-cost",
        size: int | None = None,
        *,
        trains: Trains | None = None,
        high_cost: float = math.inf,
        seed: int | None = None,
    ) -> None:
        if selection not in SELECTIONS:
            raise UserError(f"there is no superbox selection {selection!r} (there are: {', '.join(SELECTIONS)})")
        self.selection, self.traversal, self.size = selection, traversal, size
        self.rule = f"{selection} in turn, {traversal}"
        self.trains: Trains = trains or WholeQueue()
        self.operations = 0
        self._high_cost, self._seed = high_cost, seed
        self._ends: set[int] = set()
        self._superboxes: list[SuperboxNodes] = []
        self._owner: dict[int, int] = {}
        self._known = -1
        self._last = -1
        self._plans: dict[tuple[int, ...], tuple[Step, ...]] = {}
        self._ran, self._span = 0, 1
        self._sizes: dict[int, float] = {}
        """Bytes of a tuple in front of each operator that has had waiting tuples."""

    def changed(self, view: View, query: int) -> None:
        """A query came or went: superboxes are selected again, and its numbers may be given to others."""
        self._known = -1
        for number in view.queries[query].operators:
            self._ends.discard(number)
            self._sizes.pop(number, None)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """Operators ran: if that made one expensive or cheap, superboxes are selected again."""
        self._ran += 1
        if self._ran >= self._span and self.traversal != "min-cost":
            self._plans.clear()
            self._ran, self._span = 0, min(2 * self._span, _MOST_RUNS)
        if self._high_cost < math.inf and any(self._is_dear(view, each) != (each in self._ends) for each in operators):
            self._known = -1

    def decide(self, view: View) -> Decision:
        """The next superboxes in turn that have waiting tuples."""
        if self._known != len(view.operators):
            self._select(view)
        members: dict[int, list[int]] = {}
        owner = self._owner
        for number in view.ready:
            members.setdefault(owner[number], []).append(number)
        turns = self._turns(view, members)
        return Decision.run(*(step for turn in turns for step in self._steps(view, turn, members[turn])))

    def _turns(self, view: View, members: Mapping[int, Sequence[int]]) -> list[int]:
        """The superboxes to run, in order; ``members`` has the ready operators of each that has some."""
        turns = sorted(members)
        if turns:
            self.operations += 1 + len(turns) + int(len(turns) * math.log2(len(turns)))
        if self.size is not None and len(turns) > self.size:
            after = [turn for turn in turns if turn > self._last]
            turns = (after + turns)[: self.size]
            self._last = turns[-1]
        if self._ends:
            # An expensive box yields to what lies behind it: that is short, and puts something out (CAR §6.3.7).
            turns.sort(key=lambda turn: self._superboxes[turn][-1] in self._ends)
        return turns

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        """The turn of its superbox, and the figure by which the traversal ranks boxes."""
        turn, each = self._owner[operator], view.operators[operator]
        behind = tuple(number for number in push_through(view, operator) if self._owner.get(number) == turn)
        boxes = self._boxes(view, behind, ChainMap({}, self._sizes))
        figures: dict[str, float] = {"turn": turn, "waiting": each.pending, "cost_s": each.cost}
        if self.traversal == "min-memory":
            figures["memory_rate"] = memory_rate(boxes[operator])
        elif self.traversal != "min-cost":
            figures["output_cost_s"] = output_cost(boxes, operator)
        return figures

    def _is_dear(self, view: View, number: int) -> bool:
        """Whether an operator ends a superbox; one that does goes on until it is clearly cheap."""
        return view.operators[number].cost >= self._high_cost * (_STILL_DEAR if number in self._ends else 1.0)

    def _select(self, view: View) -> None:
        self._ends = {number for number in range(len(view.operators)) if self._is_dear(view, number)}
        self._superboxes = composed(SELECTIONS[self.selection](graph_of(view), self._ends))
        if self._seed is not None:
            random.Random(self._seed).shuffle(self._superboxes)
        self._owner = {number: turn for turn, superbox in enumerate(self._superboxes) for number in superbox}
        self._known = len(view.operators)
        self._plans.clear()

    def _steps(self, view: View, turn: int, ready: list[int]) -> tuple[Step, ...]:
        superbox = self._superboxes[turn]
        self.operations += len(ready)
        fixed = isinstance(self.trains, WholeQueue | RowLimit)
        if not fixed or self.traversal in ("auto", "min-memory"):
            return self._traverse(view, superbox, ready)
        # These traversals depend only on costs and on which boxes have tuples.
        key = (turn, *sorted(ready))
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) > 100_000:
                self._plans.clear()
            plan = self._plans[key] = self._traverse(view, superbox, ready)
        return plan

    def _traverse(self, view: View, superbox: SuperboxNodes, ready: list[int]) -> tuple[Step, ...]:
        boxes = self._boxes(view, superbox, self._sizes)
        waiting = {number: float(view.operators[number].pending) for number in ready}
        name = self.traversal
        if name == "auto":
            name = faster(superbox, boxes, waiting, view.overhead())
        calls = _useful(TRAVERSALS[name](superbox, boxes), boxes, ready)
        if name == "min-cost":
            return self._fused(view, ways_of(calls, boxes), waiting)
        ways = ways_of(calls, boxes)
        if name == "min-memory":
            ways = releases_of(calls, boxes, waiting, view.overhead(calls))
        return tuple(Step(way, self.trains.rows(view, _train_of(way, waiting, way[0]))) for way in ways)

    def _fused(self, view: View, ways: Sequence[tuple[int, ...]], waiting: Collection[int]) -> tuple[Step, ...]:
        """One step if the trains of all queues have the same size (CAR §3.3.2), else as few steps as possible."""
        steps: list[Step] = []
        for way in ways:
            first = _train_of(way, waiting, None)
            # If nothing waits here, all tuples come from the step before.
            rows = steps[-1].rows if first is None else self.trains.rows(view, first)
            if steps and rows == steps[-1].rows:
                steps[-1] = Step((*steps[-1].nodes, *way), rows)
            else:
                steps.append(Step(way, rows))
        return tuple(steps)

    def _boxes(self, view: View, superbox: SuperboxNodes, sizes: MutableMapping[int, float]) -> Boxes:
        inside = set(superbox)
        boxes: dict[int, Box] = {}
        for number in superbox:
            each = view.operators[number]
            if each.pending and each.bytes_waiting:
                sizes[number] = each.bytes_waiting / each.pending
            # A tuple is assumed to be as wide as earlier ones here, or else as those in front of the box before.
            known = (boxes[source].size for source in each.inputs if source in boxes)
            size = sizes[number] if number in sizes else next(known, 1.0)
            after = tuple(reader for reader in each.readers if reader in inside)
            boxes[number] = Box(after, each.cost, each.selectivity, size)
        return boxes


class BoxAtATime(TwoLevel):
    """Runs every operator that has waiting tuples, one after the other in a fixed order (BAAT, CAR §3.4.2).

    It is the round robin of CAR §4.2.1, which ignores promises.
    """

    name: ClassVar[str] = "baat"

    def __init__(self, size: int | None = None, *, trains: Trains | None = None, seed: int | None = None) -> None:
        super().__init__("boxes", size=size, trains=trains, seed=seed)


class TupleAtATime(BoxAtATime):
    """One tuple through one operator at a time (TAAT): the baseline without any batching (CAR §3.4.5)."""

    name: ClassVar[str] = "taat"

    def __init__(self, *, seed: int | None = None) -> None:
        super().__init__(trains=RowLimit(1), seed=seed)


class AutoTraversal(TwoLevel):
    """Query trees as superboxes; min-cost or min-latency, whichever is expected to be faster now."""

    name: ClassVar[str] = "aaat"
    goes_by: ClassVar[TraversalName | Literal["auto"]] = "auto"

    def __init__(self, size: int | None = None) -> None:
        super().__init__(traversal=self.goes_by, size=size)


class MinCost(AutoTraversal):
    """Query trees as superboxes, each box called once."""

    name: ClassVar[str] = "aaat-min-cost"
    goes_by: ClassVar[TraversalName | Literal["auto"]] = "min-cost"


class MinLatency(AutoTraversal):
    """Query trees as superboxes, the cheapest outputs first."""

    name: ClassVar[str] = "aaat-min-latency"
    goes_by: ClassVar[TraversalName | Literal["auto"]] = "min-latency"


class MinMemory(AutoTraversal):
    """Query trees as superboxes, the most memory freed per second first."""

    name: ClassVar[str] = "aaat-min-memory"
    goes_by: ClassVar[TraversalName | Literal["auto"]] = "min-memory"


def _useful(calls: Iterable[int], boxes: Boxes, ready: Iterable[int]) -> list[int]:
    """The calls that may find tuples: those of boxes where tuples wait or that an earlier call has sent some to."""
    waiting = set(ready)
    useful = []
    for number in calls:
        if number in waiting:
            waiting.discard(number)
            useful.append(number)
            waiting.update(boxes[number].after)
    return useful


def _train_of(way: tuple[int, ...], waiting: Collection[int], otherwise: T) -> int | T:
    """The box whose queue gives a step along a way its train: the last one where tuples wait."""
    return next((number for number in reversed(way) if number in waiting), otherwise)


POLICIES: Final = (AutoTraversal, MinCost, MinLatency, MinMemory, BoxAtATime, TupleAtATime)
