"""A verdict: whether one promise can be kept, how much room is left, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from freshet.quality.feasibility.situation import Situation

Feasible = Literal["yes", "barely", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a promise to a query can be kept.

    Args:
        query: Name of the query.
        promise: What was promised, in a few words: "curve, full worth up to 2 s".
        feasible: ``barely`` if a tenth more load would break it; ``unknown`` without figures, or if answers took
            so much longer than expected that something else is wrong.
        expected: What is expected instead, in a few words: "QoS 71 %, p95 3.4 s".
        room: The factor by which all rates may grow before it breaks; below 1 it is broken already. None: unknown.
        reason: Why not, if not.
        advice: What would help, if something would.
    """

    query: str
    promise: str
    feasible: Feasible
    expected: str = ""
    room: float | None = None
    reason: str = ""
    advice: str = ""


PromiseJudge = Callable[[Situation], Iterable[Verdict]]
"""Gives a verdict for each promise of its kind. A kind of promise joins ``freshet explain --feasible`` by its judge."""
