"""Plans: what a policy asks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chain:
    """Consecutive operators of one path, by their number in the view. The first reads its queue, the last
    writes to the queue of the operator after it or, at the end of the path, to the query's output."""

    operators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Chains that run together as one job, each over the tuples waiting in front of it (at most ``rows`` of them)."""

    chains: tuple[Chain, ...]
    rows: int | None = None


Plan = tuple[Step, ...]
"""Steps in the order in which they are to run. The empty plan says that nothing is worth running now."""
