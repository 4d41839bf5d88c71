"""Push-through, computed once: what lies behind an operator changes only when queries do."""

from __future__ import annotations

from collections.abc import Iterable

from freshet.model import View, push_through


class PushThrough:
    """The operators that a waiting tuple still has to pass, by the operator that it waits for.

    >>> from freshet.simulation.view import RecordView
    >>> view, through = RecordView.over({0: (2,), 1: (2,), 2: (3,), 3: ()}), PushThrough()
    >>> through.of(view, 1), through.together(view, [0, 1])
    ((1, 2, 3), (0, 1, 2, 3))
    """

    __slots__ = ("_known", "_lines")

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, ...]] = {}
        self._lines: dict[int, tuple[int, ...] | None] = {}

    def of(self, view: View, operator: int) -> tuple[int, ...]:
        """An operator and all behind it, each after those that it reads."""
        nodes = self._known.get(operator)
        if nodes is None:
            nodes = self._known[operator] = push_through(view, operator)
        return nodes

    def line(self, view: View, operator: int) -> tuple[int, ...] | None:
        """The same, if each of them has one reader or is the end of one query; None if a tuple has several ways to go.

        >>> from freshet.simulation.view import RecordView
        >>> PushThrough().line(RecordView.over({0: (1, 2), 1: (), 2: ()}), 0) is None
        True
        """
        if operator not in self._lines:
            through = self.of(view, operator)
            passed = (view.operators[number] for number in through)
            is_line = all(len(each.readers) + len(each.outputs) == 1 for each in passed)
            self._lines[operator] = through if is_line else None
        return self._lines[operator]

    def together(self, view: View, operators: Iterable[int]) -> tuple[int, ...]:
        """Operators and all behind them, each once and after those that it reads."""
        found: dict[int, None] = {}
        for operator in reversed(list(operators)):
            for number in reversed(self.of(view, operator)):
                found.setdefault(number)
        return tuple(reversed(found))

    def forget(self) -> None:
        """Forgets everything, because queries came or went."""
        self._known.clear()
        self._lines.clear()
