"""Policies that no application wants but every test does: they run anything, or hardly anything at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

from freshet.model import NOTHING, Decision, Step, View, push_through
from freshet.policies import Everything, MasterScheduler, Policy


class RandomSteps(Policy):
    """Decides at random: any ready operators, any part of what is behind them, any train, one step or two.

    Args:
        seed: The same seed makes the same choices.
    """

    name = "random-steps"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def decide(self, view: View) -> Decision:
        ready = list(view.ready)
        if not ready:
            return NOTHING
        steps = (self._step(view, ready) for _ in range(self._random.randint(1, 2)))
        return Decision.run(*steps)

    def _step(self, view: View, ready: Sequence[int]) -> Step:
        nodes: dict[int, None] = {}
        for number in self._random.sample(ready, self._random.randint(1, len(ready))):
            behind = push_through(view, number)
            kind = self._random.random()
            if kind < 0.5:
                chosen = behind
            elif kind < 0.75:
                chosen = behind[: self._random.randint(1, len(behind))]
            else:
                chosen = (number, *(other for other in behind if self._random.random() < 0.5))
            nodes |= dict.fromkeys(chosen)
        if self._random.random() < 0.2:
            nodes |= dict.fromkeys(self._random.sample(range(len(view.operators)), 1))
        return Step(tuple(nodes), self._random.choice([None, 1, 2, 5]))


class RandomStrategies(MasterScheduler):
    """A master scheduler in which queries get other strategies at random, and other weights.

    Args:
        seed: The same seed makes the same choices.
        share: Share of the decisions before which one query changes.
    """

    name = "random-strategies"
    CHOICES: ClassVar = (None, "wrr(0.00001)", "pcs(2)", "segment(1)", "segment(3)", "simplified-segment(2)", "rr(1)",
                         "baat", "slope-slack(2)", "fas-mcq")  # fmt: skip

    def __init__(self, seed: int = 0, share: float = 0.3) -> None:
        super().__init__(Everything(), quantum=1e-5)
        self._random, self._share = random.Random(seed), share

    def decide(self, view: View) -> Decision:
        if view.queries and self._random.random() < self._share:
            query = self._random.choice(view.queries).name
            self.assign(query, self._random.choice(self.CHOICES), self._random.choice((0.0, 0.01, 0.5, 1.0)))
            self.urge(query, self._random.choice((0.0, 0.5, 1.0)))
        return super().decide(view)


class OneBox(Policy):
    """Runs one operator at a time, so that everything it gives out goes to queues."""

    name = "one-box"

    def decide(self, view: View) -> Decision:
        return Decision.run(*(Step((number,)) for number in list(view.ready)[:1]))
