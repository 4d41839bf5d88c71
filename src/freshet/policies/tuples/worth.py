"""What an answer is worth: the weight of its query over the number of its answers (WU Eq. 4.3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from freshet.model import View

PERIOD: Final = 300.0
"""Seconds of the observation period, unless another is given. What is best does not depend on it (WU §4.3.1)."""
_LOOKS: Final = 64
"""Looks in a period."""
_FIRST: Final = 0.25
"""Seconds until the first of them; each later one waits twice as long, up to the period's share."""


class AnswerWorth:
    """Knows what an answer of each query is worth: w_j / n_j, with the answers n_j that were due in the observation
    period. They follow from the tuples that came to the operators that read streams, and from what passes on the way.

    So a query with few answers gets as much time for each as their scarcity is worth, and no query loses by answering
    much. Values are worked out again from time to time; :attr:`version` grows then.

    Args:
        period: Length of the observation period in seconds.

    >>> from freshet.model import Promises
    >>> from freshet.simulation.view import RecordView
    >>> view, worth = RecordView(), AnswerWorth()
    >>> for name, selectivity in (("many", 1.0), ("few", 0.1)):
    ...     (operator,) = view.add(name, [(1.0, selectivity)], Promises(weight=0.5))
    ...     view.operators[operator].came = 100
    >>> worth.of(view)
    {0: 0.005, 1: 0.05}
    """

    def __init__(self, period: float = PERIOD) -> None:
        self._period = period
        self._looks: deque[tuple[float, dict[int, int]]] = deque()
        """When it looked, and how many tuples had come to each operator that reads streams."""
        self._values: dict[int, float] = {}
        self._due = 0.0
        self._pause = min(_FIRST, period / _LOOKS)
        self.version = 0
        """Grows when values may have changed."""
        self.operations = 0
        """Looks at operators."""

    def forget(self) -> None:
        """Queries came, went or changed: values are worked out with the next look, for all that came so far."""
        self._looks.clear()
        self._values.clear()
        self.version += 1

    def of(self, view: View) -> Mapping[int, float]:
        """What an answer of each query is worth now, by query."""
        if not self._values or view.now >= self._due:
            self._look(view)
        return self._values

    def _look(self, view: View) -> None:
        came = self._came(view)
        self._looks.append((view.now, came))
        while len(self._looks) > 1 and self._looks[1][0] <= view.now - self._period:
            self._looks.popleft()
        since, before = self._looks[0]
        whole = since > view.now - self._period
        # Before a period is over, all that came counts, from the beginning.
        counts = {number: count if whole else count - before.get(number, 0) for number, count in came.items()}
        answers = self._answers(view, counts)
        self._values = {
            number: query.promises.weight / max(1.0, answers.get(number, 0.0))
            for number, query in enumerate(view.queries)
        }
        self.version += 1
        self._due = view.now + self._pause
        self._pause = min(2.0 * self._pause, self._period / _LOOKS)

    def _came(self, view: View) -> dict[int, int]:
        numbers = dict.fromkeys(number for query in view.queries for number in query.operators)
        self.operations += len(numbers)
        operators = view.operators
        return {number: operators[number].came for number in numbers if _reads_stream(view, number)}

    def _answers(self, view: View, came: Mapping[int, int]) -> dict[int, float]:
        """Expected number of answers of each query."""
        reach: dict[int, float] = dict(came)
        found: dict[int, float] = {}
        # An operator has a greater number than those that it reads.
        for number in sorted({number for query in view.queries for number in query.operators}):
            each = view.operators[number]
            goes = reach.get(number, 0.0) * each.selectivity
            for query in each.outputs:
                found[query] = goes
            for reader in each.readers:
                if reader not in came:
                    reach[reader] = reach.get(reader, 0.0) + goes
        return found


def _reads_stream(view: View, number: int) -> bool:
    each = view.operators[number]
    return bool(each.queries) and len(each.inputs) < each.ports
