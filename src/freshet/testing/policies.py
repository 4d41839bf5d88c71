"""Policies that no application wants but every test does: they run anything, or hardly anything at once."""

from __future__ import annotations

import random
from collections.abc import Sequence

from freshet.model import NOTHING, Decision, Step, View, push_through
from freshet.policies import Policy


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


class OneBox(Policy):
    """Runs one operator at a time, so that everything it gives out goes to queues."""

    name = "one-box"

    def decide(self, view: View) -> Decision:
        return Decision.run(*(Step((number,)) for number in list(view.ready)[:1]))
