"""Whether sharing pays, from measured costs.

Only time that the queries themselves spend can be saved. A superbox that computes a common expression once charges it
to one of its queries. The others spend nothing on it, so sharing it would save nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from freshet.policies.sharing.work import Group

_QUEUED: Final = 1e-6
"""Seconds that it takes to write a tuple to a queue and read it back."""
_ENTER: Final = 1.5
_STAY: Final = 0.67
"""Factors of the cost of queues for work that is not shared yet, and for work that is: a tiny saving must not switch
sharing on and off again."""
_LEAST: Final = 1e-3
"""Seconds per second that sharing must be expected to save before it begins."""


class OperatorFigures(NamedTuple):
    """Measured figures of an operator.

    Args:
        cost: Seconds per tuple.
        selectivity: Tuples out per tuple in.
        rate: Tuples in per second.
        together: Share of all units that it was part of. Operators with a share of 1 always run in the same step.
    """

    cost: float
    selectivity: float
    rate: float
    together: float = 0.0


class Balance(NamedTuple):
    """The expected effect of sharing a work, in seconds per second.

    Args:
        saved: What all its queries together spend on it now, minus what the most expensive of them spends.
        queues: Cost of the queues to readers outside its step.
    """

    saved: float
    queues: float


@dataclass(slots=True)
class Worth:
    """Chooses the works that are worth sharing.

    Args:
        groups: The works that several queries have, by place, each after those that it reads.
        places: The place of each operator of a query that is among them.
        names: The name that each work has or would have, by place.
        costs: Measured figures, by the name of the operator in its query or of the shared operator.
    """

    groups: Mapping[str, Group]
    places: Mapping[str, str]
    names: Mapping[str, str]
    costs: Mapping[str, OperatorFigures]

    def chosen(self) -> set[str]:
        """The places of the works to share."""
        kept = dict.fromkeys(place for place in self.groups if self._is_known(place))
        self._leave_out(kept, self.groups.keys() - kept)
        while self._prune(kept):
            pass
        return set(kept)

    def balance(self, place: str, kept: Collection[str] = ()) -> Balance:
        """The expected effect of sharing a work if the ``kept`` works are shared, too."""
        group = self.groups[place]
        known = {query: each for query, name in group.operators.items() if (each := self.figures(name, place))}
        if not known:
            return Balance(0.0, 0.0)
        rate = max(each.rate for each in known.values())
        spent = [rate * each.cost for each in known.values()]
        selectivity = sum(each.selectivity for each in known.values()) / len(known)
        price = _QUEUED * (_STAY if group.is_shared_now else _ENTER)
        return Balance(sum(spent) - max(spent), rate * selectivity * price * self._queues(group, kept))

    def _is_known(self, place: str) -> bool:
        """Whether a work is a candidate: it is shared now, or has figures."""
        group = self.groups[place]
        return group.is_shared_now or any(self.figures(name, place) for name in group.operators.values())

    def _prune(self, kept: dict[str, None]) -> bool:
        """Leaves out works that do not pay, together with their readers; returns whether there were any."""
        before = len(kept)
        behind: Counter[str] = Counter()
        for place in reversed(list(kept)):
            group, balance = self.groups[place], self.balance(place, kept)
            # A cheap work is shared for the expensive one behind it. Each of several inputs gets a part of that value.
            value = balance.saved - balance.queues + behind[place]
            begins = not group.work.reads and not group.is_shared_now
            if value + self._relief(place, kept) < (_LEAST if begins else 0.0):
                self._leave_out(kept, {place})
            else:
                behind.update(dict.fromkeys(group.work.reads, value / max(1, len(group.work.reads))))
        return len(kept) < before

    def _relief(self, place: str, kept: Collection[str]) -> float:
        """The cost of queues in front of a work that disappears if its queries have one queue in common."""
        reads = set(self.groups[place].work.reads)
        without = {each for each in kept if each != place}
        return sum(self.balance(each, without).queues - self.balance(each, kept).queues for each in reads)

    def _leave_out(self, kept: dict[str, None], gone: set[str]) -> None:
        for place, group in self.groups.items():
            if place in gone or not gone.isdisjoint(group.work.reads):
                gone.add(place)
                kept.pop(place, None)

    def figures(self, operator: str, place: str | None) -> OperatorFigures | None:
        """The figures of a query's own operator, else of the shared operator that stands for it."""
        shared = self.names.get(place) if place is not None else None
        return self.costs.get(operator) or (self.costs.get(shared) if shared is not None else None)

    def _queues(self, group: Group, kept: Collection[str]) -> float:
        """The number of its readers that read from a queue; each counts by the share of its steps without the work."""
        edges: dict[str, list[float]] = {}
        for readers in group.readers.values():
            for reader in readers:
                place = self.places.get(reader)
                known = self.figures(reader, place)
                edge = place if place is not None and place in kept else reader
                edges.setdefault(edge, []).append(known.together if known else 0.0)
        shares = [min(1.0, sum(each)) for each in edges.values()]
        steps = min(1.0, sum(shares))
        if not steps:
            # Without figures, assume that each query runs by itself.
            shares = [len(each) for each in edges.values()]
            steps = sum(shares)
        return sum(1.0 - min(1.0, share / steps) for share in shares)
