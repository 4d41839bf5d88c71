"""A refresher against elements that change: how soon it learns, and how it finds its way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.learning import Learner
from freshet.mirror.measures import perceived_freshness
from freshet.mirror.plan import plan
from freshet.mirror.refresher import Refresher
from freshet.mirror.simulator.changing import ChangingElements

Floats = NDArray[np.float64]

_ROOM: Final = 1000


@dataclass(frozen=True, slots=True)
class LearnedPoint:
    """The state of a refresher after some polls.

    Args:
        polls: Polls so far, per element.
        learned: Perceived freshness of its plan, by the true rates.
        known: Perceived freshness of the plan that knows the true rates and explores nothing.
    """

    polls: float
    learned: float
    known: float

    @property
    def share(self) -> float:
        """What was reached of what can be reached."""
        return self.learned / self.known


class RefreshingWorld:
    """Runs a refresher in simulated time.

    Args:
        elements: True change rates, worth and sizes.
        budget: Polls per period.
        learner: Learns the rates.
        exploration: Share of the budget for exploration.
        seed: Seed of all draws.

    >>> elements = Elements.of([0.1, 0.2, 5.0])
    >>> world = RefreshingWorld(elements, 1.0, Learner(3), exploration=0.05, seed=1)
    >>> world.run(polls=300).share > 0.9
    True
    """

    def __init__(self, elements: Elements, budget: float, learner: Learner, *, exploration: float, seed: int) -> None:
        self._elements, self._budget = elements, budget
        self._world = ChangingElements(elements.rates, seed=seed)
        self.refresher = Refresher(learner, elements.worth, elements.sizes, budget, exploration=exploration)
        self.now = 0.0
        self._polls = 0
        self.refresher.replan(self.now)

    def run(self, polls: int) -> LearnedPoint:
        """Continues until this many polls have been made in all, and returns what was reached."""
        while self._polls < polls:
            self._step(polls - self._polls)
        return self.point()

    def drift(self, rates: Floats) -> None:
        """From now on the elements change at other rates."""
        self._elements = Elements(rates, self._elements.worth, self._elements.sizes)
        self._world.drift(rates, self.now)

    def point(self) -> LearnedPoint:
        """What is reached now."""
        learned = perceived_freshness(self._elements, self.refresher.frequencies)
        known = plan(self._elements, self._budget).perceived
        return LearnedPoint(self._polls / len(self._elements), learned, known)

    def _step(self, room: int) -> None:
        chosen = self.refresher.due(self.now, min(room, _ROOM))
        for element in chosen:
            self.refresher.polled(element, self.now, self._world.poll(element, self.now))
        self._polls += len(chosen)
        if self.refresher.wants_replan():
            self.refresher.replan(self.now)
        if not chosen:
            wait = self.refresher.next_due(self.now)
            self.now += min(max(wait, 1e-6 / self._budget), 1.0)
