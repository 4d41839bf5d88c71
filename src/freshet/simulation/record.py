"""Follows a simulated run: charges the time that deciding takes, and records the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from freshet.engine import VirtualClock
from freshet.engine.events import Added, Committed, Decided, Event
from freshet.model import Decision, Promises, View
from freshet.policies import Policy
from freshet.policies.around import Around
from freshet.simulation.outcome import Departed, Floats, Work


def operations(policy: Policy) -> int:
    """Number of operations that a policy has counted so far; 0 if it does not count."""
    return getattr(policy, "operations", 0)


class Charged(Around):
    """A policy with operations that take time: the clock moves on while it decides.

    Args:
        price: Seconds per operation.
        counted: Returns how many operations the policy has counted.
    """

    name = "charged"

    def __init__(self, policy: Policy, clock: VirtualClock, price: float, counted: Callable[[Policy], int]) -> None:
        super().__init__(policy)
        self._clock, self._price, self._counted = clock, price, counted
        self._paid = 0

    def decide(self, view: View) -> Decision:
        """What the policy decides, after paying for the operations that it counted since the last time."""
        decision = self.inner.decide(view)
        paid, self._paid = self._paid, self._counted(self.inner)
        self._clock.wait(self._clock.now() + (self._paid - paid) * self._price)
        return decision


class Record:
    """Follows the events of an engine: what departed when, and what that took."""

    def __init__(self) -> None:
        self.promises: dict[str, Promises] = {}
        self.work = Work()
        self._trains: dict[str, list[tuple[Floats, Floats]]] = {}
        self._due: dict[str, list[tuple[Floats, Floats]]] = {}

    def tell(self, event: Event) -> None:
        match event:
            case Added():
                self.promises[event.query] = event.promises
                self._trains[event.query] = []
                self._due[event.query] = []
            case Decided():
                self.work.decisions += 1
                self.work.scheduling += event.seconds
            case Committed():
                self._committed(event)

    def _committed(self, event: Committed) -> None:
        work, result = self.work, event.result
        work.units += 1
        work.overhead += result.overhead
        effective = set(map(id, event.chains))
        for done in result.chains:
            if id(done.chain) not in effective:
                continue
            for run in done.operators:
                work.calls += bool(run.rows_in or run.rows_out)
                work.processing += run.seconds
            for stream in done.chain.writes if done.rows_out else ():
                if stream in self._trains:
                    left = np.full(done.rows_out, event.now) if done.departures is None else done.departures
                    self._trains[stream].append((np.asarray(done.arrivals), left))
                    if done.expiries is not None:
                        self._due[stream].append((done.expiries, left))

    def departed(self) -> Departed:
        """What has departed, by query."""
        return joined(self._trains)

    def due(self) -> Departed:
        """When what has departed expired or will expire, in place of its arrival."""
        return joined(self._due)


NONE: Final[tuple[Floats, Floats]] = (np.empty(0), np.empty(0))
"""Arrivals and departures of no tuple."""


def joined(parts: Mapping[str, Sequence[tuple[Floats, Floats]]]) -> Departed:
    """All tuples of each query in the order in which they left; the oldest first among those that left together."""
    found = {}
    for name, each in parts.items():
        arrivals, departures = (np.concatenate(column) for column in zip(NONE, *each, strict=True))
        order = np.lexsort((arrivals, departures))
        found[name] = arrivals[order], departures[order]
    return found
