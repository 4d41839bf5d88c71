"""Two levels: which superbox, then how to traverse it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, Final, Literal

from freshet.model import Chain, Plan, Step, UserError, View
from freshet.policies.base import Policy
from freshet.policies.superbox import SELECTIONS, Superbox, graph_of
from freshet.policies.trains import RowLimit, Trains, WholeQueue
from freshet.policies.traversal import TRAVERSALS, Box, Boxes, TraversalName, faster

_STILL_DEAR: Final = 0.8
"""Share of a high cost below which an operator that had it is cheap again: a cost near the border must not choose
superboxes anew with every run."""


class TwoLevel(Policy):
    """Serves superboxes in turn, each by a traversal (CAR §3.3).

    On Spark a min-cost superbox is one fused job, and intermediate queues exist only between superboxes: the answers
    are the same, what differs is overhead, memory and latency.

    Args:
        selection: Which superboxes there are: ``applications`` (one per query, AAAT), ``intersections``, ``chains``,
            ``boxes`` (a box at a time, BAAT).
        traversal: ``min-cost``, ``min-latency``, ``min-memory``, or ``auto``: the first or the second, whichever has
            the lower expected latency by the measured costs and overhead.
        size: Superboxes in a plan; None: every one that has waiting tuples, once.
        trains: How many of the waiting tuples to take.
        high_cost: Seconds per tuple from which on an operator ends a superbox, so that what lies behind it need not
            wait for it (CAR §6.3.7). Superboxes are chosen anew when a learned cost gets there, or falls well below it.
        seed: Of the order of the turns; None: that of the operators.
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
        self.trains: Trains = trains or WholeQueue()
        self.operations = 0
        self._high_cost, self._seed = high_cost, seed
        self._ends: set[int] = set()
        self._superboxes: list[Superbox] = []
        self._owner: dict[int, int] = {}
        self._known = -1
        self._last = -1
        self._plans: dict[tuple[int, ...], Plan] = {}

    def changed(self, view: View, query: int) -> None:
        """A query came or went: superboxes are chosen anew."""
        self._known = -1

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """Operators ran: where that made one dear, or cheap, superboxes are chosen anew."""
        if self._high_cost < math.inf and any(self._is_dear(view, each) != (each in self._ends) for each in operators):
            self._known = -1

    def decide(self, view: View) -> Plan:
        """The next superboxes in turn that have waiting tuples."""
        if self._known != len(view.operators):
            self._select(view)
        members: dict[int, list[int]] = {}
        owner = self._owner
        for number in view.ready:
            members.setdefault(owner[number], []).append(number)
        turns = sorted(members)
        if turns:
            self.operations += 1 + len(turns) + int(len(turns) * math.log2(len(turns)))
        if self.size is not None and len(turns) > self.size:
            after = [turn for turn in turns if turn > self._last]
            turns = (after + turns)[: self.size]
            self._last = turns[-1]
        return tuple(step for turn in turns for step in self._steps(view, turn, members[turn]))

    def _is_dear(self, view: View, number: int) -> bool:
        """Whether an operator ends a superbox; one that does goes on doing so until it is clearly cheap."""
        return view.operators[number].cost >= self._high_cost * (_STILL_DEAR if number in self._ends else 1.0)

    def _select(self, view: View) -> None:
        self._ends = {number for number in range(len(view.operators)) if self._is_dear(view, number)}
        self._superboxes = SELECTIONS[self.selection](graph_of(view), self._ends)
        if self._seed is not None:
            random.Random(self._seed).shuffle(self._superboxes)
        self._owner = {number: turn for turn, superbox in enumerate(self._superboxes) for number in superbox}
        self._known = len(view.operators)
        self._plans.clear()

    def _steps(self, view: View, turn: int, ready: list[int]) -> Plan:
        superbox = self._superboxes[turn]
        self.operations += len(ready)
        fixed = isinstance(self.trains, WholeQueue | RowLimit)
        if not fixed or self.traversal in ("auto", "min-memory"):
            return self._traverse(view, superbox, ready)
        # What a static traversal does depends only on which boxes have tuples.
        key = (turn, *sorted(ready))
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) > 100_000:
                self._plans.clear()
            plan = self._plans[key] = self._traverse(view, superbox, ready)
        return plan

    def _traverse(self, view: View, superbox: Superbox, ready: list[int]) -> Plan:
        boxes = _boxes(view, superbox)
        name = self.traversal
        if name == "auto":
            waiting = {number: float(view.operators[number].pending) for number in ready}
            name = faster(superbox, boxes, waiting, view.overhead)
        calls = _useful(TRAVERSALS[name](superbox, boxes), boxes, ready)
        # A train has the size that suits the queue that it is taken from (CAR §3.3.2).
        sized = [(self.trains.rows(view, _train_of(chain, ready)), chain) for chain in _chains(calls, boxes)]
        if name == "min-cost":
            groups = groupby(sized, key=itemgetter(0))
            return tuple(Step(tuple(chain for _, chain in some), rows) for rows, some in groups)
        return tuple(Step((chain,), rows) for rows, chain in sized)


class BoxAtATime(TwoLevel):
    """Every operator that has waiting tuples, one after the other in an order that never changes (BAAT, CAR §3.4.2).

    It is the round robin of CAR §4.2.1, which knows nothing of promises.
    """

    name: ClassVar[str] = "baat"

    def __init__(self, size: int | None = None, *, trains: Trains | None = None, seed: int | None = None) -> None:
        super().__init__("boxes", size=size, trains=trains, seed=seed)


class TupleAtATime(BoxAtATime):
    """One tuple through one operator at a time (TAAT): the baseline without any batching (CAR §3.4.5)."""

    name: ClassVar[str] = "taat"

    def __init__(self, *, seed: int | None = None) -> None:
        super().__init__(trains=RowLimit(1), seed=seed)


class MinLatency(TwoLevel):
    """Query trees as superboxes, the cheapest outputs first."""

    name: ClassVar[str] = "aaat-min-latency"

    def __init__(self, size: int | None = None) -> None:
        super().__init__(traversal="min-latency", size=size)


class MinMemory(TwoLevel):
    """Query trees as superboxes, the most memory freed per second first."""

    name: ClassVar[str] = "aaat-min-memory"

    def __init__(self, size: int | None = None) -> None:
        super().__init__(traversal="min-memory", size=size)


class MinCost(TwoLevel):
    """Query trees as superboxes, each box called once."""

    name: ClassVar[str] = "aaat-min-cost"

    def __init__(self, size: int | None = None) -> None:
        super().__init__(traversal="min-cost", size=size)


class AutoTraversal(TwoLevel):
    """Query trees as superboxes; min-cost or min-latency, whichever is expected to be faster now."""

    name: ClassVar[str] = "aaat"

    def __init__(self, size: int | None = None) -> None:
        super().__init__(traversal="auto", size=size)


def _boxes(view: View, superbox: Superbox) -> Boxes:
    inside = set(superbox)
    boxes = {}
    for number in superbox:
        each = view.operators[number]
        place = each.path.index(number) + 1
        after = each.path[place] if place < len(each.path) else None
        size = each.bytes_waiting / each.pending if each.pending and each.bytes_waiting else 1.0
        boxes[number] = Box(after if after in inside else None, each.cost, each.selectivity, size)
    return boxes


def _useful(calls: Iterable[int], boxes: Boxes, ready: Iterable[int]) -> list[int]:
    """The calls that may find tuples: those of boxes where some wait, or have been sent to by an earlier call."""
    waiting = set(ready)
    useful = []
    for number in calls:
        if number in waiting:
            waiting.discard(number)
            useful.append(number)
            after = boxes[number].after
            if after is not None:
                waiting.add(after)
    return useful


def _train_of(chain: Chain, ready: Iterable[int]) -> int:
    """The box whose queue a chain takes its train from: the last one where tuples wait, or the first, where the tuples
    that it is for are still to come."""
    waiting = set(ready)
    return next((number for number in reversed(chain.operators) if number in waiting), chain.operators[0])


def _chains(calls: list[int], boxes: Boxes) -> tuple[Chain, ...]:
    """Calls cut into chains of consecutive operators of a path."""
    chains: list[list[int]] = []
    for number in calls:
        if chains and boxes[chains[-1][-1]].after == number:
            chains[-1].append(number)
        else:
            chains.append([number])
    return tuple(Chain(tuple(chain)) for chain in chains)
