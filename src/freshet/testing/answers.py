"""The answers of an application to given rows, and a check that they depend on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from freshet.app import App
from freshet.model import UserError
from freshet.testing.compare import TOLERANCE, difference
from freshet.testing.schedule import POLICIES, Schedule
from freshet.testing.script import Given, Script, read_script

Answers = dict[str, list[dict[str, Any]]]
"""The rows of each query's output, in order."""


def answers(app: App, given: Given, *, schedule: Schedule | None = None) -> Answers:
    """What the queries of an application answer to rows, without Spark; at the end all windows close.

    Args:
        app: The application. Its sources and sinks are not started.
        given: Rows by stream, and by table if its file is not to be read. Or a list of what happens one after the
            other: :class:`Push`, :class:`Heartbeat`, :class:`Put`.
        schedule: How to run it; None: all rows are there before anything runs.

    Raises:
        UserError: There is no such stream, a row does not fit, or only Spark can run a query.
        AssertionError: A query failed.

    >>> app = App("shop")
    >>> app.stream("orders", "ts timestamp, id int, amount double", event_time="ts", lateness="2 s")
    >>> app.query("large", "SELECT id, amount FROM orders WHERE amount > 100")
    >>> app.query("sums", "SELECT sum(amount) AS total FROM orders [RANGE 10 SECONDS SLIDE 10 SECONDS]")
    >>> rows = [{"ts": 1, "id": 1, "amount": 250.0}, {"ts": 2, "id": 2, "amount": 50.0}]
    >>> answers(app, {"orders": rows})
    {'large': [{'id': 1, 'amount': 250.0}], 'sums': [{'total': 300.0}]}
    """
    return _played(app, read_script(app, given), schedule or Schedule())


def check_invariant(
    app: App,
    given: Given,
    *,
    cases: int = 20,
    seed: int = 0,
    policies: Sequence[str] = POLICIES,
    tolerance: float = TOLERANCE,
) -> None:
    """Checks that the answers depend on the rows alone. It cuts the rows at random into trains, with other policies and
    numbers of workers, with crashes in the middle and workers that fail, and compares what comes out.

    Args:
        app: The application.
        given: As for :func:`answers`.
        cases: Number of schedules.
        seed: Seed of the first schedule; the next ones have the numbers after it.
        policies: Policies to draw from.
        tolerance: How far floating-point numbers may differ.

    Raises:
        AssertionError: A schedule gives other answers. The error says which schedule, and how the answers differ.
        UserError: There are no cases or no policies to check.

    >>> app = App("shop")
    >>> app.stream("orders", "id int, amount double")
    >>> app.query("last", "SELECT sum(amount) AS total FROM orders [ROWS 3]")
    >>> check_invariant(app, {"orders": [{"id": n, "amount": n / 10} for n in range(9)]}, cases=3)
    """
    if cases < 1:
        raise UserError(f"cases is the number of schedules, at least 1: it cannot be {cases}")
    if not policies:
        raise UserError("policies must name at least one policy")
    script = read_script(app, given)
    expected = _played(app, script, Schedule())
    for number in range(seed, seed + cases):
        schedule = Schedule.drawn(number, policies)
        try:
            found = _played(app, script, schedule)
        except Exception as error:
            error.add_note(_again(schedule))
            raise
        for query, rows in expected.items():
            told = difference(found[query], rows, tolerance=tolerance)
            if told is not None:
                raise AssertionError(
                    f"query {query} gives other answers under another schedule: {told}\n{_again(schedule)}"
                )


def _again(schedule: Schedule) -> str:
    return f"  the schedule:  {schedule}\n  to see it again: check_invariant(..., cases=1, seed={schedule.seed})"


def _played(app: App, script: Script, schedule: Schedule) -> Answers:
    with schedule.play(app, script) as run:
        for query, reason in run.stopped.items():
            raise AssertionError(f"query {query} failed: {reason}")
        return {query: run.rows(query) for query in app.queries}
