"""States in parts by key: divided anew in one commit, and no answer depends on how many there are."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from tests.engine.kit import Application

from freshet.model import state_stream
from freshet.policies import Everything
from freshet.testing import Faults, InProcessExecutor

QUERIES = {
    "sums": "SELECT k, sum(v) AS s, count(DISTINCT v) AS d, window_end FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] "
    "GROUP BY k",
    "pairs": "SELECT s.k AS k, s.v AS a, t.v AS b FROM s [RANGE 9 SECOND] LEFT JOIN t [RANGE 9 SECOND] ON s.k = t.k",
    "last": "SELECT k, max(v) AS most FROM s [PARTITION BY k ROWS 3] GROUP BY k",
    "all": "SELECT count(*) AS n, window_end FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS]",
}
FOLDS = {"sums": 2, "pairs": 2, "last": 1}
Wanted = dict[str, int]


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> Wanted:
    """The number of parts that all states with keys should have, or those of a query, and the number of tasks."""
    found = {"parts": 1, "tasks": 1}

    def parts(executor: InProcessExecutor, fold: str, now: int, rows: int, remembered: int) -> int:
        return found.get(fold.partition(".")[0], found["parts"]) if executor._keyed(fold) else 1

    monkeypatch.setattr(InProcessExecutor, "parts", parts)
    monkeypatch.setattr(InProcessExecutor, "tasks", lambda executor: found["tasks"])
    return found


def chunks(seed: int = 0) -> list[tuple[str, list[tuple[float, str | None, int | None]]]]:
    draw = random.Random(seed)
    keys = [*"abcdefghij", None]
    return [
        (stream, [(3 * chunk + draw.random() * 3, draw.choice(keys), draw.randint(0, 9)) for _ in range(8)])
        for chunk in range(20)
        for stream in ("s", "t")
    ]


def play(app: Application, wanted: Wanted, counts: list[int], restart: bool) -> dict[str, Counter[tuple[Any, ...]]]:
    """Plays all chunks, with other numbers of parts one after the other."""
    given = chunks()
    size = -(-len(given) // len(counts))
    for place, count in enumerate(counts):
        wanted.update(parts=count, tasks=count)
        if restart and place:
            app.crash(Everything(), place)
        for stream, rows in given[place * size : (place + 1) * size]:
            app.append(stream, rows)
            app.run()
        assert all(fold.parts == (count if fold.node.operator.split_keys else 1) for fold in folds(app))
    for stream in ("s", "t"):
        app.heartbeat(stream, 1000)
    app.run()
    return {name: app.answers(name) for name in QUERIES}


def folds(app: Application) -> list[Any]:
    return list(app.engine.board.folds())


@pytest.mark.parametrize("restart", [False, True], ids=["at work", "restarted"])
def test_other_numbers_of_parts_change_no_answer(start: Any, wanted: Wanted, restart: bool) -> None:
    expected = play(start(QUERIES), wanted, [1], restart=False)
    assert all(expected.values())
    found = play(start(QUERIES), wanted, [1, 2, 4, 1, 3], restart)
    assert found == expected


def test_only_the_present_parts_hold_rows(start: Any, wanted: Wanted) -> None:
    app = start({"sums": QUERIES["sums"]})
    for count in (1, 2, 4, 2):
        wanted.update(parts=count)
        app.append("s", [(5, key, 1) for key in "abcdefghij"])
        app.run()
        present = {state_stream("sums.aggregate", number, part, count) for number in (0, 1) for part in range(count)}
        held = {stream for stream, rows in app.states().items() if rows}
        assert held <= present
        assert len(held) > count
    app.crash(Everything(), 1)
    assert [fold.parts for fold in folds(app)] == [2]
    app.heartbeat("s", 1000)
    app.run()
    assert app.answers("sums") == Counter(
        {(key, 4, 1, end): 1 for key, _, _, end in app.answers("sums")}  # four rows of each key, with one value
    )
    assert len(app.answers("sums")) == 20
    assert sum(app.states().values()) == 0


def test_a_state_without_rows_is_divided_without_a_unit(start: Any, wanted: Wanted) -> None:
    app = start({"sums": QUERIES["sums"]})
    wanted.update(parts=3, tasks=2)
    app.append("s", [(5, key, 1) for key in "abcdefghij"])
    app.run()
    assert app.engine.snapshot()["workers"]["units"] == 1
    assert not app.log.named("sums.aggregate.state_2_h1_part_1_of_2")
    assert sum(rows for stream, rows in app.states().items() if "_of_3" in stream) == sum(app.states().values()) > 0


def test_a_crash_before_the_commit_leaves_the_state_as_it_was(start: Any, wanted: Wanted) -> None:
    app = start({"sums": QUERIES["sums"]})
    app.append("s", [(5, key, 1) for key in "abcdefghij"])
    app.run()
    before = app.states()
    wanted.update(parts=2)
    app.append("s", [(6, key, 2) for key in "abc"])
    app.engine.turn()  # the unit has run, and nobody has committed it
    wanted.update(parts=1)
    app.crash(Everything(), 1)
    assert {stream: rows for stream, rows in app.states().items() if rows} == before
    assert [fold.parts for fold in folds(app)] == [1]
    app.run()
    app.heartbeat("s", 1000)
    app.run()
    assert Counter(row[:3] for row in app.tuples("sums")) == Counter(
        {**{(key, 3, 2): 2 for key in "abc"}, **{(key, 1, 1): 2 for key in "defghij"}}
    )


def test_a_query_that_fails_in_one_task_fails_as_a_whole(start: Any, wanted: Wanted) -> None:
    wanted.update(parts=2, tasks=2)
    faults = Faults()
    app = start({"sums": QUERIES["sums"]}, faults=faults)
    app.append("s", [(5, key, 1) for key in "abcdefghij"])
    app.run()
    faults.raise_in("sums", 1.0)
    before = app.states()
    app.append("s", [(6, key, 1) for key in "abcdefghij"])
    app.drain()
    assert "sums" in app.stopped
    assert app.states() == before


def test_answers_tuple_by_tuple_keep_the_order_of_the_tuples(start: Any, wanted: Wanted) -> None:
    """A window of rows over them goes by their order, however many parts and tasks there are."""
    queries = {
        "fresh": "SELECT DISTINCT k FROM s [RANGE 2 SECONDS]",
        "lately": "SELECT k, count(*) AS n FROM fresh [ROWS 3] GROUP BY k",
    }
    given = [[(3 * chunk + place / 10, key, 1) for place, key in enumerate("badcafe")] for chunk in range(3)]
    found = []
    for count in (1, 2, 3):
        app = start(queries)
        wanted.update(parts=count, tasks=count)
        for rows in given:
            app.append("s", rows)
            app.run()
        assert [fold.parts for fold in folds(app) if fold.node.name.startswith("fresh")] == [count]
        found.append([app.tuples(name) for name in queries])
        app.close()
    assert found[0] == found[1] == found[2]
    assert [key for (key,) in found[0][0]] == list("badcfe" * 3)


def test_folds_over_the_same_tuples_may_lie_in_different_numbers_of_parts(start: Any, wanted: Wanted) -> None:
    """Each task takes the tuples of its own parts for each of them, though both have the same keys."""
    join = "SELECT s.k AS k, s.v AS a, t.v AS b FROM s [RANGE {} SECOND] JOIN t [RANGE {} SECOND] ON s.k = t.k"
    queries = {"short": join.format(3, 3), "long": join.format(9, 9)}
    found = []
    for counts in ({"short": 1, "long": 1}, {"short": 2, "long": 3}, {"short": 4, "long": 2}):
        app = start(queries)
        wanted.update(counts, tasks=2)
        for stream, rows in chunks():
            app.append(stream, rows)
            app.run()
        assert {fold.node.name.partition(".")[0]: fold.parts for fold in folds(app)} == counts
        found.append({name: app.answers(name) for name in queries})
        app.close()
    assert all(found[0].values())
    assert found[0] == found[1] == found[2]
