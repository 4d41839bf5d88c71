"""Superbox traversals: in which order the boxes of a superbox are called, and what that costs (CAR §3.3.1.2)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from freshet.policies.aurora.superbox import SuperboxNodes

Traversal = tuple[int, ...]
"""Boxes in the order of their calls; a call takes all tuples that wait in front of the box."""
TraversalName = Literal["min-cost", "min-latency", "min-memory"]


class Box(NamedTuple):
    """What a traversal knows of a box.

    Args:
        after: The boxes of the superbox that read its output; if there are none, the output leaves the superbox.
        cost: Seconds per tuple.
        selectivity: Tuples out per tuple in.
        size: Bytes of a tuple that waits in front of it.
    """

    after: tuple[int, ...] = ()
    cost: float = 1.0
    selectivity: float = 1.0
    size: float = 1.0


Boxes = Mapping[int, Box]


def downstream(boxes: Boxes, box: int) -> list[int]:
    """D(b): a box and all boxes after it; if it has several readers, one way to an output after the other.

    >>> downstream({0: Box((1, 2)), 1: Box((3,)), 2: Box(), 3: Box()}, 0)
    [0, 2, 1, 3]
    """
    ways = boxes[box].after
    if len(ways) > 1:
        ways = tuple(sorted(ways, key=lambda way: output_cost(boxes, way)))
    return [box, *(each for way in ways for each in downstream(boxes, way))]


def min_cost(superbox: SuperboxNodes, boxes: Boxes) -> Traversal:
    """Post order: every box is called once, after all boxes that lead to it, which is the least overhead."""
    return superbox


def min_latency(superbox: SuperboxNodes, boxes: Boxes) -> Traversal:
    """The cheapest output first: D(b) for each box b by its output cost; boxes of equal cost in post order."""
    ranked = sorted(superbox, key=lambda box: output_cost(boxes, box))
    return tuple(each for box in ranked for each in downstream(boxes, box))


def output_cost(boxes: Boxes, box: int) -> float:
    """Seconds to make one output tuple from the tuples that wait in front of a box.

    It takes 1 / o_sel(k) tuples in front of each box k on the way, where o_sel is the selectivity from k to the output.
    If there are several ways, the cheapest one counts.
    """
    return _cheapest_output(boxes, box)[0]


def _cheapest_output(boxes: Boxes, box: int) -> tuple[float, float]:
    """Output cost and o_sel."""
    each = boxes[box]
    total, behind = min((_cheapest_output(boxes, way) for way in each.after), default=(0.0, 1.0))
    selectivity = behind * each.selectivity
    return total + each.cost / selectivity if selectivity else float("inf"), selectivity


def min_memory(superbox: SuperboxNodes, boxes: Boxes) -> Traversal:
    """The most memory freed per second first (CAR §3.3.1.2).

    After a box, it follows the tuples downstream while the rate rises. Then comes the best box with waiting tuples,
    until none wait. (The procedure printed in CAR §3.3.1.2 neither gives the order printed for its Table 3.3 nor
    leaves the queues empty; this one leaves them empty.)

    It ends whatever the rates are: every turn calls at least one box, and a call removes that box from those that wait
    and adds only boxes that are nearer to the output.

    >>> min_memory((0, 1), {0: Box((1,), cost=1e-6, selectivity=1.001, size=100.0), 1: Box()})
    (1, 0, 1)
    """
    place = {box: index for index, box in enumerate(superbox)}
    rates = {box: memory_rate(boxes[box]) for box in superbox}
    waiting = set(superbox)
    order: list[int] = []
    while waiting:
        box: int | None = max(waiting, key=lambda each: (rates[each], -place[each]))
        last: int | None = None
        while box is not None and (last is None or rates[box] > rates[last]):
            order.append(box)
            waiting.discard(box)
            last, after = box, boxes[box].after
            if boxes[box].selectivity > 0.0:
                waiting.update(after)
            box = max(after, key=lambda each: (rates[each], -place[each]), default=None)
    return tuple(order)


def memory_rate(box: Box) -> float:
    """mem_rr: bytes freed per second of processing (CAR §3.3.1.2); negative if a box makes more than it takes. Output
    with several readers waits for each of them.

    >>> memory_rate(Box(cost=0.0, selectivity=0.5)), memory_rate(Box(cost=0.0, selectivity=2.0))
    (inf, -inf)
    >>> memory_rate(Box((1, 2), selectivity=0.4))
    0.19...
    """
    freed = box.size * (1.0 - box.selectivity * max(1, len(box.after)))
    if not box.cost:
        return float("inf") if freed >= 0.0 else float("-inf")
    return freed / box.cost


def ways_of(calls: Iterable[int], boxes: Boxes) -> list[tuple[int, ...]]:
    """The calls, cut wherever one does not read the output of the one before it.

    >>> ways_of((4, 5, 3, 2, 6, 1), EXAMPLE)
    [(4,), (5, 3, 2), (6, 1)]
    """
    found: list[tuple[int, ...]] = []
    for number in calls:
        if found and number in boxes[found[-1][-1]].after:
            found[-1] += (number,)
        else:
            found.append((number,))
    return found


def releases_of(
    calls: Iterable[int], boxes: Boxes, waiting: Mapping[int, float], overhead: float
) -> list[tuple[int, ...]]:
    """The calls, cut also where that frees memory: the input of a step is free when the step ends.

    A box continues the step before it or begins a step of its own. If it begins one, the input of the step before is
    free while the box runs. Instead, the output of that step waits while the box runs and for the overhead of a step.

    >>> boxes = {0: Box((1, 2), selectivity=0.1), 1: Box(), 2: Box()}
    >>> releases_of((0, 1, 2), boxes, {0: 100.0}, overhead=1.0)
    [(0,), (1,), (2,)]
    >>> releases_of((0, 1, 2), boxes, {0: 100.0}, overhead=100.0)
    [(0, 1), (2,)]
    """
    queues = dict(waiting)
    steps: list[tuple[int, ...]] = []
    took = made = 0.0
    for number in calls:
        box, rows = boxes[number], queues.pop(number, 0.0)
        seconds = rows * box.cost
        if steps and number in boxes[steps[-1][-1]].after and made * (seconds + overhead) >= took * seconds:
            steps[-1] += (number,)
        else:
            steps.append((number,))
            took = rows * box.size
        made = sum(rows * box.selectivity * boxes[each].size for each in box.after)
        for each in box.after:
            queues[each] = queues.get(each, 0.0) + rows * box.selectivity
    return steps


TRAVERSALS: Final[Mapping[TraversalName, Callable[[SuperboxNodes, Boxes], Traversal]]] = {
    "min-cost": min_cost,
    "min-latency": min_latency,
    "min-memory": min_memory,
}


class Walk(NamedTuple):
    """The expected result of a traversal of waiting tuples.

    Args:
        processing: Seconds in boxes.
        calls: Number of box calls, without calls of boxes that have no tuples.
        seconds: Total time, with the overhead of the calls.
        outputs: Number of output tuples.
        latency: Mean time at which they came out.
        memory: (time, bytes waiting) after each call.
    """

    processing: float
    calls: int
    seconds: float
    outputs: float
    latency: float
    memory: tuple[tuple[float, float], ...]

    def memory_until(self, end: float) -> float:
        """Byte-seconds in use up to a time; a train's memory falls evenly while it is processed."""
        points = [point for point in self.memory if point[0] < end]
        points.append((end, points[-1][1] if end >= self.seconds else self._memory_at(end)))
        return sum((b[0] - a[0]) * (a[1] + b[1]) / 2.0 for a, b in pairwise(points))

    def _memory_at(self, time: float) -> float:
        for before, after in pairwise(self.memory):
            if before[0] <= time <= after[0] and after[0] > before[0]:
                return before[1] + (after[1] - before[1]) * (time - before[0]) / (after[0] - before[0])
        return self.memory[-1][1]


def walk(
    traversal: Sequence[int],
    boxes: Boxes,
    waiting: Mapping[int, float],
    overhead: float = 0.0,
    step: float = 0.0,
    begins: Container[int] = (),
) -> Walk:
    """Computes the result of a traversal from the waiting tuples and the overhead of a call.

    ``begins`` has the places in the traversal at which a step begins; a step that finds tuples costs ``step``.

    The example of CAR Tables 3.1 and 3.2 (:data:`EXAMPLE`), processing 1 per tuple and no overhead:

    >>> superbox = (4, 5, 3, 2, 6, 1)
    >>> one_each = dict.fromkeys(superbox, 1)
    >>> walk(min_cost(superbox, EXAMPLE), EXAMPLE, one_each).latency
    12.5
    >>> round(walk(min_latency(superbox, EXAMPLE), EXAMPLE, one_each).latency, 2)
    7.17
    """
    queues = {box: float(waiting.get(box, 0.0)) for box in boxes}
    now = processing = outputs = moments = 0.0
    calls = 0
    memory = [(0.0, _bytes(boxes, queues))]
    for place, number in enumerate(traversal):
        rows, box = queues[number], boxes[number]
        if not rows:
            continue
        calls += 1
        begin = now + overhead + (step if place in begins else 0.0)
        now = begin + rows * box.cost
        processing += rows * box.cost
        queues[number] = 0.0
        made = rows * box.selectivity
        for each in box.after:
            queues[each] += made
        if not box.after:
            outputs += made
            # The j-th of n tuples leaves when it is processed.
            moments += made * (begin + box.cost * (rows + 1.0) / 2.0)
        memory.append((now, _bytes(boxes, queues)))
    return Walk(processing, calls, now, outputs, moments / outputs if outputs else 0.0, tuple(memory))


def _bytes(boxes: Boxes, queues: Mapping[int, float]) -> float:
    return sum(rows * boxes[number].size for number, rows in queues.items())


def faster(
    superbox: SuperboxNodes, boxes: Boxes, waiting: Mapping[int, float], overhead: float
) -> Literal["min-cost", "min-latency"]:
    """The traversal with the lower mean latency (CAR §3.4.3).

    In the example min-latency wins if processing costs more than 0.22 of a call:

    >>> one_each = dict.fromkeys((4, 5, 3, 2, 6, 1), 1)
    >>> [faster((4, 5, 3, 2, 6, 1), EXAMPLE, one_each, 1.0 / ratio) for ratio in (0.21, 0.22)]
    ['min-cost', 'min-latency']
    """
    latencies = [walk(order(superbox, boxes), boxes, waiting, overhead).latency for order in (min_cost, min_latency)]
    return "min-latency" if latencies[1] < latencies[0] else "min-cost"


EXAMPLE: Final[Boxes] = {4: Box((2,)), 5: Box((3,)), 3: Box((2,)), 2: Box((1,)), 6: Box((1,)), 1: Box()}
"""The query tree of CAR Fig. 3.5; every box costs 1 per tuple and lets all through."""
