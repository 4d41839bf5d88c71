"""An application in process: faults at every point, crashes, outputs that are held."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from freshet import App, UserError
from freshet.testing import Faults, Killed, LocalRun, difference

ROWS = [{"v": n} for n in range(6)]
KEPT = [{"v": n} for n in range(2, 6)]


@pytest.fixture
def app() -> App:
    made = App("counting")
    made.stream("s", "v int")
    made.query("large", "SELECT v FROM s WHERE v > 1")
    made.query("all", "SELECT v FROM s")
    return made


@pytest.mark.parametrize("point", ["begin", "return", "commit", "committed"])
def test_what_is_durable_when_the_process_dies_is_there_and_all_else_comes_again(app: App, point: str) -> None:
    faults = Faults().kill(point)  # type: ignore[arg-type]
    with LocalRun(app, faults=faults) as run:
        run.push("s", ROWS)
        with pytest.raises(Killed, match=f"kill at {point} 1"):
            run.drain()
        run.crash()
        assert run.rows("large") == (KEPT if point == "committed" else [])
        assert run.drain()
        assert (run.rows("large"), run.rows("all")) == (KEPT, ROWS)


@pytest.mark.parametrize(
    "plan",
    [
        lambda faults: faults.fail("begin"),
        lambda faults: faults.fail("return"),
        lambda faults: faults.fail("commit").fail("commit", nth=2),
        lambda faults: faults.cancel("begin"),
        lambda faults: faults.cancel("return"),
    ],
)
def test_what_fails_or_is_cancelled_runs_again(app: App, plan: Callable[[Faults], Faults]) -> None:
    faults = plan(Faults())
    with LocalRun(app, faults=faults) as run:
        run.push("s", ROWS)
        assert run.drain()
        assert (run.rows("large"), run.rows("all")) == (KEPT, ROWS)
    assert faults.happened


def test_queries_share_as_the_application_says() -> None:
    found = {}
    for share in (False, True):
        app = App("sharing", share=share)
        app.stream("s", "v int")
        for name in ("one", "two"):
            app.query(name, "SELECT v FROM s WHERE v > 1")
        with LocalRun(app) as run:
            run.push("s", ROWS)
            assert run.drain()
            assert run.rows("one") == run.rows("two") == KEPT
            found[share] = len(run.engine.board.operators)
    assert found == {False: 4, True: 2}


def test_a_query_that_raises_stops_and_the_others_go_on(app: App) -> None:
    with LocalRun(app, faults=Faults().raise_in("large")) as run:
        run.push("s", ROWS)
        assert run.drain()
        assert run.stopped == {"large": "RuntimeError: it raised"}
        assert (run.rows("large"), run.rows("all")) == ([], ROWS)


def test_a_fault_in_a_query_that_is_not_there_is_refused(app: App) -> None:
    with pytest.raises(UserError, match="raise_in: there is no query 'lage' \\(there are: "):
        LocalRun(app, faults=Faults().raise_in("lage"))


def test_a_fault_where_it_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match="cancel is not possible at 'commit': use one of begin, return"):
        Faults().cancel("commit")
    with pytest.raises(UserError, match="nth counts from 1 on"):
        Faults().fail("begin", nth=0)
    with pytest.raises(UserError, match="share must be from 0 to 1, not 2"):
        Faults.at_random(1, 2)
    with pytest.raises(UserError, match=r"not -0\.5"):
        Faults().raise_in("large", -0.5)


def test_a_crash_keeps_what_was_pushed_and_forgets_what_was_on_its_way(app: App) -> None:
    with LocalRun(app, policy="rr(1)") as run:
        run.push("s", ROWS)
        run.turn()
        run.crash()
        assert (run.rows("s"), run.rows("large")) == (ROWS, [])
        assert run.drain()
        assert run.rows("large") == KEPT


def test_an_output_that_is_held_takes_nothing(app: App) -> None:
    with LocalRun(app) as run:
        run.hold(["large"])
        run.push("s", ROWS)
        for _ in range(5):
            run.turn()
        assert (run.rows("large"), run.rows("all")) == ([], ROWS)
        with pytest.raises(UserError, match=r"the outputs of large are held: let them go with hold\(\[\]\) first"):
            run.drain()
        run.hold([])
        assert run.drain()
        assert run.rows("large") == KEPT


def test_a_row_that_does_not_fit_is_a_dead_letter_where_the_test_wants_it(app: App) -> None:
    with LocalRun(app) as run:
        assert run.push("s", [{"v": "x"}, {"v": 1}], strict=False).dead == 1
        assert run.rows("s") == [{"v": 1}]


def test_a_name_that_is_not_there_is_told(app: App) -> None:
    with LocalRun(app) as run, pytest.raises(UserError, match=r"no query or stream 'larg' \(did you mean 'large'\?\)"):
        run.rows("larg")


@pytest.mark.parametrize(
    "use",
    [
        lambda run: run.push("s", [{"v": 1}]),
        lambda run: run.heartbeat("s", 1),
        lambda run: run.turn(),
        lambda run: run.drain(),
        lambda run: run.rows("large"),
        lambda run: run.crash(),
    ],
)
def test_a_run_that_is_closed_is_told(app: App, use: Callable[[LocalRun], object]) -> None:
    with LocalRun(app) as run:
        run.crash()
        run.push("s", [{"v": 1}])
    with pytest.raises(UserError, match="this run is closed: use it inside its with block"):
        use(run)


def test_runs_leave_no_folder(app: App) -> None:
    with LocalRun(app) as run:
        before = run.folder
        run.crash()
        assert not before.exists()
        assert run.folder.exists()
    assert not run.folder.exists()


def test_differences_are_counted_whatever_the_order() -> None:
    assert difference([{"x": 1.0}, {"x": float("nan")}], [{"x": float("nan")}, {"x": 1}]) is None
    assert difference([{"x": 1.0 + 1e-12}, {"x": 1.0}], [{"x": 1.0}, {"x": 1.0 - 1e-12}]) is None
    assert difference([{"x": [1, {"y": 2}]}], [{"x": [1, {"y": 2}]}]) is None
    told = difference([{"x": 1}, {"x": 1}], [{"x": 1}])
    assert told == "2 rows, expected 1; 1 the same\n  unexpected: {'x': 1}"
    assert difference([{"x": 1.0}], [{"x": 1.0, "y": None}]) is not None
    assert str(difference([{"x": 1}], [])).startswith("1 row, expected 0; 0 the same")
    many = difference([{"x": n} for n in range(15)], [])
    assert many is not None
    assert many.endswith("unexpected: and 5 more")
