"""Queries over the answers of periodic ones: time goes by the releases."""

from __future__ import annotations

from tests.engine.periodic.test_periodic import simple

from freshet.testing import LocalRun
from freshet.testing.local_run import START


def test_a_window_over_answers_goes_by_their_releases() -> None:
    app = simple()
    app.query("top", "SELECT max(n) AS most FROM q [RANGE 4 s SLIDE 4 s]")
    with LocalRun(app) as run:
        for number in range(40):
            run.push("s", [{"k": "a", "v": number}], at=START + number * 0.5)
            run.turn()
        run.drain()
        # The answer at 4 belongs to the window that begins there.
        assert [row["most"] for row in run.rows("top")] == [4, 8, 8, 8]


def test_what_counts_for_one_moment_comes_with_the_answer() -> None:
    """All rows of a release come at once, so nobody has to wait for the next one to know that there are no more."""
    app = simple()
    app.query("rows", "SELECT count(*) AS n FROM q [NOW]")
    with LocalRun(app) as run:
        for number in range(9):
            run.push("s", [{"k": "a", "v": number}], at=START + number * 0.5)
            run.drain()
        assert len(run.instances("q")) == len(run.rows("rows")) == 2
