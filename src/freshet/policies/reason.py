"""Reasons: why a policy decided as it did, as figures and as a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from freshet.model import Decision, View

FEW: Final = 3
"""Maximum number of chosen operators, and of others, that a reason names: asking must cost little."""
_NAMED: Final = 2
"""Maximum number of queries of a shared operator that a sentence names."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operator that could have run.

    Args:
        operator: Its number in the view.
        queries: The names of the queries that it works for.
        figures: The figures that the policy weighs, by name.
    """

    operator: int
    queries: tuple[str, ...]
    figures: Mapping[str, float]

    def __str__(self) -> str:
        names = ", ".join(self.queries[:_NAMED]) or f"operator {self.operator}"
        more = f" and {len(self.queries) - _NAMED} more" if len(self.queries) > _NAMED else ""
        return f"{names}{more} ({_told(self.figures)})"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a policy decided as it did.

    Args:
        policy: Its name.
        rule: What it prefers, in words.
        figures: The figures of the step as a whole, by name.
        chosen: Number of ready operators that it chose.
        ready: Number of operators that could have run.
        first: The first few that it chose, in their order.
        passed_over: A few that it did not choose; the best of them if the policy knows an order.

    >>> first, other = Candidate(0, ("floods",), {"priority": 12.5}), Candidate(7, ("logins",), {"priority": 0.031})
    >>> print(Reason("fas-mcq", "highest priority", {"overhead_s": 0.02}, 1, 9, (first,), (other,)))
    fas-mcq runs 1 of 9, highest priority: floods (priority 12.5), before logins (priority 0.031); overhead 0.02 s
    """

    policy: str
    rule: str
    figures: Mapping[str, float]
    chosen: int
    ready: int
    first: tuple[Candidate, ...]
    passed_over: tuple[Candidate, ...]

    def __str__(self) -> str:
        return f"{self.policy} {self._what()}{self._before()}; {_told(self.figures)}".removesuffix("; ")

    def _what(self) -> str:
        if not self.chosen:
            return f"runs nothing of {self.ready}"
        rule = f", {self.rule}" if self.rule else ""
        more = ", ..." if self.chosen > len(self.first) else ""
        return f"runs {self.chosen} of {self.ready}{rule}: {', '.join(map(str, self.first))}{more}"

    def _before(self) -> str:
        return f", before {', '.join(map(str, self.passed_over))}" if self.passed_over else ""


def candidates(view: View, decision: Decision, order: Iterable[int]) -> tuple[list[int], list[int]]:
    """The ready operators that a decision runs, in its order, and a few others in the order of ``order``.

    >>> from freshet.model import Step
    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView.over({0: (), 1: (), 2: ()})
    >>> view.ready.update(dict.fromkeys((0, 1, 2)))
    >>> candidates(view, Decision.run(Step((1,))), view.ready)
    ([1], [0, 2])
    """
    ready = view.ready
    chosen = dict.fromkeys(number for step in decision.steps for number in step.nodes if number in ready)
    others: list[int] = []
    if len(chosen) < len(ready):
        for number in order:
            if number in ready and number not in chosen:
                others.append(number)
                if len(others) == FEW:
                    break
    return list(chosen), others


def _told(figures: Mapping[str, float]) -> str:
    return ", ".join(_figure(name, value) for name, value in figures.items())


def _figure(name: str, value: float) -> str:
    """A figure with its unit; names that end in ``_s`` are seconds.

    >>> _figure("slack_s", 0.25), _figure("waiting", 12000), _figure("slack_s", float("inf"))
    ('slack 0.25 s', 'waiting 12000', 'slack inf s')
    """
    shown = str(value) if isinstance(value, int) else f"{value:.3g}"
    words = name.removesuffix("_s").replace("_", " ")
    return f"{words} {shown}{' s' if name.endswith('_s') else ''}"
