"""Whether promises can be kept, from what a run has measured: for the report, the live table and ``explain``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, cast

from freshet.model import Promises, UserError
from freshet.model.promises.balance import BalanceBound
from freshet.policies import create
from freshet.quality.feasibility import QueryDemand, Situation, Verdict, verdicts
from freshet.quality.snapshots import FeasibleSnapshot, QuerySnapshot

EVERY: Final = 10.0
"""Seconds between two judgements of a run."""
_MEASURED: Final = 100
"""Number of answers from which on their latencies say something."""
_ENDED: Final = ("stopped", "failed")


def situation_of(
    report: Mapping[str, Any],
    promises: Mapping[str, Promises],
    load: float = 1.0,
    reserve: float = 0.0,
    bound: BalanceBound | None = None,
) -> Situation | None:
    """What a report says of rates and costs; None if it says too little.

    Rates are those of the last seconds, or of the whole run if it has ended. What several queries share is dealt out.

    Args:
        report: A report, or the meters of a run.
        promises: Of the queries that are to be judged.
        load: Factor of all rates.
        reserve: Share of the time that continuous queries keep.
        bound: What all outputs together should keep.
    """
    queries: Mapping[str, QuerySnapshot] = report["queries"]
    recent = report.get("status", "running") not in _ENDED
    shared = Counter(name for each in queries.values() for name in each["operators"])
    loads = tuple(_load(name, queries[name], promises[name], shared, recent) for name in promises if name in queries)
    overhead = report["overhead"]["per_call_s"]
    if overhead is None or not any(each.rate or each.instance for each in loads):
        return None
    return Situation(loads, overhead, report["workers"]["workers"], reserve, bound).scaled(load)


def _load(name: str, query: QuerySnapshot, promises: Promises, shared: Mapping[str, int], recent: bool) -> QueryDemand:
    rates, read = query["throughput"], query["tuples_in"]
    rate = (rates["recent_in_per_s"] if recent else rates["in_per_s"]) or 0.0
    # Each operator by the tuples that reach it.
    seconds = sum(
        (each["cost_s"] or 0.0) * each["tuples_in"] / shared[operator] for operator, each in query["operators"].items()
    )
    instances = query.get("instances")  # a report of an older version has none
    answered = instances["instances"] if instances is not None else 0
    out = (rates["recent_out_per_s"] if recent else rates["out_per_s"]) or 0.0
    instance = seconds / answered if answered else None
    # A report of an older version does not know how large tuples are.
    size = query.get("tuple_bytes")
    response = query["response"]
    measured = response["recent_p95_s" if recent else "p95_s"] if response["count"] >= _MEASURED else None
    return QueryDemand(name, rate, seconds / read if read else 0.0, promises, instance, out, size, measured)


def judged(situation: Situation | None) -> list[FeasibleSnapshot]:
    """The verdicts as plain values."""
    found = [] if situation is None else verdicts(situation)
    return [cast(FeasibleSnapshot, asdict(each)) for each in found]


def blind_to_curves(report: Mapping[str, Any], promises: Mapping[str, Promises]) -> str:
    """That the policy of a run does not look at the curves that there are; empty if it does, or nobody knows.

    >>> from freshet.model import Curve
    >>> curved = {"q": Promises(curve=Curve.deadline(1.0))}
    >>> blind_to_curves({"policy": "fas-mcq"}, curved)[:45]
    'the policy fas-mcq does not look at curves: t'
    >>> blind_to_curves({"policy": "slope-slack-push(1)"}, curved), blind_to_curves({"policy": "fas-mcq"}, {})
    ('', '')
    """
    policy = report.get("policy")
    if not isinstance(policy, str) or not any(each.curve is not None for each in promises.values()):
        return ""
    try:
        blind = not create(policy).keeps_curves
    except UserError:
        return ""
    told = f"the policy {policy} does not look at curves: the verdicts on them say what one can do that does, such as "
    return f"{told}slope-slack-push(1)" if blind else ""


class Judgement:
    """Judges a run now and then, and keeps what it found: judging takes some milliseconds.

    Args:
        reserve: Share of the time that continuous queries keep.
        bound: What all outputs together should keep.
    """

    def __init__(self, reserve: float = 0.0, bound: BalanceBound | None = None) -> None:
        self._reserve, self._bound = reserve, bound
        self._found: list[FeasibleSnapshot] = []
        self._due = 0.0

    def of(self, report: Mapping[str, Any], promises: Mapping[str, Promises]) -> list[FeasibleSnapshot]:
        """The verdicts, at most some seconds old."""
        if report["time"] >= self._due:
            situation = situation_of(report, promises, reserve=self._reserve, bound=self._bound)
            # Without figures it looks again at the next report.
            self._found, self._due = judged(situation), report["time"] + (EVERY if situation is not None else 0.0)
        return self._found

    @property
    def told(self) -> str | None:
        """What it found last, in a line; None: it has not found anything to judge yet."""
        if not self._found:
            return None
        return line_of_verdicts(self._found) or "feasible: by rates and costs, every promise that can be judged"


def line_of_verdicts(found: list[FeasibleSnapshot] | list[Verdict]) -> str:
    """What cannot be kept, in a line; empty if everything can.

    >>> line_of_verdicts([Verdict("q", "curve, full worth up to 1 s", "no", reason="capacity", advice="do less")])
    'not feasible: q (curve, full worth up to 1 s): capacity; do less'
    """
    told = [each if isinstance(each, Mapping) else asdict(each) for each in found]
    bad = [each for each in told if each["feasible"] == "no"]
    doubtful = [each for each in told if each["feasible"] == "unknown" and each["room"] is not None]
    if not bad and doubtful:
        slow, more = doubtful[0], f", and {len(doubtful) - 1} more" if len(doubtful) > 1 else ""
        return f"slower than it should be: {slow['query']} ({slow['promise']}): {slow['reason']}{more}"
    if not bad:
        barely = [each["query"] for each in told if each["feasible"] == "barely"]
        return f"barely feasible: {', '.join(barely)}" if barely else ""
    worst = min(bad, key=lambda each: each["room"] if each["room"] is not None else 1.0)
    more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
    advice = f"; {worst['advice']}" if worst["advice"] else ""
    return f"not feasible: {worst['query']} ({worst['promise']}): {worst['reason']}{advice}{more}"
