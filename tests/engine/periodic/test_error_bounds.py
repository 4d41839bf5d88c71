"""Estimates and error bounds, where a query asks for them: of answers from some of the tuples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from freshet import App
from freshet.kernels.keeping import kept_mask
from freshet.model import InstanceView, Train, UserError, View
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel
from freshet.quality.periodic import avg_estimate, count_estimate, sum_estimate
from freshet.testing import LocalRun
from freshet.testing.local_run import START

ROWS = 400
SECONDS = 8
ASKED = """SELECT g, count(*) AS n, estimate(count(*)) AS all_n, error_bound(count(*)) AS n_bound,
    estimate(sum(v)) AS all_v, error_bound(sum(v)) AS v_bound,
    estimate(avg(v)) AS mean, error_bound(avg(v)) AS mean_bound,
    error_bound(count(*) FILTER (WHERE v > 50), 0.99) AS some_bound, avg(v) AS plain
FROM s [{window}] WHERE v IS NOT NULL GROUP BY g PERIOD 1 s"""
SHARES = (0.5, 0.25, 1.0)


class Varying:
    """Keeps shares in turn, by the release."""

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Nothing to note."""

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        """Nothing to learn."""

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[tuple[str, int], InstanceLevel]:
        return {
            each.key: InstanceLevel({part.reader: share(each.release) for part in each.inputs}, 1.0) for each in chosen
        }


def share(release: float) -> float:
    return SHARES[round(release) % len(SHARES)]


def values() -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    return [
        {"g": int(g), "v": int(v)} for g, v in zip(rng.integers(0, 2, ROWS), rng.integers(0, 100, ROWS), strict=True)
    ]


def played(text: str, **more: Any) -> LocalRun:
    app = App("p")
    app.stream("s", "g int, v int")
    app.query("q", text, overload=["defer", "thin"], **more)
    run = LocalRun(app)
    run.engine._periodic.levels = Varying()
    for second in range(SECONDS):
        run.push("s", values(), at=START + second + 0.5)
        run.heartbeat("s", START + second + 1.0)
        run.drain()
    return run


def kept_rows(reader: str, second: int, ratio: float) -> list[dict[str, Any]]:
    """What was kept of the rows that came in a second."""
    from freshet.model import Keep

    train = Train("s", second * ROWS, (second + 1) * ROWS, keep=Keep(ratio, reader) if ratio < 1.0 else None)
    mask = kept_mask(train)
    return [row for row, kept in zip(values(), mask, strict=True) if kept]


@pytest.mark.parametrize(("window", "seconds"), [("RANGE 1 s", 1), ("RANGE 3 s", 3), ("ROWS 400", 1)])
def test_estimates_are_those_of_the_shares_that_were_kept(window: str, seconds: int) -> None:
    with played(ASKED.format(window=window)) as run:
        found, instances = run.rows("q"), run.instances("q")
        reader = next(iter(instances[0].ends))
    assert not run.stopped
    for one in instances:
        release = round(one.release / 1e6 - START)
        for row in found[one.first : one.first + one.rows]:
            # With panes each second has the share of the release that ended it.
            parts = [
                (
                    share(START + end),
                    [each for each in kept_rows(reader, end - 1, share(START + end)) if each["g"] == row["g"]],
                )
                for end in range(max(1, release - seconds + 1), release + 1)
            ]
            assert row["n"] == sum(len(some) for _, some in parts)
            counts = [count_estimate(len(some), ratio) for ratio, some in parts]
            sums = [sum_estimate(*_sums(some), ratio) for ratio, some in parts]
            chosen = [count_estimate(sum(e["v"] > 50 for e in some), ratio, 0.99) for ratio, some in parts]
            assert row["all_n"] == pytest.approx(sum(each.value for each in counts))
            assert row["n_bound"] == pytest.approx(math.hypot(*(each.bound for each in counts)))
            assert row["all_v"] == pytest.approx(sum(each.value for each in sums))
            assert row["v_bound"] == pytest.approx(math.hypot(*(each.bound for each in sums)))
            assert row["some_bound"] == pytest.approx(math.hypot(*(each.bound for each in chosen)))
            assert row["mean"] == pytest.approx(row["all_v"] / row["all_n"])
            if seconds == 1:
                [(ratio, some)] = parts
                assert row["mean"] == pytest.approx(row["plain"])
                wanted = avg_estimate(len(some), *_sums(some), ratio).bound
                # The unbiased variance divides by one less.
                assert row["mean_bound"] == pytest.approx(wanted * math.sqrt((len(some) - 1) / len(some)))
            elif all(ratio == 1.0 for ratio, _ in parts):
                assert row["mean_bound"] == 0.0


def _sums(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    return sum(row["v"] for row in rows), sum(row["v"] ** 2 for row in rows)


def test_bounds_hold_about_as_often_as_they_say() -> None:
    with played(ASKED.format(window="RANGE 1 s").replace("GROUP BY g ", "GROUP BY g ")) as run:
        rows, instances = run.rows("q"), run.instances("q")
    truth = {g: [row["v"] for row in values() if row["g"] == g] for g in (0, 1)}
    held = 0
    for one in instances:
        for row in rows[one.first : one.first + one.rows]:
            held += abs(row["all_n"] - len(truth[row["g"]])) <= row["n_bound"] + 1e-9
            held += abs(row["all_v"] - sum(truth[row["g"]])) <= row["v_bound"] + 1e-9
    assert held >= 0.8 * 2 * len(rows)  # 32 of them, each in 95 of 100 cases; those of a release are not independent


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT error_bound(count(*)) AS e FROM s [RANGE 1 s SLIDE 1 s]", "are for queries with PERIOD"),
        ("SELECT error_bound(max(v)) AS e FROM s [RANGE 1 s] PERIOD 1 s", "knows count, sum and avg, not max"),
        ("SELECT error_bound(v) AS e FROM s [RANGE 1 s] PERIOD 1 s", "takes count, sum or avg"),
        ("SELECT error_bound(sum(v), 2) AS e FROM s [RANGE 1 s] PERIOD 1 s", "share of cases in which it holds"),
        ("SELECT estimate(sum(v), 0.9) AS e FROM s [RANGE 1 s] PERIOD 1 s", r"the form is estimate\(sum\(x\)\)"),
        (
            "SELECT error_bound(count(*)) AS e FROM s [RANGE 1 s] a, s [RANGE 1 s] b WHERE a.g = b.g PERIOD 1 s",
            "one aggregate over one stream, without joins",
        ),
        (
            "SELECT error_bound(count(*)) AS e FROM (SELECT g, count(*) AS n FROM s [RANGE 1 s] GROUP BY g) PERIOD 1 s",
            "one aggregate over one stream, without joins",
        ),
    ],
)
def test_estimates_are_refused_where_weights_are_not_known(text: str, message: str) -> None:
    app = App("p")
    app.stream("s", "g int, v int")
    app.query("q", text)
    with pytest.raises(UserError, match=message):
        LocalRun(app)
