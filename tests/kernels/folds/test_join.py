"""Joins over random logs of two inputs, cut and interleaved at random, equal a nested loop over both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kernels.folds.aggregates import group_key
from tests.kernels.folds.logs import SCHEMA, Memory, make_log, table

from freshet.kernels.folds import CompiledFold, compile_fold
from freshet.kernels.folds.matching import pairs
from freshet.kernels.folds.states.slab import Keys, Slab
from freshet.kernels.folds.states.state_rows import StateRows
from freshet.model import ARRIVAL, Join, Lifetime, UserError
from freshet.model.operators import FROM, UNTIL, earliest

OTHER = SCHEMA.append(pa.field("until", pa.int64()))
OTHER = OTHER.set(OTHER.get_field_index("t"), pa.field("t", pa.int32()))
COLUMNS: tuple[tuple[str, Literal[0, 1], str], ...] = (
    ("a", 0, "i"),
    ("b", 1, "s"),
    ("c", 0, "k"),
    ("d", 1, "ts"),
    ("e", 0, "i"),
)
KEYS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    ((), ()), (("k",), ("k",)), (("k", "b"), ("k", "b")), (("f",), ("f",)), (("t",), ("t",)), (("t",), ("i",)),
    (("i",), ("v",)), (("c",), ("d",)), (("s",), ("k",)), (("t", "k"), ("c", "s")),
]  # fmt: skip
SLOW = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
Row = dict[str, Any]


def join(kind: Any, validity: tuple[Lifetime, Lifetime], keys: Any) -> Join:
    return Join("j", kind, validity, keys, COLUMNS)


def joined(kind: Any, validity: tuple[Lifetime, Lifetime], keys: Any) -> CompiledFold:
    return compile_fold(join(kind, validity, keys), SCHEMA, OTHER)


def span(row: Row, validity: Lifetime) -> tuple[int, int] | None:
    end = row["until"] if validity.size is None else row["ts"] + validity.size
    return None if end is None or end <= row["ts"] else (row["ts"], end)


def meets(left: Row, right: Row, keys: Any) -> bool:
    pairs = [(group_key(left[a]), group_key(right[b])) for a, b in zip(*keys, strict=True)]
    return all(a is not None and b is not None and _equal(a, b) for a, b in pairs)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return bool(a == b) if isinstance(a, str) or isinstance(b, str) else float(a) == float(b)
    return bool(a == b)


def nested_loop(lefts: list[Row], rights: list[Row], validity: Any, keys: Any, left_join: int | None) -> Counter[Any]:
    """All pairs, and the left tuples without partner that no watermark (given, or None) leaves open."""
    found: Counter[Any] = Counter()
    for left in lefts:
        one, met = span(left, validity[0]), False
        if one is None:
            continue
        for right in rights:
            two = span(right, validity[1])
            if two is not None and max(one[0], two[0]) < min(one[1], two[1]) and meets(left, right, keys):
                met = True
                ends = (max(one[0], two[0]), min(one[1], two[1]), max(left[ARRIVAL], right[ARRIVAL]))
                found[(left["i"], right["s"], left["k"], right["ts"], left["i"], *ends)] += 1
        if not met and left_join is not None and one[1] <= left_join:
            found[(left["i"], None, left["k"], None, left["i"], *one, left[ARRIVAL])] += 1
    return found


@SLOW
@given(
    st.integers(0, 2**32),
    st.integers(0, 40),
    st.sampled_from(["inner", "left"]),
    st.sampled_from([1, 5, 30]),
    st.sampled_from([1, 8, None]),
    st.sampled_from(KEYS),
)
def test_pairs_come_once(seed: int, count: int, kind: str, size: int, other: int | None, keys: Any) -> None:
    random = Random(seed)
    logs = [make_log(random, count, False), make_log(random, count, False)]
    for step in logs[1]:
        for row in step.rows:
            row["until"] = random.choice([None, row["ts"] - 1, row["ts"] + 1, row["ts"] + 9])
    validity = (Lifetime("ts", size), Lifetime("ts", other, "until" if other is None else None))
    fold = joined(kind, validity, keys)
    memory = Memory(fold, join(kind, validity, keys))
    waiting = [list(log) for log in logs]
    marks: list[int | None] = [None, None]
    got: Counter[Any] = Counter()
    live: list[list[Row]] = [[], []]
    while any(waiting):
        port = random.choice([side for side in (0, 1) if waiting[side]])
        step = waiting[port].pop(0)
        before = list(marks)
        # In a unit of both sides, the first chain runs before any watermark moves.
        moves = random.random() < 0.7 or not waiting[port]
        if moves:
            marks[port] = step.watermark
        rows = memory.run(fold, table(step.rows, [SCHEMA, OTHER][port]), before, list(marks), port)
        got.update((*(row[c] for c in "abcde"), row[FROM], row[UNTIL], row[ARRIVAL]) for row in rows)
        live[port] += step.rows
        check_bound(memory, live, marks, validity, kind)
    decided = None if kind == "inner" else (marks[1] if marks[1] is not None else -(10**9))
    want = nested_loop(live[0], live[1], validity, keys, decided)
    assert got == want


def check_bound(memory: Memory, rows: Sequence[list[Row]], marks: list[Any], validity: Any, kind: str) -> None:
    spans = [[s for row in rows[port] if (s := span(row, validity[port])) is not None] for port in (0, 1)]
    for port in (0, 1):
        limit = marks[1 - port]
        if kind == "left" and port == 1:
            limit = None if marks[0] is None or marks[1] is None else min(marks[0], marks[1] - validity[0].size)
        live = [s for s in spans[port] if limit is None or s[1] > limit]
        assert memory.states[port].num_rows <= 2 * len(live) + 1


def test_many_pairs_in_several_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freshet.kernels.folds.windows.CHUNK", 7)
    fold = joined("inner", (Lifetime("ts", 5), Lifetime("ts", 5)), (("t",), ("t",)))
    base: Row = dict.fromkeys(OTHER.names)
    rows = [{**base, "ts": n, "t": n % 3, "i": n, "s": str(n), ARRIVAL: n} for n in range(60)]
    memory = Memory(fold)
    assert memory.run(fold, table(rows), [None, None], [None, None]) == []
    got = memory.run(fold, table(rows, OTHER), [None, None], [None, None], 1)
    assert len(got) == sum(abs(a - b) < 5 and a % 3 == b % 3 for a in range(60) for b in range(60))


def test_a_left_tuple_waits_for_its_partner_until_none_can_come() -> None:
    operator = join("left", (Lifetime("ts", 10), Lifetime("ts", 10)), (("k",), ("k",)))
    fold = compile_fold(operator, SCHEMA, OTHER)
    base: Row = dict.fromkeys(OTHER.names)
    memory = Memory(fold, operator)
    rows = [{**base, "ts": 5, "k": k, "i": i, ARRIVAL: i} for i, k in enumerate(["a", "b", None])]
    assert memory.run(fold, table(rows), [None, None], [5, 0]) == []
    right = table([{**base, "ts": 14, "k": "b", "s": "x", ARRIVAL: 9}], OTHER)
    assert [(row["a"], row["b"]) for row in memory.run(fold, right, [5, 0], [5, 14], 1)] == [(1, "x")]
    alone = memory.run(fold, table([]), [5, 14], [5, 15])
    assert [(row["a"], row["b"], row[FROM], row[UNTIL], row[ARRIVAL]) for row in alone] == [
        (0, None, 5, 15, 0),
        (2, None, 5, 15, 2),
    ]
    assert memory.run(fold, table([]), [5, 15], [50, 50]) == []
    assert [state.num_rows for state in memory.states] == [0, 0]


def test_keys_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(UserError, match="CAST one to the type of the other"):
        joined("inner", (Lifetime("ts", 5), Lifetime("ts", 5)), (("s",), ("i",)))


def test_a_left_tuple_that_was_decided_is_not_decided_again() -> None:
    """It stays in the state behind one that is still open, and its end is the watermark itself."""
    operator = join("left", (Lifetime("ts", 10), Lifetime("ts", 10)), (("k",), ("k",)))
    fold = compile_fold(operator, SCHEMA, OTHER)
    base: Row = dict.fromkeys(OTHER.names)
    memory = Memory(fold, operator)
    rows = [{**base, "ts": ts, "k": "a", "i": ts, ARRIVAL: 0} for ts in (90, 91, 5, 92)]
    memory.run(fold, table(rows), [None, None], [5, 0])
    assert [row["a"] for row in memory.run(fold, table([]), [5, 0], [5, 15])] == [5]
    assert memory.states[0].num_rows == 4
    assert memory.run(fold, table([]), [5, 15], [5, 16]) == []


PATH = (("k", None), ("k", "t"), (None, "t"))
SHAPES: list[tuple[tuple[str | None, ...], ...]] = [
    PATH, (("k",), ("k",), ("k",)), (("k", None, "t"), ("k", "b", None), (None, "b", "t")), ((), (), ()),
    (("k",), (None,), ("s",)), (("t", None), ("i", None), ("t", "f"), (None, "f")),
    (("k", "b"), ("k", None), ("k", "b"), ("k", None)), (("t", None), ("t", None), (None, "k"), (None, "s")),
    (("t", None, None, "b"), ("t", "k", None, None), (None, "k", "f", None), (None, None, "f", "b")),
]  # fmt: skip


def rows_of(inputs: Sequence[list[Row]], validity: Sequence[Lifetime], keys: Any) -> Counter[Any]:
    """All rows of a join of several inputs, by nested loops that leave what does not meet."""
    found: Counter[Any] = Counter()

    def extend(rows: list[Row], start: int, end: int) -> None:
        port = len(rows)
        if port == len(inputs):
            found[(*(row["i"] for row in rows), start, end, max(row[ARRIVAL] for row in rows))] += 1
            return
        for row in inputs[port]:
            valid = span(row, validity[port])
            if valid is not None and max(start, valid[0]) < min(end, valid[1]) and fits(rows, row):
                extend([*rows, row], max(start, valid[0]), min(end, valid[1]))

    def fits(rows: list[Row], new: Row) -> bool:
        own = keys[len(rows)]
        return all(
            meets(row, new, ((keys[port][place],), (own[place],)))
            for port, row in enumerate(rows)
            for place in range(len(own))
            if own[place] is not None and keys[port][place] is not None
        )

    extend([], -(2**63), 2**63)
    return found


@SLOW
@given(st.integers(0, 2**32), st.integers(0, 25), st.sampled_from([1, 5, 30]), st.sampled_from(SHAPES))
def test_rows_of_several_inputs_come_once(seed: int, count: int, size: int, keys: Any) -> None:
    random = Random(seed)
    ports = range(len(keys))
    waiting = [make_log(random, count, False) for _ in ports]
    validity = tuple(Lifetime("ts", random.choice([size, 3, 9])) for _ in ports)
    columns = tuple((f"i{port}", port, "i") for port in ports)
    fold = compile_fold(Join("j", "inner", validity, keys, columns, (0,) * len(ports)), *[SCHEMA for _ in ports])
    memory = Memory(fold)
    marks: list[int | None] = [None for _ in ports]
    got: Counter[Any] = Counter()
    seen: list[list[Row]] = [[] for _ in ports]
    while any(waiting):
        port = random.choice([side for side in ports if waiting[side]])
        step = waiting[port].pop(0)
        before = list(marks)
        if random.random() < 0.7 or not waiting[port]:
            marks[port] = step.watermark
        rows = memory.run(fold, table(step.rows, SCHEMA), before, list(marks), port)
        got.update((*(row[name] for name, _, _ in columns), row[FROM], row[UNTIL], row[ARRIVAL]) for row in rows)
        seen[port] += step.rows
        for side in ports:
            passed = earliest([mark for at, mark in enumerate(marks) if at != side])
            live = [row for row in seen[side] if passed is None or row["ts"] + (validity[side].size or 0) > passed]
            assert memory.states[side].num_rows <= 2 * len(live) + 1
    assert got == rows_of(seen, validity, keys)


def test_a_train_meets_the_inputs_that_it_has_keys_with_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other end of a path is small, but all its tuples would meet all of the train."""
    made: list[int] = []

    def counted(probe: Slab, rows: StateRows, keys: Keys) -> Iterator[Any]:
        for own, other in pairs(probe, rows, keys):
            made.append(len(own))
            yield own, other

    monkeypatch.setattr("freshet.kernels.folds.live_join.pairs", counted)
    valid = (Lifetime("ts", 1000),) * 3
    fold = compile_fold(Join("j", "inner", valid, PATH, (("i", 2, "i"),), (0, 0, 0)), SCHEMA, SCHEMA, SCHEMA)
    base: Row = dict.fromkeys(SCHEMA.names)
    memory = Memory(fold)
    middle = [{**base, "ts": n, "k": str(n), "t": n % 100, ARRIVAL: n} for n in range(100)]
    memory.run(fold, table(middle), [None] * 3, [None] * 3, 1)
    memory.run(
        fold, table([{**base, "ts": n, "t": n, "i": n, ARRIVAL: n} for n in range(50)]), [None] * 3, [None] * 3, 2
    )
    rows = memory.run(
        fold, table([{**base, "ts": n, "k": str(n), ARRIVAL: n} for n in range(80)]), [None] * 3, [None] * 3
    )
    assert sorted(row["i"] for row in rows) == list(range(50))
    assert made == [80, 50], "one partner in the middle each, and no cross product"
