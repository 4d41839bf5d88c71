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

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, ...]] = {}

    def of(self, view: View, operator: int) -> tuple[int, ...]:
        """An operator and all behind it, each after those that it reads."""
        nodes = self._known.get(operator)
        if nodes is None:
            nodes = self._known[operator] = push_through(view, operator)
        return nodes

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
