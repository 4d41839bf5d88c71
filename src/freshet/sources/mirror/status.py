"""What a mirror tells of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """The figures of a mirror.

    Args:
        elements: Number of elements.
        unit: What the budget counts: ``polls`` or ``bytes``.
        budget_per_s: The budget.
        budget_used: Share of the budget that was spent, of this run.
        polls: Number of requests, of all runs: retries, redirects and audits count.
        changes: Number of changes that polls found, of all runs.
        bytes: What answers brought, of all runs, headers included.
        failures: Number of polls that brought no answer, of all runs.
        failing: Number of elements whose last poll failed.
        failing_examples: Some of them, with the reason.
        refused: Number of names that may not be polled, because their host is not allowed or they are unusable, of this
            run; each counts once.
        waiting: Number of elements that are due and wait for their host.
        freshness: Estimated perceived freshness now: the chance, weighted by worth, that a copy is right.
        freshness_planned: What the present plan reaches on average; elements that fail count as not fresh.
        freshness_audited: Share of audits that found the copy right, of all runs; None before the first. An element
            that does not answer, or must be left alone, counts as not right.
        freshness_audited_error: Its standard error.
        audits: Number of audits of all runs, also of those that brought no answer.
        floors_need_per_s: Budget that the floors need by what is known of the rates; None: there are no floors.
    """

    elements: int
    unit: str
    budget_per_s: float
    budget_used: float
    polls: int
    changes: int
    bytes: int
    failures: int
    failing: int
    failing_examples: dict[str, str]
    refused: int
    waiting: int
    freshness: float | None
    freshness_planned: float | None
    freshness_audited: float | None
    freshness_audited_error: float | None
    audits: int
    floors_need_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class ElementRate:
    """What is known of one element.

    Args:
        element: Its name.
        worth: What its freshness is worth.
        changes_per_s: Estimated change rate.
        polls_per_s: How often the present plan polls it.
        polls: Number of polls that were answered.
        changes: Number of polls that found a change.
        age_s: Seconds since the last poll that was answered; None: never.
        failures: Number of failures in a row.
        reason: Why the last poll failed.
    """

    element: str
    worth: float
    changes_per_s: float | None
    polls_per_s: float | None
    polls: int
    changes: int
    age_s: float | None
    failures: int
    reason: str | None
