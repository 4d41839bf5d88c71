"""How often a query is looked at, how far ahead, and how long it stays with a strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from freshet.model.errors import UserError
from freshet.model.promises.expectation import Expectations
from freshet.model.units import duration_text

OptimizerMode = Literal["act", "advise", "off"]
"""What the optimizer does: it changes strategies; it only says which it would take; it looks at nothing, and queries
only have the strategies that were declared for them."""


@dataclass(frozen=True, slots=True)
class LookSettings:
    """Times of the optimizer, in seconds.

    Args:
        every: Between two looks at a query (MAV §5 looks every three seconds).
        ahead: How far ahead expectations are read to find violations (MAV §4.9); 0: they are read now. It must be
            shorter than ``every``.
        least_stay: A query stays with a new strategy for at least so long; None: for two intervals. In the first one
            it still answers what has waited under the old strategy.

    >>> LookSettings().stay, LookSettings(every=1.0, least_stay=5.0).stay
    (6.0, 5.0)
    >>> LookSettings(every=3.0, ahead=3.0)
    Traceback (most recent call last):
    freshet.model.errors.UserError: a look-ahead of 3 s is too long: use less than the 3 s between looks
    """

    every: float = 3.0
    ahead: float = 0.0
    least_stay: float | None = None

    def __post_init__(self) -> None:
        if not self.every > 0.0:
            raise UserError(f"the time between looks must be above 0, not {self.every:g}")
        if not self.ahead >= 0.0:
            raise UserError(f"a look-ahead is a duration such as '1 s', not {self.ahead:g}")
        if self.ahead >= self.every:
            longest = duration_text(self.every)
            raise UserError(
                f"a look-ahead of {duration_text(self.ahead)} is too long: use less than the {longest} between looks"
            )

    def of_query(self, expectations: Expectations) -> LookSettings:
        """The same for a query, which may say how often it is looked at; refused if it looks further ahead than that.

        >>> LookSettings().of_query(Expectations.parse({"latency": "1 s", "every": "500 ms"})).every
        0.5
        """
        return self if expectations.every is None else replace(self, every=expectations.every)

    @property
    def stay(self) -> float:
        """The least time between two switches of a query."""
        return 2.0 * self.every if self.least_stay is None else self.least_stay

    def refused(self, round_s: float) -> str | None:
        """Why the look-ahead is of no use, if running all operators of the query once takes so long: what is decided
        now has no effect before (MAV §4.9). None: it is of use.

        >>> LookSettings(ahead=0.5).refused(round_s=0.7)
        'a look-ahead of 500 ms is too short: running all operators once takes 700 ms'
        """
        if self.ahead == 0.0 or self.ahead > round_s:
            return None
        once = duration_text(round_s)
        return f"a look-ahead of {duration_text(self.ahead)} is too short: running all operators once takes {once}"
