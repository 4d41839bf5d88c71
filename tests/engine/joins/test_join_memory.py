"""Joins by ordered keys whose memory has a bound: it is never exceeded, and the log says what was let go for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from freshet import App
from freshet.app.declared.join_memory import check_total
from freshet.model import KeyOrder, UserError
from freshet.quality.disorder import Disorder
from freshet.testing import LocalRun, Push, answers, assert_same, check_invariant
from freshet.testing.schedule import Schedule

Row = dict[str, Any]
SQL = "SELECT a.n, b.n AS m, a.t FROM a, b WHERE a.epoch = b.epoch"
SIZE = 65_536


def application(
    sql: str = SQL, memory: str | int | None = SIZE, streams: str = "ab", buffer: Any = "ram", **more: Any
) -> App:
    app = App("sensors", **more)
    for name in streams:
        app.stream(name, "epoch int, n int, t string", ordered_by="epoch", disorder="4 rows")
    app.query("q", sql, join_memory=memory, join_buffer=buffer)
    return app


def script(seed: int, pushes: int = 26, streams: str = "ab") -> list[Push]:
    """Streams of wide rows that lead and lag in turns."""
    random = np.random.default_rng(seed)
    at, done = dict.fromkeys(streams, 0), list[Push]()
    name = streams[0]
    for push in range(pushes):
        name = streams[int(random.integers(len(streams)))] if random.random() < 0.4 else name
        rows = int(random.integers(1, 14))
        keys = np.maximum(0, at[name] + np.arange(rows) // 2 - random.integers(0, 3, rows))
        widths = random.integers(0, 7000, rows)
        drawn = enumerate(zip(keys.tolist(), widths.tolist(), strict=True))
        done.append(Push(name, [{"epoch": key, "n": push * 100 + n, "t": "x" * width} for n, (key, width) in drawn]))
        at[name] += rows // 2
    return done


def in_memory(pushes: list[Push], size: int, order: KeyOrder, fixed: tuple[int, int]) -> list[tuple[Row, Row]]:
    """The pairs that the rule gives, reckoned row by row from its words alone."""
    known = {name: Disorder() for name in "ab"}
    rows: dict[str, list[Row]] = {"a": [], "b": []}
    kept: dict[str, list[bool]] = {"a": [], "b": []}
    level = -(10**9)

    def held(raised: int) -> int:
        marks = {name: max(raised, -(10**9) if each.mark is None else each.mark) for name, each in known.items()}
        total = 0
        for name, other, width in (("a", "b", fixed[0]), ("b", "a", fixed[1])):
            above = known[name].heights.reached(marks[other] + 1)
            texts = sum(len(row["t"]) for row in rows[name][above:]) if name == "a" else 0
            total += (len(rows[name]) - above) * width + texts
        return total

    for push in pushes:
        for row in push.rows:
            late, after, _ = known[push.stream].judge(np.array([row["epoch"]]), order, np.array([len(row["t"])]))
            known[push.stream] = after
            rows[push.stream].append(dict(row))
            kept[push.stream].append(not len(late) and row["epoch"] > level)
            if held(level) > size:
                heights = np.unique(np.concatenate([each.heights.kept for each in known.values()]))
                level = next(int(each) for each in heights if each > level and held(int(each)) <= size - size // 8)
    left, right = ([row for row, fine in zip(rows[name], kept[name], strict=True) if fine] for name in "ab")
    return [(one, other) for one in left for other in right if one["epoch"] == other["epoch"]]


@pytest.mark.parametrize("seed", range(2))
def test_the_answer_is_the_join_of_what_was_not_let_go(seed: int) -> None:
    pushes, app = script(seed), application()
    with LocalRun(app) as run:
        [budget] = run.memory.budgets.values()
    fixed = budget.costs[0].fixed, budget.costs[1].fixed
    assert (budget.costs[0].varies, budget.costs[1].varies) == (1, 0)
    expected = [
        {"n": one["n"], "m": other["n"], "t": one["t"]}
        for one, other in in_memory(pushes, SIZE, KeyOrder("epoch", rows=4), fixed)
    ]
    found = answers(app, pushes)["q"]
    assert_same(found, expected)
    whole = answers(application(memory=None), pushes)["q"]
    assert 0 < len(found) < len(whole), "some rows are let go"


@pytest.mark.parametrize(
    "sql",
    [
        SQL,
        "SELECT a.n, b.n AS m FROM a LEFT JOIN b ON a.epoch = b.epoch AND b.n > 300",
        "SELECT x.n, y.t FROM a x, a y WHERE x.epoch = y.epoch",
        "SELECT a.t, b.t AS u, c.t AS v FROM a, b, c WHERE a.epoch = b.epoch AND b.epoch = c.epoch",
    ],
    ids=["two", "left", "itself", "three"],
)
def test_trains_crashes_and_policies_change_nothing(sql: str) -> None:
    names = "".join(name for name in "abc" if f" {name}" in sql.split("FROM")[1])
    app = application(sql, streams=names)
    check_invariant(app, script(5, 12, names), cases=3)


@pytest.mark.parametrize("buffer", ["ram", "log", "sorted", "hybrid"])
def test_batches_change_nothing(buffer: str) -> None:
    pushes = script(7)
    whole, single = application(buffer=buffer), application(buffer=buffer)
    with LocalRun(whole) as one, LocalRun(single) as other:
        for push in pushes:
            one.push(push.stream, push.rows)
            for row in push.rows:
                other.push(push.stream, [row])
        ends = {name: one.log.end(name) for name in "ab"}
        assert one.log.levels("a", "q.join_1")
        for name, end in ends.items():
            assert one.log.let_go(name, 0, end, "q.join_1") == other.log.let_go(name, 0, end, "q.join_1")
            assert one.log.levels(name, "q.join_1") == other.log.levels(name, "q.join_1")


@pytest.mark.parametrize("rows", [7, 100_000])
@pytest.mark.parametrize("turns", [1, 5])
@pytest.mark.parametrize("buffer", ["ram", "log", "sorted", "hybrid"])
def test_what_is_remembered_never_exceeds_the_bound(rows: int, turns: int, buffer: str) -> None:
    """As the worker has it, whether the rows wait for long or not, and however small the trains are."""
    most = 0
    sql = "SELECT a.t, b.t AS u FROM a, b WHERE a.epoch = b.epoch"
    # Where leading inputs rest, trains are cut only if more waits than a train may have at all.
    few: Any = {"policy": f"rr({rows})"} if buffer in ("log", "hybrid") else {"max_train_rows": rows}
    with LocalRun(application(sql, buffer=buffer), **few) as run:
        for number, push in enumerate(script(11, 40)):
            run.push(push.stream, push.rows)
            assert (run.log.remembered_bytes("q.join_1") or 0) <= SIZE
            if number % turns == 0:
                while not run.engine.is_idle():
                    run.turn()
                    [fold] = run.engine.board.folds()
                    known = [each for each in fold.lows if each in run.log.streams()]
                    ends = ((each, fold.lows[each], run.log.end(each)) for each in known)
                    held = [run.log.read(each, low, end) for each, low, end in ends if low < end]
                    size = sum(each.nbytes for each in held)
                    assert size <= SIZE
                    most = max(most, size)
    assert most > SIZE // (2 if buffer in ("ram", "sorted") else 8), "the bound is made use of"


@pytest.mark.parametrize(
    ("buffer", "found"), [("ram", 600), ("sorted", 596), ("log", 600), ("hybrid", 596), ("auto", 600)]
)
def test_what_rests_in_the_log_needs_no_memory(buffer: str, found: int) -> None:
    """A stream that lags for ever by more than the bound finds all the same, if the leading one rests."""
    with LocalRun(application(buffer=buffer)) as run:
        for at in range(0, 900, 3):
            run.push("a", [{"epoch": at + n, "n": at, "t": "x" * 1000} for n in range(3)])
            run.push("b", [{"epoch": at + n - 300, "n": at, "t": ""} for n in range(3)])
            run.drain()
            assert (run.log.remembered_bytes("q.join_1") or 0) <= SIZE
        assert (len(run.rows("q")) == found) == (buffer not in ("ram", "sorted"))
        assert bool(run.missing("q")) == (buffer in ("ram", "sorted"))


def test_a_restart_goes_on_with_what_was_let_go() -> None:
    pushes = script(13)
    with LocalRun(application()) as whole, LocalRun(application()) as broken:
        for number, push in enumerate(pushes):
            whole.push(push.stream, push.rows)
            broken.push(push.stream, push.rows)
            if number % 7 == 0:
                broken.crash()
        whole.drain()
        broken.drain()
        assert broken.log.levels("b", "q.join_1") == whole.log.levels("b", "q.join_1") != []
        assert_same(broken.rows("q"), whole.rows("q"))
        assert broken.missing("q")[0].rows == whole.missing("q")[0].rows


def test_the_ledger_and_the_report_tell_what_was_let_go() -> None:
    with LocalRun(application()) as run:
        for push in script(7):
            run.push(push.stream, push.rows)
        run.drain()
        entries = [entry for entry in run.missing("q") if entry.kind == "let-go"]
        gone = {name: len(run.log.let_go(name, 0, run.log.end(name), "q.join_1")) for name in "ab"}
        assert {entry.stream: entry.rows for entry in entries} == {name: rows for name, rows in gone.items() if rows}
        query = run.engine.snapshot()["queries"]["q"]
        assert query["missing"]["let-go"] == sum(gone.values())
        assert query["completeness"] < 1.0


def test_memory_is_divided() -> None:
    app = App("sensors", join_memory="1 MiB")
    for name in "abcd":
        app.stream(name, "epoch int, n int, t string", ordered_by="epoch", disorder="4 rows")
    app.query("own", "SELECT a.n FROM a, b WHERE a.epoch = b.epoch", join_memory="256 KiB")
    app.query("two", "SELECT a.n FROM a, c WHERE a.epoch = c.epoch")
    app.query("three", "SELECT b.n FROM b, d WHERE b.epoch = d.epoch")
    app.query("plain", "SELECT n FROM a")
    with LocalRun(app) as run:
        sizes = {name: budget.size for name, budget in run.memory.budgets.items()}
    assert sizes == {"own.join_1": 2**18, "two.join_1": 3 * 2**17, "three.join_1": 3 * 2**17}


def test_less_memory_lets_go_at_once() -> None:
    with LocalRun(application(memory=4 * SIZE)) as run:
        run.push("a", [{"epoch": n, "n": n, "t": "x" * 2000} for n in range(100)])
        run.drain()
        assert (run.log.remembered_bytes("q.join_1") or 0) > SIZE
        [budget] = run.memory.budgets.values()
        run.log.give_memory(type(budget)(budget.join, budget.streams, budget.costs, SIZE))
        assert (run.log.remembered_bytes("q.join_1") or 0) <= SIZE
        run.push("b", [{"epoch": n, "n": n, "t": ""} for n in range(100)])
        run.drain()
        found = sorted(row["n"] for row in run.rows("q"))
        assert found == list(range(found[0], 100))
        assert 20 < len(found) < 33


@pytest.mark.parametrize(
    ("sql", "memory", "why"),
    [
        (SQL, "1 KiB", "query q: join_memory must be at least 64 KiB, not 1024 bytes"),
        (SQL, "much", "'much' is not a size"),
        ("SELECT n FROM a", "1 MiB", "join_memory is for joins by ordered keys, and this query has none"),
        (
            "SELECT x.n FROM (SELECT a.n, b.epoch AS e FROM a, b WHERE a.epoch = b.epoch) x "
            "LEFT JOIN c ON x.e = c.epoch",
            "1 MiB",
            "name all streams in one FROM",
        ),
    ],
)
def test_bad_input(sql: str, memory: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        application(sql, memory, "abc", buffer="auto").check()


def test_parts_that_are_more_than_the_whole() -> None:
    with pytest.raises(UserError, match=r"of q is 65.5 KB together, and the application has only 65.5 KB, so that not"):
        check_total(SIZE, {"q": SIZE, "p": None}, 1)
    with pytest.raises(UserError, match=r"app.join_memory: join_memory of q is 131 KB together"):
        application(memory=2 * SIZE, join_memory=SIZE).check()


def test_a_query_that_does_not_fit_can_be_refused() -> None:
    with LocalRun(application(admission="refuse")) as run:
        run.memory.check(run.queries)
        run.push("a", [{"epoch": n, "n": n, "t": "x" * 2000} for n in range(100)])
        with pytest.raises(UserError, match=r"q.join_1 must remember .* give it more, or set admission = .degrade"):
            run.memory.check(run.queries)


def test_a_schedule_with_boxes_apart_gives_the_same() -> None:
    app, pushes = application(), script(19, 20)
    assert_same(answers(app, pushes, schedule=Schedule(("baat",), max_train_rows=9))["q"], answers(app, pushes)["q"])
