"""Windows hold no more of a stream than its bound, and the ledger has what they let go."""

from __future__ import annotations

import pytest

from freshet import App
from freshet.log import Retention
from freshet.testing import LocalRun
from freshet.testing.local_run import START

BOUND = 20_000
PER_SECOND = 100
SECONDS = 30


def declared(window: str, bound: int | None, what: str = "count(*) AS n, min(v) AS low") -> App:
    app = App("held")
    app.stream("s", "v int", retention=Retention(history_age=0.0, history_bytes=0, bound_bytes=bound))
    app.query("q", f"SELECT {what} FROM s [{window}] PERIOD 1 s", missed="catch-up")
    return app


def play(run: LocalRun, crashes: bool, slow: bool) -> None:
    for second in range(SECONDS):
        rows = [{"v": PER_SECOND * second + number} for number in range(PER_SECOND)]
        run.push("s", rows, at=START + second + 0.5)
        run.heartbeat("s", START + second + 1.0)
        if slow and second % 7:
            run.turn()  # takes the release; its instance waits
        else:
            run.drain()
        run.tidy()
        if crashes and second % 5 == 4:
            run.crash()
    run.drain()


@pytest.mark.parametrize("window", ["ROWS 100000", "RANGE 1 h"])
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("slow", [False, True])
def test_answers_are_those_of_log_minus_what_was_let_go(window: str, crashes: bool, slow: bool) -> None:
    what = "v" if window.startswith("RANGE") else "count(*) AS n, min(v) AS low"
    with LocalRun(declared(window, BOUND, what)) as run:
        play(run, crashes, slow)
        entries = [entry for entry in run.missing("q") if entry.kind == "lost"]
        rows, instances = run.rows("q"), run.instances("q")
        assert run.log.oldest("s") >= max(entry.end for entry in entries) - PER_SECOND * 8
    assert entries
    assert all(entry.rows == entry.end - entry.first for entry in entries)
    assert len(instances) == SECONDS
    for one in instances:
        second = round(one.release / 1e6 - START)
        first = max([entry.end for entry in entries if entry.since < one.release], default=0)
        seen = range(first, PER_SECOND * second)
        own = rows[one.first : one.first + one.rows]
        if what == "v":
            assert [row["v"] for row in own] == list(seen), second
        else:
            assert own == [{"n": len(seen), "low": seen.start}], second


def test_nothing_is_let_go_below_the_bound_and_without_one() -> None:
    for window, bound in (("RANGE 2 s", BOUND), ("RANGE 1 h", None)):
        with LocalRun(declared(window, bound)) as run:
            play(run, crashes=False, slow=False)
            assert run.missing("q") == []
