"""The observer that keeps weights up to date: by the time of day, and by who follows an output (FAS §4.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from freshet.engine.engine import Engine
from freshet.engine.events import Event
from freshet.model.promises.weight_plan import WeightRule
from freshet.policies import weights_from_subscribers

EVERY: Final = 1.0
"""Seconds between two looks, while something happens."""


class WeightKeeper:
    """Looks now and then what weights should be, and has those changed that are not.

    Args:
        engine: Is told on its own thread, between two decisions.
        day: The second of the day at a time.
        followers: How many follow the outputs of these queries, by name.
        change: Changes the weight of a query.
    """

    def __init__(
        self,
        engine: Engine,
        day: Callable[[float], float],
        followers: Callable[[list[str]], Mapping[str, int]],
        change: Callable[[str, float], None],
    ) -> None:
        self._engine, self._day, self._followers, self._change = engine, day, followers, change
        self._rules: dict[str, WeightRule] = {}
        self._due = -math.inf

    def add(self, query: str, rule: WeightRule) -> None:
        """A query whose weight follows a rule; one that is always the same needs none."""
        if rule.subscribers or not rule.plan.is_constant:
            self._rules[query] = rule
            self._due = -math.inf

    def drop(self, query: str) -> None:
        """A query is gone, or has a weight by hand from now on."""
        self._rules.pop(query, None)

    def tell(self, event: Event) -> None:
        """Something happened."""
        if self._rules and event.now >= self._due:
            self._due = event.now + EVERY
            self._engine.call(lambda: self.look(event.now))

    def look(self, now: float) -> None:
        """Brings all weights up to date. On the loop's thread."""
        counted = [name for name, rule in self._rules.items() if rule.subscribers]
        shares = weights_from_subscribers(self._followers(counted)) if counted else {}
        second = self._day(now)
        for name, rule in self._rules.items():
            weight = rule.plan.at(second) * shares.get(name, 1.0)
            meter = self._engine.meters.queries.get(name)
            if meter is not None and meter.state == "active" and meter.promises.weight != weight:
                self._change(name, weight)
