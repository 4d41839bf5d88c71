"""A bound on what all outputs together should keep: the balance of response time and freshness (FAS §5.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from freshet.model.errors import UserError
from freshet.model.units import duration_text, parse_duration

Balanced = Literal["response", "freshness"]


@dataclass(frozen=True, slots=True)
class BalanceBound:
    """What all outputs together should keep, while the other of the two is as good as it can be.

    Args:
        measure: ``response``: the mean response time of answers, at most ``value`` seconds. ``freshness``: the mean
            freshness of outputs, at least ``value``.
        value: The bound.

    >>> BalanceBound.parse({"response": "500 ms"}).text(), BalanceBound.parse({"freshness": 0.9}).text()
    ('response at most 500 ms', 'freshness at least 0.9')
    """

    measure: Balanced
    value: float

    @classmethod
    def parse(cls, given: Any) -> BalanceBound:
        """The bound that a user writes.

        >>> BalanceBound.parse({"speed": 3})
        Traceback (most recent call last):
        freshet.model.errors.UserError: expect: must be {response = "500 ms"} or {freshness = 0.9}, not {'speed': 3}
        """
        if isinstance(given, BalanceBound):
            return given
        if isinstance(given, dict) and given.keys() == {"response"}:
            value = parse_duration(given["response"])
            if value <= 0.0:
                raise UserError("expect: a response time of 0 cannot be kept: use a value above 0")
            return cls("response", value)
        if isinstance(given, dict) and given.keys() == {"freshness"}:
            share = given["freshness"]
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
                raise UserError(f"expect: freshness is a share between 0 and 1, not {share!r}")
            return cls("freshness", float(share))
        raise UserError(f'expect: must be {{response = "500 ms"}} or {{freshness = 0.9}}, not {given!r}')

    def text(self) -> str:
        """For people."""
        if self.measure == "response":
            return f"response at most {duration_text(self.value)}"
        return f"freshness at least {self.value:g}"

    def excess(self, observed: float) -> float:
        """By how much a figure misses the bound, as a logarithm: above 0 if it does."""
        if self.measure == "response":
            return math.log(max(observed, 1e-9) / self.value)
        return math.log(max(1.0 - observed, 1e-9) / (1.0 - self.value))
