"""Admission: periodic queries that cannot all be in time are refused, if that is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from freshet.app.running.admitting import check_admission, last_figures
from freshet.model import Promises, UserError


def figures(seconds: float) -> dict[str, Any]:
    """A report of a query whose ten instances took so many seconds each."""
    operators = {"q.count": {"cost_s": seconds / 100.0, "tuples_in": 1000}}
    query = {
        "throughput": {"recent_in_per_s": 100.0, "in_per_s": 100.0, "recent_out_per_s": 10.0, "out_per_s": 10.0},
        "response": {"count": 10, "recent_p95_s": 0.1, "p95_s": 0.1},
        "tuples_in": 1000,
        "operators": operators,
        "instances": {"instances": 10},
    }
    return {"queries": {"q": query}, "overhead": {"per_call_s": 0.01}, "workers": {"workers": 1}}


PROMISES = {"q": Promises(period=2.0, deadline=0.5)}


def test_queries_that_cannot_be_in_time_are_refused() -> None:
    check_admission("refuse", figures(0.4), PROMISES, 0.0)
    check_admission("degrade", figures(0.7), PROMISES, 0.0)
    check_admission("refuse", None, PROMISES, 0.0)
    with pytest.raises(UserError, match=r"^query q cannot be in time: .* only level 0\.\d+ fits; .*admission"):
        check_admission("refuse", figures(0.7), PROMISES, 0.0)


def test_a_query_without_figures_is_not_judged_yet() -> None:
    check_admission("refuse", figures(0.4), {**PROMISES, "new": Promises(period=1.0, deadline=0.001)}, 0.0)


def test_the_reserve_counts_if_there_are_continuous_queries() -> None:
    told = figures(0.4)
    check_admission("refuse", told, PROMISES, 0.9)
    told["queries"]["c"] = {**told["queries"]["q"], "instances": None}
    with pytest.raises(UserError, match="cannot be in time"):
        check_admission("refuse", told, {**PROMISES, "c": Promises()}, 0.9)


def test_a_report_that_is_none_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert last_figures(None) is None
    assert last_figures(path) is None
    path.write_text("{")
    assert last_figures(path) is None
    path.write_text(json.dumps(figures(0.1)))
    assert last_figures(path) == figures(0.1)
