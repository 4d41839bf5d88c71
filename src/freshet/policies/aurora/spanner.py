"""Top-k spanner: a superbox that is put together for each decision, around the most urgent boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from freshet.model import NOTHING, Decision, Step, View
from freshet.policies.aurora.slope_slack import SlopeSlack


class TopSpanner(SlopeSlack):
    """Runs a tree that spans the most urgent boxes of one query, up to its output (CAR §6.3.6.1.2, item 1).

    Boxes are ranked by slope and slack. Of the best k, it takes those of one query: the query of the best box. If
    several queries share that box, it takes the one with most of the k. Boxes between them and the output run with
    them. If a box on the way has several inputs, tuples that wait in front of its other inputs come along, so that the
    inputs of a join stay in balance (Fig. 6.6). If k is the number of a query's boxes, it runs the whole query tree.

    Args:
        boxes: k, the number of best-ranked boxes that are looked at.

    Box 2 joins 0 and 1, and box 0 is the most urgent; what waits at 1 comes along:

    >>> from freshet.model import Curve, Promises
    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView.over({0: (2,), 1: (2,), 2: (3,), 3: ()})
    >>> for number, arrival in ((0, 0.0), (1, 0.5)):
    ...     operator = view.operators[number]
    ...     operator.promises = Promises(curve=Curve.deadline(9.0))
    ...     operator.pending, operator.head_arrival = 1, arrival
    ...     view.ready[number] = None
    >>> [step.nodes for step in TopSpanner(1).decide(view).steps]
    [(0, 1, 2, 3)]
    """

    name: ClassVar[str] = "top-k-spanner"
    rule = "tree over the boxes of the steepest slope, then of the least slack"
    push: ClassVar[bool] = True

    def __init__(self, boxes: int = 5) -> None:
        super().__init__(boxes)

    def decide(self, view: View) -> Decision:
        """One step: the spanning tree."""
        if not view.ready:
            return NOTHING
        self.costs.ran(self._completed)
        self._completed = 0
        best = self.ranked(view)
        query = self._query(view, best)
        tops = [number for number in best if query in view.operators[number].queries]
        return Decision.run(Step(self.spanned(view, query, tops)))

    def spanned(self, view: View, query: int, tops: Iterable[int]) -> tuple[int, ...]:
        """The operators of a query from some of its boxes to its output, each after those that it reads."""
        whole = view.queries[query].operators
        inside, waiting = set(tops), self._with_tuples(view, whole)
        for number in whole:
            each = view.operators[number]
            if not inside.isdisjoint(each.inputs):
                inside.add(number)
                if len(each.inputs) > 1:
                    inside |= self._balancing(view, each.inputs, waiting)
        # What was added on the way up may lie before what was passed: what reads it is inside already.
        return tuple(number for number in whole if number in inside)

    def _query(self, view: View, best: Sequence[int]) -> int:
        """The query of the best box. If several queries share the box, it is the one with most of the other boxes."""
        counts = Counter(query for number in best for query in view.operators[number].queries)
        return max(view.operators[best[0]].queries, key=lambda query: (counts[query], -query))

    def _with_tuples(self, view: View, whole: Sequence[int]) -> set[int]:
        """The operators of a query at which tuples wait, and those on their way to the output."""
        found: set[int] = set()
        for number in whole:
            if number in view.ready or not found.isdisjoint(view.operators[number].inputs):
                found.add(number)
        return found

    def _balancing(self, view: View, sources: Iterable[int], waiting: set[int]) -> set[int]:
        """What leads to some operators and has tuples, or gets some."""
        found: set[int] = set()
        stack = [number for number in sources if number in waiting]
        while stack:
            number = stack.pop()
            if number not in found:
                found.add(number)
                stack += [each for each in view.operators[number].inputs if each in waiting]
        return found


POLICIES: Final = (TopSpanner,)
