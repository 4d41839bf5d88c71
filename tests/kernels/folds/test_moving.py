"""Moving windows over random logs and cuts: each tuple sees what the log holds up to its offset."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kernels.folds.aggregates import group_key
from tests.kernels.folds.logs import SCHEMA, Memory, Step, logs, run_steps, table
from tests.kernels.folds.test_panes import CALLS, check

from freshet.kernels.folds import compile_fold
from freshet.model import ARRIVAL, Call, Moving, UserError

SLOW = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
SOME = st.lists(st.sampled_from(CALLS), min_size=1, max_size=6, unique=True).map(tuple)
PLAIN = [call for call in CALLS if call.function not in ("count_distinct", "approx_percentile")]


def same(one: dict[str, Any], other: dict[str, Any], columns: tuple[str, ...]) -> bool:
    return all(group_key(one[column]) == group_key(other[column]) for column in columns)


def tuples_of(steps: list[Step]) -> list[dict[str, Any]]:
    return [row for step in steps for row in step.rows]


@SLOW
@given(logs(), st.sampled_from([1, 3, 10, 1000]), st.sampled_from([(), ("k",), ("f", "b")]), SOME)
def test_range(steps: list[Step], size: int, keys: tuple[str, ...], calls: tuple[Call, ...]) -> None:
    rows, memory = run_steps(Moving("m", "ts", size, keys=keys, calls=calls, carried=("i", "s")), steps)
    tuples = tuples_of(steps)
    assert len(rows) == len(tuples)
    for offset, (row, own) in enumerate(zip(rows, tuples, strict=True)):
        seen = [t for t in tuples[: offset + 1] if own["ts"] - size < t["ts"] <= own["ts"] and same(t, own, keys)]
        assert (row["i"], row["s"], row[ARRIVAL]) == (own["i"], own["s"], own[ARRIVAL])
        check(row, seen, calls)
    last = steps[-1].watermark
    live = [row for row in tuples if last is None or row["ts"] > last - size]
    assert memory.states[0].num_rows <= 2 * len(live) + 1


@SLOW
@given(
    logs(),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([(), ("k",), ("k", "b")]),
    st.sampled_from([(), ("k",), ("b",)]),
    SOME,
)
def test_rows(steps: list[Step], count: int, partition: Any, keys: Any, calls: tuple[Call, ...]) -> None:
    rows, memory = run_steps(Moving("m", "ts", None, count, partition, keys, calls, ("i",)), steps)
    tuples = tuples_of(steps)
    for offset, (row, own) in enumerate(zip(rows, tuples, strict=True)):
        window = [t for t in tuples[: offset + 1] if same(t, own, partition)][-count:]
        check(row, [t for t in window if same(t, own, keys)], calls)
        assert row[ARRIVAL] == own[ARRIVAL]
    partitions = {tuple(group_key(row[name]) for name in partition) for row in tuples}
    assert memory.states[0].num_rows <= 2 * len(partitions) * (count - 1) + 1


@SLOW
@given(logs(), st.lists(st.sampled_from(PLAIN), min_size=1, max_size=6, unique=True).map(tuple))
def test_unbounded(steps: list[Step], calls: tuple[Call, ...]) -> None:
    rows, memory = run_steps(Moving("m", "ts", calls=calls, carried=("i",)), steps)
    tuples = tuples_of(steps)
    for offset, row in enumerate(rows):
        check(row, tuples[: offset + 1], calls)
    assert len(rows) == len(tuples)
    assert memory.states[0].num_rows <= 1


def test_long_windows_of_late_tuples() -> None:
    """Long enough for blocks of rows, with ties and lateness, so that all ways through a window are taken."""
    calls = (
        Call("n", "count"),
        Call("s", "sum", "t"),
        Call("v", "sum", "v"),
        Call("lo", "min", "v"),
        Call("hi", "max", "s"),
        Call("x", "count_distinct", "t"),
        Call("p", "approx_percentile", "v", 0.3),
        Call("d", "stddev_samp", "v"),
    )
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    rows: list[dict[str, Any]] = []
    for n in range(600):
        late = n * 7 % 11 if n % 4 == 0 else 0
        row = {"ts": n // 3 - late, "k": "ab"[n % 2], "t": n * 31 % 97, "v": n * 17 % 101 / 8, "s": str(n * 13 % 89)}
        rows.append({**base, **row, ARRIVAL: n})
    operator = Moving("m", "ts", 90, keys=("k",), calls=calls)
    fold = compile_fold(operator, SCHEMA)
    memory = Memory(fold, operator)
    got = memory.run(fold, table(rows[:350]), [None], [100]) + memory.run(fold, table(rows[350:]), [100], [180])
    for offset, own in enumerate(rows):
        seen = [t for t in rows[: offset + 1] if own["ts"] - 90 < t["ts"] <= own["ts"] and t["k"] == own["k"]]
        check(got[offset], seen, calls)


def test_a_tuple_without_time_has_no_window() -> None:
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    rows = table([{**base, "ts": time, ARRIVAL: place} for place, time in enumerate([1, None, 2])])
    fold = compile_fold(Moving("m", "ts", 10, calls=(Call("n", "count"),)), SCHEMA)
    assert [(row["n"], row[ARRIVAL]) for row in Memory(fold).run(fold, rows, [None], [0])] == [(1, 0), (2, 2)]


def test_unbounded_groups_are_refused() -> None:
    with pytest.raises(UserError, match="unbounded window has no groups"):
        compile_fold(Moving("m", "ts", keys=("k",), calls=(Call("n", "count"),)), SCHEMA)
    with pytest.raises(UserError, match="need a window with RANGE or ROWS"):
        compile_fold(Moving("m", "ts", calls=(Call("n", "count_distinct", "k"),)), SCHEMA)
