"""Faults that a test asks for: at a named point a unit fails or is cancelled, a query raises, or the process dies."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, Literal, Self, get_args

from freshet.engine.lines import CANCELLED
from freshet.model import Network, Unit, UnitResult, UserError

FaultPoint = Literal["begin", "return", "commit", "committed"]
"""Where a fault may happen.

- ``begin``: a unit is about to run.
- ``return``: a unit has run, and its result is on the way to the engine.
- ``commit``: results are about to become durable.
- ``committed``: results are durable, and the engine does not know it yet.
"""
Act = Literal["fail", "cancel", "kill"]

_POINTS: Final[dict[Act, tuple[FaultPoint, ...]]] = {
    "fail": ("begin", "return", "commit"),
    "cancel": ("begin", "return"),
    "kill": get_args(FaultPoint),
}
_LOST: Final = "a worker was lost"


class Killed(Exception):
    """A fault has ended the process: only the state folder is left. See :meth:`LocalRun.crash`."""


class Faults:
    """The faults of a run. Points are counted from the creation of this object on, also across crashes.

    >>> faults = Faults().fail("return", nth=2).kill("committed")
    >>> faults.reach("return"), faults.reach("return"), faults.reach("return")
    (None, 'fail', None)
    >>> faults.reach("committed"), faults.happened
    ('kill', ['fail at return 2', 'kill at committed 1'])
    """

    def __init__(self) -> None:
        self._planned: dict[tuple[FaultPoint, int], Act] = {}
        self._queries: dict[str, float] = {}
        self._reached: Counter[FaultPoint] = Counter()
        self._random, self._share, self._acts = random.Random(0), 0.0, frozenset[Act]()
        self.happened: list[str] = []
        """What has happened so far, in order."""

    @classmethod
    def at_random(cls, seed: int, share: float = 0.1, acts: Collection[Act] = ("fail", "cancel", "kill")) -> Self:
        """Random faults: each time that a point is reached, one of these acts may happen.

        Args:
            seed: The same seed makes the same choices.
            share: How often something happens, from 0 to 1.
            acts: What may happen.
        """
        faults = cls()
        check_share("share", share)
        faults._random, faults._share, faults._acts = random.Random(seed), share, frozenset(acts)
        return faults

    def fail(self, point: FaultPoint, nth: int = 1) -> Self:
        """Makes a unit come back undone, as if a worker were lost; at ``commit`` the disk is full. The engine tries
        again later."""
        return self._plan("fail", point, nth)

    def cancel(self, point: FaultPoint, nth: int = 1) -> Self:
        """Makes a unit come back cancelled. The engine runs it again."""
        return self._plan("cancel", point, nth)

    def kill(self, point: FaultPoint, nth: int = 1) -> Self:
        """Makes the process die: :class:`Killed` is raised, and the test continues with :meth:`LocalRun.crash`."""
        return self._plan("kill", point, nth)

    def raise_in(self, query: str, share: float = 1.0) -> Self:
        """Makes the code of a query raise in this share of its units, from now on. The engine quarantines the query."""
        check_share("share", share)
        self._queries[query] = share
        return self

    def check_queries(self, known: Collection[str]) -> None:
        """Refuses a fault in a query that is not there."""
        for query in self._queries:
            if query not in known:
                raise UserError(f"raise_in: there is no query {query!r} (there are: {', '.join(known)})")

    def end(self) -> None:
        """Stops all faults from now on."""
        self._planned, self._queries, self._share = {}, {}, 0.0

    def _plan(self, act: Act, point: FaultPoint, nth: int) -> Self:
        if point not in _POINTS[act]:
            raise UserError(f"{act} is not possible at {point!r}: use one of {', '.join(_POINTS[act])}")
        if nth < 1:
            raise UserError(f"nth counts from 1 on: it cannot be {nth}")
        self._planned[point, nth] = act
        return self

    def reach(self, point: FaultPoint) -> Act | None:
        """What happens now that a point is reached; None if nothing does."""
        self._reached[point] += 1
        act = self._planned.get((point, self._reached[point])) or self._by_chance(point)
        if act is not None:
            self.happened.append(f"{act} at {point} {self._reached[point]}")
        return act

    def _by_chance(self, point: FaultPoint) -> Act | None:
        if not self._share or self._random.random() >= self._share:
            return None
        possible = sorted(act for act in self._acts if point in _POINTS[act])
        return self._random.choice(possible) if possible else None

    def begun(self, unit: Unit, now: float) -> UnitResult | None:
        """The result of a unit that does not run; None if it runs."""
        return self._undone(UnitResult(unit, now, now), self.reach("begin"))

    def raising(self, unit: Unit, network: Network) -> set[int]:
        """The places of the chains of a unit that are to raise."""
        if not self._queries:
            return set()
        chains = enumerate(unit.chains)
        return {place for place, chain in chains if self._raises(network.queries(chain.nodes[0]))}

    def returned(self, result: UnitResult) -> UnitResult:
        """What the engine hears of a unit that has run."""
        return self._undone(result, self.reach("return")) or result

    def _undone(self, result: UnitResult, act: Act | None) -> UnitResult | None:
        if act == "kill":
            raise Killed(self.happened[-1])
        if act is None:
            return None
        if act == "cancel":
            return replace(result, retry=CANCELLED, chains=(), files=())
        apart = self._share > 0.0 and self._random.random() < 0.5
        places = tuple(range(len(result.unit.chains))) if apart else ()
        return replace(result, retry=_LOST, apart=places, chains=(), files=())

    def _raises(self, queries: Sequence[str]) -> bool:
        """Whether a chain raises; a chain that also runs for other queries does not."""
        if not self._queries.keys() >= set(queries):
            return False
        raises = any(self._random.random() < self._queries[query] for query in queries)
        if raises:
            self.happened.append(f"{', '.join(sorted(queries))} raised")
        return raises


def check_share(name: str, share: float) -> None:
    """Refuses what is no share."""
    if not 0 <= share <= 1:
        raise UserError(f"{name} must be from 0 to 1, not {share}")
