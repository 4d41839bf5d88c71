"""The remaining cost of a waiting tuple on its way to the output."""

from __future__ import annotations

from collections.abc import Iterable

from freshet.model import View
from freshet.policies.pace import Pace
from freshet.policies.pushing import PushThrough


class RestCosts:
    """C(b): expected seconds to take one tuple from operator b's queue to the output, without the overhead of steps.

    It is a sum over b and all operators behind it: the cost of each, times the selectivity of those between b and it.
    (CAR §4.2.2 prints cost over output selectivity, which is too much if tuples are filtered out.) Learned costs drift
    slowly, so values are kept and computed again at a :class:`~freshet.policies.pace.Pace`.

    Args:
        through: Knows what lies behind an operator; pass one if you keep it up to date.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); path = view.add("q", [(2.0, 0.5), (4.0, 0.5), (8.0, 1.0)])
    >>> costs = RestCosts()
    >>> [costs.of(view, operator) for operator in path]
    [6.0, 8.0, 8.0]
    """

    __slots__ = ("_pace", "_through", "values", "version")

    def __init__(self, through: PushThrough | None = None) -> None:
        self._through = through
        self.values: dict[int, float] = {}
        """The values that are known now, for callers that need many; :meth:`look_up` adds missing ones."""
        self._pace = Pace()
        self.version = 0
        """Grows when values may have changed."""

    def of(self, view: View, operator: int) -> float:
        """C of an operator."""
        value = self.values.get(operator)
        if value is None:
            self._look_up(view, operator)
            value = self.values[operator]
        return value

    def look_up(self, view: View, operators: Iterable[int]) -> None:
        """Makes sure that :attr:`values` has these operators."""
        for number in operators:
            if number not in self.values:
                self._look_up(view, number)

    def _look_up(self, view: View, operator: int) -> None:
        values, operators = self.values, view.operators
        through = self._through or PushThrough()
        for number in reversed(through.of(view, operator)):
            each = operators[number]
            values[number] = each.cost + each.selectivity * sum([values[reader] for reader in each.readers])

    def ran(self, units: int = 1) -> None:
        """Units ran: after enough of them, all values are computed again."""
        if self._pace.is_due(units, len(self.values)):
            self.forget()

    def forget(self) -> None:
        """Drops all values, so that they are computed again when asked for."""
        self._pace.restart()
        self.values.clear()
        self.version += 1
