"""The shedder: how much of each query's input to keep when there is more work than time (MAV §4.3).

A query's *load* is the seconds of work that come in for it per second: arrival rates times measured costs, whatever is
left out at present. The excess over :data:`ON` of what the workers can do is computed once per look and dealt out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from freshet.model import View
from freshet.model.promises.quality_table import PROPORTIONAL, QualityTable
from freshet.quality.hull import lower_hull

ON: Final = 0.95
"""Share of the workers' time above which there is an excess."""
OFF: Final = 0.85
"""Share below which nothing is left out any more. Between the two, what is kept stays as it is."""
LEAST: Final = 0.05
"""Share of its input that every query keeps in any case."""
STEADY: Final = 0.01
"""A share that is kept already stays if it is above the wanted one by at most this: each change is an entry of the
ledger."""
_PIECES: Final = 64


@dataclass(frozen=True, slots=True)
class QueryLoad:
    """A query as the shedder sees it.

    Args:
        name: Its name.
        load: Seconds of work that come in for it per second, if everything is kept.
        thin: Whether its input may be thinned.
        violated: Whether one of its expectations that must be met is violated, and no other strategy helps.
        weight: Its importance.
        quality: What its answers are worth by the share kept.
    """

    name: str
    load: float
    thin: bool = True
    violated: bool = False
    weight: float = 1.0
    quality: QualityTable = field(default=PROPORTIONAL)


class Shedder:
    """Says at each look what queries keep. It has no clock and does nothing itself.

    Args:
        on: Share of the workers' time above which there is an excess.
        off: Share below which everything is kept again.
        least: Share that every query keeps.

    >>> shedder = Shedder()
    >>> others = QueryLoad("other", 0.7, thin=False)
    >>> shedder.look([QueryLoad("q", 0.5, violated=True), others])
    {'q': 0.5}
    >>> shedder.look([QueryLoad("q", 0.5), QueryLoad("other", 0.4, thin=False)])
    {'q': 0.5}
    >>> shedder.look([QueryLoad("q", 0.5), QueryLoad("other", 0.3, thin=False)])
    {}
    """

    def __init__(self, on: float = ON, off: float = OFF, least: float = LEAST) -> None:
        self._on, self._off, self._least = on, off, least
        self.kept: dict[str, float] = {}
        """Shares that are kept since the last look; queries that keep everything are not there."""

    def look(self, queries: Sequence[QueryLoad], capacity: float = 1.0) -> dict[str, float]:
        """What queries are to keep from now on; those that are not named keep everything.

        Queries that are violated, and those that are thinned already, come first; then all others that allow it. It
        begins only if a query is violated, and ends below the lower share.

        Args:
            queries: All queries, also those that may not be thinned: their load counts.
            capacity: Seconds of work that can be done per second: the number of workers that work side by side.
        """
        load = sum(query.load for query in queries) / capacity
        allowed = [query for query in queries if query.thin and query.load > 0.0]
        if load < self._off or not (self.kept or any(query.violated for query in queries)):
            self.kept = {}
        elif load > self._on:
            first = [query for query in allowed if query.violated or query.name in self.kept]
            rest = [query for query in allowed if query not in first]
            self.kept = self._tiers([first, rest], (load - self._on) * capacity)
        else:
            names = {query.name for query in allowed}
            self.kept = {name: ratio for name, ratio in self.kept.items() if name in names}
        return dict(self.kept)

    def _tiers(self, tiers: Iterable[Sequence[QueryLoad]], excess: float) -> dict[str, float]:
        kept: dict[str, float] = {}
        for queries in tiers:
            freed = deal(queries, excess, self._least)
            excess -= sum(freed.values())
            loads = {query.name: query.load for query in queries}
            kept |= {name: max(self._least, 1.0 - seconds / loads[name]) for name, seconds in freed.items()}
        return {name: self._steady(name, ratio) for name, ratio in kept.items()}

    def _steady(self, name: str, wanted: float) -> float:
        before = self.kept.get(name, 0.0)
        return before if wanted <= before <= wanted + STEADY else wanted


def deal(queries: Sequence[QueryLoad], excess: float, least: float = LEAST) -> dict[str, float]:
    """The seconds of work per second that each query gives up, by name; those that give up nothing are left out.

    Pieces of their loads go by the utility lost per second freed, the cheapest first. Where a query loses most at the
    beginning, as a strict one does, its pieces are taken as one: half of a drop would cost nearly as much as all of it.

    >>> tolerant = QueryLoad("tolerant", 1.0, quality=QualityTable.parse("tolerant"))
    >>> freed = deal([QueryLoad("light", 0.2, weight=0.1), tolerant, QueryLoad("heavy", 0.2)], 0.3)
    >>> {name: round(seconds, 3) for name, seconds in freed.items()}
    {'tolerant': 0.3}
    """
    pieces = sorted(
        ((slope, number, seconds) for number, query in enumerate(queries) for slope, seconds in _pieces(query, least)),
        key=lambda piece: piece[:2],
    )
    freed: dict[str, float] = {}
    for _, number, seconds in pieces:
        take = min(seconds, excess)
        if take <= 0.0:
            break
        name = queries[number].name
        freed[name] = freed.get(name, 0.0) + take
        excess -= take
    return freed


def _pieces(query: QueryLoad, least: float) -> list[tuple[float, float]]:
    """Parts of a load: the utility lost per second freed, and the seconds; it rises from each part to the next."""
    most = query.load * (1.0 - least)
    freed = (most * place / _PIECES for place in range(_PIECES + 1))
    return lower_hull(
        (seconds, query.weight * (1.0 - query.quality.worth(1.0 - seconds / query.load))) for seconds in freed
    )


def loads(view: View, rates: Mapping[int, float]) -> dict[int, float]:
    """The load of each query by its number, from what comes in and what operators cost.

    The work of a shared operator is divided evenly among its queries.

    Args:
        view: The engine's view.
        rates: Tuples per second that come in from streams and outputs, by operator.
    """
    found: dict[int, float] = {}
    comes = dict(rates)
    # Each query has its operators after those that they read, so this order holds for all of them together.
    needed = (
        number
        for place, query in enumerate(view.queries)
        for number in query.operators
        if place in view.operators[number].queries
    )
    for number in dict.fromkeys(needed):
        operator, rate = view.operators[number], comes.get(number, 0.0)
        for reader in operator.readers:
            comes[reader] = comes.get(reader, 0.0) + rate * operator.selectivity
        for query in operator.queries:
            found[query] = found.get(query, 0.0) + rate * operator.cost / len(operator.queries)
    return found
