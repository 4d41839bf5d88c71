"""Admission: whether periodic queries are let in that cannot all be in time (RT §4.3; CAR §4.6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from freshet.app.reports.feasible import situation_of
from freshet.model import Promises, UserError
from freshet.model.promises.level_settings import WhenFull
from freshet.quality.feasibility import deadlines


def check_admission(
    when: WhenFull, figures: Mapping[str, Any] | None, promises: Mapping[str, Promises], reserve: float
) -> None:
    """Refuses periodic queries that cannot all be in time, if that is asked for.

    The demand by every deadline counts, with the overhead of steps and the blocking by one of them. A query that was
    never answered has no figures, and is not judged yet.

    Args:
        when: What happens if they cannot.
        figures: A report with what instances cost; None: nothing is known.
        promises: Of all queries.
        reserve: Share of the time that continuous queries keep.

    Raises:
        UserError: They cannot, and are to be refused.
    """
    if when != "refuse" or figures is None:
        return
    situation = situation_of(figures, promises, reserve=reserve)
    bad = [] if situation is None else [each for each in deadlines(situation) if each.feasible == "no"]
    if bad:
        worst = min(bad, key=lambda each: each.room or 0.0)
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise UserError(
            f"query {worst.query}{more} cannot be in time: {worst.reason}, and only {worst.expected} fits; "
            f'{worst.advice}, or set admission = "degrade"'
        )


def last_figures(report: Path | None) -> Mapping[str, Any] | None:
    """The report of the run before; None: there is none."""
    try:
        told = json.loads(report.read_text(encoding="utf-8")) if report is not None else None
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and {"queries", "overhead", "workers"} <= told.keys() else None
