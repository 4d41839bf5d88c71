"""What goes on in a simulated run: time that deciding takes, and a record of what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from freshet.engine import VirtualClock
from freshet.engine.events import Added, Committed, Decided, Event
from freshet.model import Decision, Promises, View
from freshet.policies import Policy
from freshet.simulation.outcome import Departed, Floats, Work


def operations(policy: Policy) -> int:
    """Operations that a policy has counted so far; none where it counts none."""
    return getattr(policy, "operations", 0)


class Charged(Policy):
    """A policy whose operations take time: the clock goes on while it decides.

    Args:
        policy: The policy.
        clock: The virtual clock.
        price: Seconds per operation.
        counted: Says how many operations the policy has counted.
    """

    name = "charged"

    def __init__(
        self, policy: Policy, clock: VirtualClock, price: float, counted: Callable[[Policy], int] = operations
    ) -> None:
        self.policy: Final = policy
        self._clock, self._price, self._counted = clock, price, counted
        self._paid = 0

    def arrived(self, view: View, operators: Iterable[int]) -> None:
        self.policy.arrived(view, operators)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        self.policy.completed(view, operators)

    def changed(self, view: View, query: int) -> None:
        self.policy.changed(view, query)

    def decide(self, view: View) -> Decision:
        """What the policy decides, once what it counted since the last time has been paid for."""
        decision = self.policy.decide(view)
        paid, self._paid = self._paid, self._counted(self.policy)
        self._clock.wait(self._clock.now() + (self._paid - paid) * self._price)
        return decision


class Record:
    """Follows the events of an engine: what departed when, and what that took."""

    def __init__(self) -> None:
        self.promises: dict[str, Promises] = {}
        self.work = Work()
        self._trains: dict[str, list[tuple[Floats, Floats]]] = {}

    def tell(self, event: Event) -> None:
        """Something happened."""
        match event:
            case Added():
                self.promises[event.query] = event.promises
                self._trains[event.query] = []
            case Decided():
                self.work.decisions += 1
                self.work.scheduling += event.seconds
            case Committed():
                self._committed(event)
            case _:
                pass

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

    def departed(self) -> Departed:
        """By query what has departed."""
        return joined(self._trains)


NONE: Final[tuple[Floats, Floats]] = (np.empty(0), np.empty(0))
"""Arrivals and departures of no tuple."""


def joined(parts: Mapping[str, Sequence[tuple[Floats, Floats]]]) -> Departed:
    """All tuples of each query in the order in which they left; of those that left together the oldest first."""
    found = {}
    for name, each in parts.items():
        arrivals, departures = (np.concatenate(column) for column in zip(NONE, *each, strict=True))
        order = np.lexsort((arrivals, departures))
        found[name] = arrivals[order], departures[order]
    return found
