"""Where windows begin and end, by functions and by the order of an output."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from freshet.policies import Everything
from freshet.testing import OneBox, RandomSteps


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        # As Spark answers.
        ("window(ts, '10 seconds', '3 seconds')", {(-6, 4): 1, (-3, 7): 2, (0, 10): 3, (3, 13): 2, (6, 16): 1}),
        ("window(ts, '5 seconds', '5 seconds', '2 seconds')", {(-3, 2): 1, (2, 7): 1, (7, 12): 1}),
        ("window(ts, '4 seconds', '2 seconds', '1 second')", {(-1, 3): 1, (1, 5): 2, (3, 7): 1, (5, 9): 1, (7, 11): 1}),
    ],
)
def test_windows_by_functions_begin_at_multiples_of_their_slide(
    start: Any, window: str, expected: dict[tuple[int, int], int]
) -> None:
    columns = "window_start, window_end, count(*) AS n"
    queries = {"q": f"SELECT {columns} FROM s GROUP BY {window}"}
    if "'3 seconds'" in window:
        queries["hop"] = f"SELECT {columns} FROM HOP(s, ts, INTERVAL 3 SECONDS, INTERVAL 10 SECONDS)"
        queries["wide"] = "SELECT count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 3 SECONDS]"
    for policy in (Everything(), RandomSteps(3)):
        app = start(queries, policy)
        for at in (1, 4, 7):
            app.append("s", [(at, "a", 1)])
            app.turn()
        app.heartbeat("s", 100)
        app.run()
        for name in queries.keys() - {"wide"}:
            found = {(int(begin.timestamp()), int(end.timestamp())): n for begin, end, n in app.tuples(name)}
            assert found == expected


def test_what_stands_for_a_window_counts_in_the_one_that_ends_with_it(start: Any) -> None:
    """In a sub-query and over another query's output, as Spark's ``window_time`` has it."""
    tens = "SELECT k, sum(v) AS v, window_end AS e FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k"
    by_twenty = "[RANGE 20 SECONDS SLIDE 20 SECONDS]"
    over = "SELECT sum(v) AS v, window_end AS e FROM"
    queries = {
        "tens": tens,
        "renamed": "SELECT v, e AS at FROM tens WHERE v > 0",
        "direct": f"{over} s {by_twenty}",
        "nested": f"{over} ({tens}) {by_twenty}",
        "other": f"{over} tens {by_twenty}",
        "third": f"{over} renamed {by_twenty}",
        "fourth": f"{over} TUMBLE(tens, e, INTERVAL 20 SECONDS)",
        "single": f"SELECT e, window_end AS till FROM tens {by_twenty}",
        "both": f"{over} (SELECT v, e FROM tens UNION ALL SELECT 0, e FROM tens) {by_twenty}",
    }
    rng = random.Random(2)
    rows = [(place - 30 + rng.random(), rng.choice("ab"), 1 + rng.randrange(9)) for place in range(65)]
    for policy in (Everything(), RandomSteps(4), OneBox()):
        app = start(queries, policy)
        for place in range(0, len(rows), 7):
            app.append("s", rows[place : place + 7])
            app.turn()
        app.heartbeat("s", 100)
        app.run()
        assert len(app.tuples("direct")) == 4
        for name in queries.keys() - {"tens", "renamed", "direct", "single"}:
            assert app.answers(name) == app.answers("direct"), name
        for end, till in app.tuples("single"):
            assert till.timestamp() == math.ceil(end.timestamp() / 20) * 20


SUMS = "SELECT k, sum(v) AS v, window_end AS e FROM s [RANGE 3 SECONDS SLIDE 1 SECOND] GROUP BY k"
IN_ORDER = {
    "sums": SUMS,
    "large": "SELECT k AS c, v, e FROM sums WHERE v > 2",
    "last": "SELECT c, sum(v) AS t FROM large [PARTITION BY c ROWS 2] GROUP BY c",
    "recent": "SELECT c, max(v) AS t, min(v) AS u FROM large [RANGE 4 SECONDS] GROUP BY c",
    "new": "SELECT DISTINCT c, v FROM large [RANGE 5 SECONDS]",
    "nested": f"SELECT v, k, count(*) AS n FROM ({SUMS}) [PARTITION BY k ROWS 3] GROUP BY k, v",
    "whole": "SELECT sum(n) AS t FROM (SELECT count(*) AS n FROM s [RANGE 2 SECONDS SLIDE 1 SECOND]) [ROWS 3]",
}


def test_windows_by_the_order_of_an_output_do_not_depend_on_the_schedule(start: Any) -> None:
    rng = random.Random(5)
    rows = [(place / 3 + rng.random(), rng.choice("abc"), rng.randrange(4)) for place in range(120)]
    answers = []
    for seed in range(4):
        app = start(IN_ORDER, RandomSteps(seed) if seed else Everything(), slots=1 + seed % 3, seed=seed)
        place = 0
        while place < len(rows):
            size = rng.randint(1, 40) if seed else len(rows)
            app.append("s", rows[place : place + size])
            place += size
            app.turn()
        app.heartbeat("s", 1000)
        app.run()
        answers.append({name: app.answers(name) for name in IN_ORDER})
    assert answers[1:] == answers[:1] * 3
    assert all(sum(rows.values()) > 20 for rows in answers[0].values())
