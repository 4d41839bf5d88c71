"""The hard budget of a mirror: what may be spent now."""

from __future__ import annotations

from collections import deque
from typing import Final

from freshet.mirror.elements import check_budget

_ALIKE: Final = 1e-9


class Allowance:
    """Spends at most ``budget`` a second, counted over every ``window`` seconds, also after a pause.

    Two rules hold together. A bucket that fills at the budget and holds little paces the polls, so that a pause is not
    made up for. A record of the last window makes the bound exact. What costs more than a whole window allows waits
    until nothing else is in the window, and then blocks it for as long as its cost lasts.

    Something that takes time, such as a request, reaches the other side at a moment between its begin and its end. If
    it is spent by :meth:`begin` and :meth:`end`, it counts for a window after its end, so that the other side sees no
    window with more than the budget, however late requests are (up to a window; then they count as ended).

    Args:
        budget: Polls or bytes per second.
        window: Seconds over which the budget is kept.
        burst: Seconds of budget that the bucket holds.

    >>> allowance = Allowance(2.0)
    >>> [allowance.take(now, 1.0) for now in (100.0, 100.1, 100.5, 101.0)]
    [True, False, True, True]
    """

    def __init__(self, budget: float, *, window: float = 10.0, burst: float = 0.1) -> None:
        self.budget = check_budget(budget)
        self._window = window
        self._burst = burst * self.budget
        self._level = self._burst
        self._filled = -float("inf")
        self._recent: deque[tuple[float, float]] = deque()
        self._spent = 0.0
        self._begun: dict[int, tuple[float, float]] = {}
        self._number = 0

    def take(self, now: float, cost: float) -> bool:
        """Spends if the budget allows it now; whether it did."""
        if not self.affords(now, cost):
            return False
        self.charge(now, cost)
        return True

    def affords(self, now: float, cost: float) -> bool:
        """Whether so much may be spent now."""
        self._pass(now)
        limit = self._window * self.budget * (1.0 + _ALIKE)
        if self._level < self._enough(cost):
            return False
        return self._spent + cost <= limit or not (self._recent or self._begun)

    def charge(self, now: float, cost: float) -> None:
        """Spends what was not asked for in advance: a redirect, a retry, more bytes than expected."""
        self._pass(now)
        self._level -= cost
        self._spent += cost
        if cost:
            self._recent.append((now, cost))

    def begin(self, now: float, cost: float) -> int:
        """Spends on something that takes time; returns a number for :meth:`end`.

        >>> allowance = Allowance(1.0, window=2.0, burst=2.0)
        >>> first, second = allowance.begin(0.0, 1.0), allowance.begin(0.0, 1.0)
        >>> allowance.end(1.5, first)
        >>> [allowance.affords(now, 1.0) for now in (2.0, 3.4, 3.6)]
        [False, False, True]
        """
        self._pass(now)
        self._level -= cost
        self._spent += cost
        self._number += 1
        self._begun[self._number] = (now, cost)
        return self._number

    def end(self, now: float, number: int) -> None:
        """It has ended."""
        self._pass(now)
        if (begun := self._begun.pop(number, None)) is not None:
            self._recent.append((max(now, self._filled), begun[1]))

    def wait(self, now: float, cost: float) -> float:
        """Seconds until so much may be spent."""
        self._pass(now)
        lacking = max(0.0, (self._enough(cost) - self._level) / self.budget)
        freed, spent = 0.0, self._spent
        for when, each in self._recent:
            if spent + cost <= self._window * self.budget * (1.0 + _ALIKE):
                break
            freed, spent = when + self._window - now, spent - each
        return max(lacking, freed)

    def _enough(self, cost: float) -> float:
        """The bucket holds little; what costs more than that may leave it in debt, but begins only when it is full."""
        return min(cost, self._burst) * (1.0 - _ALIKE)

    def _pass(self, now: float) -> None:
        if now > self._filled:
            self._level = min(self._burst, self._level + (now - self._filled) * self.budget)
            self._filled = now
        # They are in the order of their times.
        while self._begun and self._begun[first := next(iter(self._begun))][0] <= now - self._window:
            self._recent.append((now, self._begun.pop(first)[1]))
        while self._recent and self._recent[0][0] <= now - self._window:
            self._spent -= self._recent.popleft()[1]
        if not (self._recent or self._begun):
            self._spent = 0.0
