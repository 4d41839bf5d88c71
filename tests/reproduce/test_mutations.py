"""Claims can fail: an error that is seeded into a scheduler, a traversal or a price turns a claim red."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from freshet.model import View
from freshet.policies import FixedPriority, FreshnessAware, QueueShare, RowLimit, SlopeSlack, SlopeSlackPush, TwoLevel
from freshet.policies.aurora import traversal
from freshet.policies.aurora.bucket_table import Grid
from freshet.policies.aurora.traversal import Boxes, output_cost
from freshet.reproduce import Trial, claims
from freshet.reproduce.aurora import superboxes
from freshet.reproduce.aurora.runs import CHAPTER_3

Patch = Callable[[pytest.MonkeyPatch], None]


def replaced(owner: Any, name: str, value: Any) -> Patch:
    return lambda patch: patch.setattr(owner, name, value)


def oldest_first(self: FreshnessAware, view: View, operator: int) -> float:
    return -view.operators[operator].head_arrival


def longest_first(self: FreshnessAware, view: View, operator: int) -> float:
    _, no_match, cost, weight = self.terms(view, operator)
    waiting = view.operators[operator].pending
    return -weight * math.expm1(waiting * no_match) * waiting / cost


def queues_ignored(self: FreshnessAware, view: View, operator: int) -> float:
    terms = self.terms(view, operator)
    return terms.weight * terms.selectivity / terms.cost


def beta_ignored(self: FreshnessAware, view: View, operator: int) -> float:
    _, no_match, cost, weight = self.terms(view, operator)
    waiting = view.operators[operator].pending
    return -weight * math.expm1(waiting * no_match) / (waiting * cost)


def weights_ignored(self: FreshnessAware, view: View, operator: int) -> float:
    return beta_ignored(self, view, operator) / self.terms(view, operator).weight


P_TUPLE, PRIORITY = SlopeSlack.p_tuple, FixedPriority.priority


def wrong_sign_of_slack(self: SlopeSlack, view: View, operator: int) -> tuple[float, float]:
    slope, slack = P_TUPLE(self, view, operator)
    return slope, -slack


def static_slack(self: SlopeSlack, view: View, operator: int) -> tuple[float, float]:
    return 0.0, self.curve(view, operator).promise


def late_tuples_first(self: SlopeSlack, view: View, operator: int) -> tuple[float, float]:
    slope, slack = P_TUPLE(self, view, operator)
    return slope, slack if math.isfinite(slack) else -1.0


def loosest_first(self: FixedPriority, view: View, operator: int) -> float:
    return -PRIORITY(self, view, operator)


def dearest_output_first(superbox: tuple[int, ...], boxes: Boxes) -> tuple[int, ...]:
    ranked = sorted(superbox, key=lambda box: -output_cost(boxes, box))
    return tuple(each for box in ranked for each in traversal.downstream(boxes, box))


MUTATIONS: dict[str, tuple[Patch, str]] = {
    "FIFO for FAS": (replaced(FreshnessAware, "priority", oldest_first), "fas.fig8.gain-without-skew"),
    "FAS serves the longest queue": (replaced(FreshnessAware, "priority", longest_first), "fas.fig8.gain-without-skew"),
    "FAS ignores queues": (replaced(FreshnessAware, "priority", queues_ignored), "fas.fig8.gain-without-skew"),
    "beta ignored": (replaced(FreshnessAware, "priority", beta_ignored), "fas.fig5.response-rises-with-beta"),
    "weights ignored": (replaced(FreshnessAware, "priority", weights_ignored), "fas.weights.heavy-queries-gain"),
    "wrong sign of slack": (replaced(SlopeSlack, "p_tuple", wrong_sign_of_slack), "aurora.fig4.2.both-meet-deadlines"),
    "late tuples first": (
        replaced(SlopeSlack, "p_tuple", late_tuples_first),
        "aurora.fig4.17.overloaded-waits-longest",
    ),
    "loosest deadline first": (replaced(FixedPriority, "priority", loosest_first), "aurora.table4.1.slacks"),
    "push-through off": (replaced(SlopeSlackPush, "push", False), "aurora.fig4.14a.push-lifts-slope-slack"),
    "min-cost calls boxes twice": (
        lambda patch: patch.setitem(traversal.TRAVERSALS, "min-cost", traversal.min_latency),
        "aurora.table3.1.min-cost",
    ),
    "min-latency begins with the dearest": (
        lambda patch: patch.setitem(traversal.TRAVERSALS, "min-latency", dearest_output_first),
        "aurora.table3.2.min-latency",
    ),
    "min-memory frees least first": (
        replaced(traversal, "memory_rate", lambda box: box.selectivity - 1.0),
        "aurora.fig3.8.min-memory-needs-least",
    ),
    "flattest bucket first": (
        replaced(Grid, "bucket", lambda self, slope, slack: slope * self.slacks + slack),
        "aurora.table4.3.buckets",
    ),
    "trains of the whole queue": (
        replaced(QueueShare, "rows", lambda self, view, operator: None),
        "aurora.fig3.9.trains-help-bursts",
    ),
    "expensive boxes go on": (
        replaced(TwoLevel, "_turns", lambda self, view, members: sorted(members)),
        "aurora.sec6.3.1.expensive-boxes-yield",
    ),
    "a few rows are all rows": (
        replaced(RowLimit, "rows", lambda self, view, operator: None),
        "aurora.sec4.6.1.small-trains-help-fixed",
    ),
    "late tuples first in storms": (
        replaced(SlopeSlack, "p_tuple", late_tuples_first),
        "aurora.fig4.22.loose-kept-in-storms",
    ),
    "slope-slack is blind to lateness": (
        replaced(SlopeSlack, "p_tuple", static_slack),
        "aurora.fig4.20.loose-miss-less",
    ),
    "scheduled units cost nothing": (
        replaced(superboxes, "CHAPTER_3", CHAPTER_3._replace(unit=0.0)),
        "aurora.fig3.10.tuples-worst",
    ),
}


def holds(name: str) -> bool:
    (found,) = [each for each in claims(name.partition(".")[0]) if each.id == name]
    assert found.kind == "claim"
    return bool(found.check(Trial(quick=True, seeds=1))["ok"])


unharmed = cache(holds)
"""Whether a claim holds without an error."""


@pytest.mark.parametrize("error", MUTATIONS)
def test_a_seeded_error_turns_a_claim_red(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_it, claim = MUTATIONS[error]
    assert unharmed(claim)
    seed_it(monkeypatch)
    assert not holds(claim)
