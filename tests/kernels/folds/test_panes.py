"""Panes over random logs and cuts equal the answers over the whole log."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kernels.folds.aggregates import close, expected, group_key
from tests.kernels.folds.logs import SCHEMA, VALUES, Memory, Step, logs, make_row, run_steps, table

from freshet.kernels.folds import compile_fold
from freshet.kernels.folds.states import upkeep
from freshet.model import ARRIVAL, Call, Lifetime, Panes, UserError
from freshet.model.operators import WINDOW_END, WINDOW_START

NUMBERS = ["i", "t", "v", "d", "c"]
CALLS = (
    Call("n", "count"),
    *(Call(f"count_{c}", "count", c) for c in VALUES),
    *(Call(f"distinct_{c}", "count_distinct", c) for c in VALUES),
    *(Call(f"min_{c}", "min", c) for c in VALUES),
    *(Call(f"max_{c}", "max", c) for c in VALUES),
    *(Call(f"sum_{c}", "sum", c) for c in NUMBERS),
    *(Call(f"avg_{c}", "avg", c) for c in NUMBERS),
    *(Call(f"{f}_{c}", f, c) for c in ("t", "v", "c") for f in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")),
    *(Call(f"p{p}_{c}", "approx_percentile", c, p) for c in ("t", "v", "c") for p in (0.0, 0.5, 0.9, 1.0)),
)
WINDOWS = st.sampled_from([(10, 10), (10, 5), (12, 4), (7, 3), (3, 7), (1, 1), (30, 1)])
KEYS = st.sampled_from([(), ("k",), ("f",), ("k", "f"), ("b", "day"), ("i",), ("c",)])
SLOW = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def place(row: dict[str, Any], keys: tuple[str, ...], end: int) -> tuple[Any, ...]:
    return (end, *(group_key(row[key]) for key in keys))


def batch(rows: list[dict[str, Any]], keys: tuple[str, ...], size: int, slide: int) -> dict[tuple[Any, ...], list[Any]]:
    """The tuples of each group at each boundary."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        if row["ts"] is None:
            continue
        for boundary in range(row["ts"] // slide + 1, (row["ts"] + size) // slide + 1):
            assert boundary * slide - size <= row["ts"] < boundary * slide
            found.setdefault(place(row, keys, boundary * slide), []).append(row)
    return found


def check(
    row: dict[str, Any], members: list[dict[str, Any]], calls: tuple[Call, ...], schema: pa.Schema = SCHEMA
) -> None:
    for call in calls:
        values = [member[call.column] if call.column else 1 for member in members]
        want = expected(call, values, schema.field(call.column).type if call.column else None)
        assert close(call, row[call.output], want, values), (call, row[call.output], want, values)


@SLOW
@given(logs(), WINDOWS, KEYS, st.data())
def test_all_calls_at_all_closed_boundaries(steps: list[Step], window: tuple[int, int], keys: Any, data: Any) -> None:
    size, slide = window
    calls = tuple(data.draw(st.lists(st.sampled_from(CALLS), max_size=6, unique=True)))
    rows, _ = run_steps(Panes("p", Lifetime("ts", size), slide, keys, calls), steps)
    watermark = steps[-1].watermark
    tuples = [row for step in steps for row in step.rows]
    want = {
        at: some
        for at, some in batch(tuples, keys, size, slide).items()
        if watermark is not None and at[0] <= watermark
    }
    got = {place(row, keys, row[WINDOW_END]): row for row in rows}
    assert len(got) == len(rows)
    assert got.keys() == want.keys()
    for at, row in got.items():
        check(row, want[at], calls)
        assert row[ARRIVAL] == max(member[ARRIVAL] for member in want[at])
        assert row[WINDOW_START] == row[WINDOW_END] - size


@pytest.mark.parametrize("long_lived", [0.0, 0.01, 0.3, 1.0])
def test_state_is_bounded_by_the_panes_that_are_needed(long_lived: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples that outlive all others keep the low end of the state; what is dead or equal behind them must go, too."""
    monkeypatch.setattr(upkeep, "SMALL", 0)  # it would hide all that so few tuples bring
    schema, slide, random = SCHEMA.append(pa.field("until", pa.int64())), 50, Random(7)
    calls = (Call("x", "count_distinct", "t"),)
    operator = Panes("p", Lifetime("ts", None, "until"), slide, ("k",), calls)
    fold = compile_fold(operator, schema)
    memory, before, seen = Memory(fold, operator), None, []
    for now in range(300):
        row = make_row(random, now, now, unfinite=False)
        row["until"] = 10_000 if now == 0 or random.random() < long_lived else now + 75
        seen.append((row["ts"] // slide, row["until"] // slide, row["k"], row["t"]))
        memory.run(fold, table([row], schema), [before], [now])
        before = now
        live = [each for each in seen if each[1] > now // slide]
        assert memory.states[0].num_rows <= 8 * len({each[:-1] for each in live})
        assert memory.states[1].num_rows <= 8 * len({each for each in live if each[-1] is not None})


@pytest.mark.parametrize("moves", [True, False])
def test_state_does_not_grow_with_tuples_or_time(moves: bool) -> None:
    operator = Panes("p", Lifetime("ts", 100), 10, ("t",), (Call("s", "sum", "i"),))
    fold = compile_fold(operator, SCHEMA)
    memory, before, top = Memory(fold, operator), None, 0
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    for step in range(300):
        now = step * 5 if moves else 0
        rows = [{**base, "ts": now + n % 7, "t": n % 9, "i": 1, ARRIVAL: step} for n in range(40)]
        memory.run(fold, table(rows), [before], [now])
        before = now
        top = max(top, memory.states[0].num_rows)
    assert top <= 4 * 9 * 12 + 128
    if not moves:
        rows = memory.run(fold, table([]), [0], [10])
        assert sum(row["s"] for row in rows) == 300 * 40
    # Rewriting is rare: what is written stays in proportion to what came.
    assert memory.appended <= 4 * 300 * 18


@SLOW
@given(logs(unfinite=False), WINDOWS)
def test_changes_are_the_state_of_open_boundaries(steps: list[Step], window: tuple[int, int]) -> None:
    size, slide = window
    calls = (Call("n", "count"), Call("s", "sum", "t"), Call("x", "count_distinct", "s"), Call("lo", "min", "v"))
    operator = Panes("p", Lifetime("ts", size), slide, ("k",), calls, "changes")
    fold = compile_fold(operator, SCHEMA)
    memory, before, seen = Memory(fold, operator), None, []
    for step in steps:
        rows = memory.run(fold, table(step.rows), [before], [step.watermark])
        seen += step.rows
        groups = batch(seen, ("k",), size, slide)
        touched = set(batch(step.rows, ("k",), size, slide))
        closed = {
            at for at in groups
            if step.watermark is not None and at[0] <= step.watermark // slide * slide
        }  # fmt: skip
        old = {at for at in groups if before is not None and at[0] <= before // slide * slide}
        got = {place(row, ("k",), row[WINDOW_END]): row for row in rows}
        assert len(got) == len(rows)
        assert got.keys() == (closed | touched) - old
        for at, row in got.items():
            check(row, groups[at], calls)
        before = step.watermark


@SLOW
@given(logs(), st.sampled_from([1, 4, 7]), st.integers(0, 2**32))
def test_validity_until_a_column(steps: list[Step], slide: int, seed: int) -> None:
    random = Random(seed)
    schema = SCHEMA.append(pa.field("until", pa.int64()))
    calls = (Call("n", "count"), Call("s", "sum", "t"), Call("v", "max", "v"), Call("x", "count_distinct", "s"),
             Call("d", "stddev_pop", "t"), Call("p", "approx_percentile", "t", 0.5))  # fmt: skip
    operator = Panes("p", Lifetime("ts", None, "until"), slide, ("k",), calls)
    fold = compile_fold(operator, schema)
    memory, before, got = Memory(fold, operator), None, []
    for step in steps:
        for row in step.rows:
            row["until"] = random.choice([None, row["ts"] + random.randint(-1, 20)])
        got += memory.run(fold, table(step.rows, schema), [before], [step.watermark])
        before = step.watermark
    want: dict[Any, list[Any]] = {}
    for row in (row for step in steps for row in step.rows if row["until"] is not None):
        for end in range(row["ts"] // slide + 1, row["until"] // slide + 1):
            if before is not None and end * slide <= before:
                want.setdefault((end * slide, row["k"]), []).append(row)
    assert {(row[WINDOW_END], row["k"]) for row in got} == want.keys()
    assert len(got) == len(want)
    for row in got:
        check(row, want[row[WINDOW_END], row["k"]], calls, schema)
        assert row[WINDOW_START] is None


def test_no_tuple_of_another_port_is_left_out() -> None:
    fold = compile_fold(Panes("p", Lifetime("ts", 10), 10, (), (Call("n", "count"),)), SCHEMA)
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    memory = Memory(fold)
    one = table([{**base, "ts": 1, ARRIVAL: 5}])
    assert memory.run(fold, one, [None, None], [30, None]) == []
    assert memory.run(fold, one, [30, None], [30, 9]) == []
    assert memory.run(fold, table([]), [30, 9], [30, 10]) == [{"n": 2, WINDOW_START: 0, WINDOW_END: 10, ARRIVAL: 5}]
    assert memory.states[0].num_rows == 0


def test_a_tuple_without_time_counts_nowhere_and_arrivals_are_times() -> None:
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    rows = table([{**base, "ts": None, ARRIVAL: 3}, {**base, "ts": 2, ARRIVAL: 14}])
    fold = compile_fold(Panes("p", Lifetime("ts", 10), 10, (), (Call("n", "count"),)), SCHEMA)
    assert [row["n"] for row in Memory(fold).run(fold, rows, [None], [10])] == [1]
    fold = compile_fold(Panes("p", Lifetime(None, 10), 10, (), (Call("n", "count"),)), SCHEMA)
    assert fold.output.field(WINDOW_END).type == pa.timestamp("us", "UTC")
    assert [(row["n"], row[WINDOW_END]) for row in Memory(fold).run(fold, rows, [None], [20])] == [(1, 10), (1, 20)]


def test_a_long_idle_time_costs_nothing() -> None:
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    fold = compile_fold(Panes("p", Lifetime("ts", 1), 1, (), (Call("n", "count"),)), SCHEMA)
    rows = Memory(fold).run(
        fold, table([{**base, "ts": t, ARRIVAL: 3} for t in (-(10**15), 5, 10**15)]), [None], [2**60]
    )
    assert [row[WINDOW_END] for row in rows] == [1 - 10**15, 6, 10**15 + 1]


def test_sums_overflow_in_the_result_only() -> None:
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    calls = (Call("s", "sum", "i"), Call("d", "sum", "d"))
    fold = compile_fold(Panes("p", Lifetime("ts", 10), 10, ("k",), calls), SCHEMA)
    big, huge = 2**63 - 1, VALUES["d"][1]
    rows = [
        {**base, "ts": 1, "k": "a", "i": i, "d": d, ARRIVAL: 0}
        for i, d in ((big, huge), (1, huge), (-1, huge.copy_negate()))
    ]
    rows += [{**base, "ts": 1, "k": "b", "i": big, "d": huge, ARRIVAL: 0} for _ in range(2)]
    folded, _ = fold.live([s.empty_table() for s in fold.states]).run(table(rows), [None], [10])
    assert folded.errors == 2
    assert sorted(folded.output.select(["k", "s", "d"]).to_pylist(), key=str) == [
        {"k": "a", "s": big, "d": huge},
        {"k": "b", "s": None, "d": None},
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("x", "sum", "s"), "sum needs a number, but column s has type string"),
        (Call("x", "approx_percentile", "i", 1.5), "needs a share between 0 and 1"),
        (Call("x", "sum"), r"sum\(\*\) is not defined"),
    ],
)
def test_calls_that_make_no_sense_are_refused(call: Call, message: str) -> None:
    with pytest.raises(UserError, match=message):
        compile_fold(Panes("p", Lifetime("ts", 10), 10, (), (call,)), SCHEMA)


def test_times_and_keys_that_make_no_sense_are_refused() -> None:
    schema = SCHEMA.append(pa.field("l", pa.list_(pa.int64())))
    with pytest.raises(UserError, match="must be a timestamp"):
        compile_fold(Panes("p", Lifetime("s", 10), 10), schema)
    with pytest.raises(UserError, match="cannot be grouped"):
        compile_fold(Panes("p", Lifetime("ts", 10), 10, ("l",)), schema)
