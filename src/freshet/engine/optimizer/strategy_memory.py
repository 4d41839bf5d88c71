"""What the optimizer remembers of queries, and where it keeps that."""

from __future__ import annotations

from typing import Final, Protocol

from freshet.quality.optimizer import Look, StrategyState


class StrategyMemory(Protocol):
    """Keeps strategies and looks; on Spark in the state folder, so that a restart finds them."""

    def started(self, query: str, now: float) -> float:
        """When a query that is added now was started for the first time: its life counts from then on."""

    def strategy(self, query: str) -> StrategyState | None:
        """What is remembered of a query; None: nothing."""

    def switched(self, query: str, state: StrategyState) -> None:
        """Remembers the strategy that a query has now."""

    def looked(self, query: str, look: Look) -> None:
        """Keeps the record of a look."""


class RunMemory:
    """Remembers as long as this object lives: for simulated time and for tests. Several runs may share one.

    >>> memory = RunMemory()
    >>> memory.started("q", now=7.0), memory.started("q", now=9.0)
    (7.0, 7.0)
    """

    def __init__(self) -> None:
        self.looks: Final[dict[str, list[Look]]] = {}
        """All looks by query, oldest first."""
        self.states: Final[dict[str, StrategyState]] = {}
        self._started: dict[str, float] = {}

    def started(self, query: str, now: float) -> float:
        return self._started.setdefault(query, now)

    def strategy(self, query: str) -> StrategyState | None:
        return self.states.get(query)

    def switched(self, query: str, state: StrategyState) -> None:
        self.states[query] = state

    def looked(self, query: str, look: Look) -> None:
        self.looks.setdefault(query, []).append(look)
