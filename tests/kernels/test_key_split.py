"""Parts by key: equal keys always belong to the same part, and tasks that divide a train miss and double nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from freshet.kernels import compile_fold
from freshet.kernels.folds.keyed import KeyedFold, divided, key_kinds, part_numbers
from freshet.kernels.folds.states.hashing import BUCKETS, hash_rows, parts_of_rows
from freshet.kernels.key_split import Division, KeyPath, division
from freshet.model import (
    ARRIVAL,
    Call,
    Chain,
    Filter,
    Join,
    Lifetime,
    Moving,
    Operator,
    Panes,
    Project,
    State,
    Train,
)
from freshet.model.names import KEY_HASH

NAN = float("nan")
SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.float64()})
HOUR = Lifetime("ts", 3600)
PANES = Panes("q.panes", HOUR, 3600, ("k",), (Call("n", "count"), Call("d", "count_distinct", "v")))
LIMITLESS = (None,)

# Rows of states lie where version 1 of the hash has put them: if one of these changes, KEY_HASH must change, too.
STORED: dict[str, tuple[pa.Array, list[int]]] = {
    "integers": (pa.array([0, 1, -1, 2**40, None]), [0, 21, 45, 0, 56]),
    "doubles": (pa.array([0.0, -0.0, NAN, 1.5, None]), [0, 0, 17, 57, 56]),
    "texts": (pa.array(["", "a", "abc", "ä", None]), [0, 30, 19, 23, 56]),
    "decimals": (pa.array([Decimal("1.10"), Decimal(-3)], pa.decimal128(12, 2)), [4, 57]),
    "booleans": (pa.array([True, False, None]), [21, 0, 56]),
    "dates": (pa.array([date(2024, 1, 1)]), [52]),
    "dictionaries": (pa.array(["a", "b", "a"]).dictionary_encode(), [30, 9, 30]),
    "bytes": (pa.array([b"x", None]), [34, 56]),
}


@pytest.mark.parametrize("kind", STORED)
def test_the_hash_of_version_1_stays_as_it_is(kind: str) -> None:
    keys, parts = STORED[kind]
    assert KEY_HASH == 1
    assert parts_of_rows([keys], len(keys), 64).tolist() == parts


def test_a_part_is_a_range_of_buckets() -> None:
    keys = [pa.array(range(5000))]
    buckets = hash_rows(keys, 5000) >> np.uint32(24)
    assert buckets.max() < BUCKETS
    for parts in (1, 2, 3, 5, 64):
        found = parts_of_rows(keys, 5000, parts)
        assert set(found.tolist()) == set(range(parts))
        order = np.argsort(buckets, kind="stable")
        assert (np.diff(found[order].astype(int)) >= 0).all()
        assert np.array_equal(found, buckets * parts // BUCKETS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([-0.0, NAN]), pa.array([0.0, -NAN])),
        (pa.array([0.0, NAN], pa.float32()), pa.array([-0.0, NAN], pa.float32())),
        (pa.array(["a", None]), pa.array(["a", None]).dictionary_encode()),
        (pa.array(["x", "b", None]).slice(1), pa.array(["b", None])),
        (pa.array(["b", None], pa.large_string()), pa.array(["b", None])),
    ],
    ids=["zeros", "floats", "dictionaries", "slices", "large"],
)
def test_equal_keys_have_the_same_part(one: pa.Array, other: pa.Array) -> None:
    assert parts_of_rows([one], 2, 64).tolist() == parts_of_rows([other], 2, 64).tolist()


@pytest.mark.parametrize(
    ("left", "right"),
    [(pa.int32(), pa.int64()), (pa.decimal128(5, 2), pa.decimal128(12, 4)), (pa.int32(), pa.decimal128(20, 3))],
    ids=str,
)
def test_keys_of_a_join_have_the_same_part_at_both_inputs(left: pa.DataType, right: pa.DataType) -> None:
    inputs = [pa.schema({"ts": pa.int64(), "k": kind}) for kind in (left, right)]
    fold = compile_fold(Join("q.join", "inner", (HOUR, HOUR), (("k",), ("k",)), ()), *inputs)
    values = [Decimal(-7), Decimal(0), Decimal(123), None]
    found = [
        part_numbers([pa.array([v if v is None or pa.types.is_decimal(kind) else int(v) for v in values], kind)],
                     key_kinds(fold), 4, 64).tolist()
        for kind in (left, right)
    ]  # fmt: skip
    assert found[0] == found[1]


def rows(count: int, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    times = np.sort(draw.integers(0, 7200, count))
    return pa.table(
        {"ts": times, "k": draw.integers(0, 50, count), "v": draw.integers(0, 9, count) / 2, ARRIVAL: times}
    )


FOLDS: list[Operator] = [
    PANES,
    Panes("q.panes", HOUR, 600, ("k", "v"), (Call("p", "approx_percentile", "v", 0.5),), "changes"),
    Moving("q.moving", "ts", 600, keys=("k",), calls=(Call("s", "sum", "v"),), carried=("ts", "k")),
    Moving("q.rows", None, rows=3, partition=("k",), calls=(Call("s", "sum", "v"),), carried=("ts", "k")),
    Join("q.join", "left", (Lifetime("ts", 30),) * 2, (("k",), ("k",)), (("a", 0, "ts"), ("k", 0, "k"), ("b", 1, "v"))),
]


def plain(tables: Sequence[pa.Table]) -> list[str]:
    return sorted(str(row) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("operator", FOLDS, ids=lambda each: each.name)
@pytest.mark.parametrize("parts", [2, 5])
def test_a_fold_in_parts_gives_out_what_it_gives_out_as_a_whole(operator: Operator, parts: int) -> None:
    inputs = [SCHEMA] * (2 if isinstance(operator, Join) else 1)
    fold = compile_fold(operator, *inputs)
    nothing = fold.live([schema.empty_table() for schema in fold.states])
    whole, by_key = nothing, KeyedFold(fold, (nothing,) * parts, 0, parts)
    before: list[int | None] = [None] * len(inputs)
    outputs: tuple[list[pa.Table], list[pa.Table]] = [], []
    for step in range(6):
        table = rows(200, step)
        table = table.set_column(0, "ts", pa.array(table.column("ts").to_numpy() + step * 7200))
        after: list[int | None] = [step * 7200] * len(inputs)
        port = step % len(inputs)
        folded, whole = whole.run(table, before, after, port)
        outputs[0].append(folded.output)
        folded, by_key = by_key.run(table, before, after, port)
        outputs[1].append(folded.output)
        before = after
        assert by_key.rows >= sum(1 for live in by_key.lives if live.rows)
    assert plain(outputs[0]) == plain(outputs[1])
    assert any(table.num_rows for table in outputs[0])


def test_rows_of_a_state_are_divided_as_their_tuples_are() -> None:
    fold = compile_fold(PANES, SCHEMA)
    nothing = fold.live([schema.empty_table() for schema in fold.states])
    table = rows(500)
    state, _ = nothing.run(table, LIMITLESS, LIMITLESS)
    numbers = part_numbers([table.column("k").combine_chunks()], key_kinds(fold), 500, 4)
    for stream in state.appended:
        pieces = list(divided(fold, stream, 4))
        assert sum(piece.num_rows for piece in pieces) == stream.num_rows
        for part, piece in enumerate(pieces):
            assert set(piece.column("key_0").to_pylist()) <= set(
                np.asarray(table.column("k"))[numbers == part].tolist()
            )


class Chains:
    """Chains of operators by number, for :func:`division`."""

    def __init__(self, operators: Sequence[Operator], *chains: Chain, parts: int = 4, **more: Any) -> None:
        self._all, self.chains = operators, chains
        folds = [each for each in operators if each.remembers]
        self._states = {each.name: State(each.name, (), (None,), (None,), parts=parts, **more) for each in folds}

    def operators(self, nodes: Sequence[int]) -> tuple[Operator, ...]:
        return tuple(self._all[node] for node in nodes)

    def division(self) -> Division | None:
        places = range(len(self.chains))
        return division(self.chains, places, self._states.get, self.operators, self._fold)

    def _fold(self, node: int) -> Any:
        operator = self._all[node]
        return compile_fold(operator, *[SCHEMA] * (2 if isinstance(operator, Join) else 1))


TRAIN = Train("s", 0, 9)
COLUMNS = Project("q.columns", (("ts", "ts"), ("k", "v * 2"), ("v", "v")))


def test_keys_are_followed_back_to_the_train() -> None:
    keep = Filter("q.filter", "k > 3")
    found = Chains([keep, COLUMNS, PANES], Chain((0,), (TRAIN,)), Chain((1, 2), (0,), ("q",))).division()
    only = Project("keys", (("k", "v * 2"),))
    assert found == Division(4, {(0, 0): KeyPath((keep, only), ("k",), (pa.int64(),))})


def test_both_inputs_of_a_join_are_divided() -> None:
    join = Join("q.join", "inner", (HOUR, HOUR), (("k",), ("k",)), ())
    found = Chains([COLUMNS, join], Chain((0,), (TRAIN,)), Chain((1,), (0, TRAIN))).division()
    assert found is not None
    assert {place: path.operators for place, path in found.paths.items()} == {
        (0, 0): (Project("keys", (("k", "v * 2"),)),),
        (1, 1): (),
    }


OTHER = Panes("q.other", HOUR, 3600, ("v",), (Call("n", "count"),))


@pytest.mark.parametrize(
    "chains",
    [
        Chains([PANES], Chain((0,), (TRAIN,)), parts=1),
        Chains([PANES], Chain((0,), (TRAIN,)), becomes=2),
        Chains([PANES, OTHER], Chain((0, 1), (TRAIN,))),
        Chains([COLUMNS, PANES, OTHER], Chain((0,), (TRAIN,)), Chain((1,), (0,)), Chain((2,), (0,))),
        Chains([Panes("q.all", HOUR, 3600)], Chain((0,), (TRAIN,))),
    ],
    ids=["whole", "resplit", "behind another", "other keys", "no keys"],
)
def test_what_cannot_be_divided_runs_in_one_task(chains: Chains) -> None:
    assert chains.division() is None


def test_each_tuple_of_a_train_belongs_to_one_task() -> None:
    table = rows(1000)
    path = KeyPath((Filter("q.filter", "v > 1"), Project("keys", (("k", "k % 7"),))), ("k",), (pa.int64(),))
    by_key = Division(4, {(0, 0): path})
    for tasks in (1, 2, 3, 4, 6):
        bound = [by_key.bound(0, Chain((0,), (TRAIN,)), by_key.own(task, tasks)) for task in range(tasks)]
        pieces = [chain.inputs[0].select(table) for chain in bound]  # type: ignore[union-attr]
        assert sorted(time for piece in pieces for time in piece.column("ts").to_pylist()) == sorted(
            table.column("ts").to_pylist()
        )
        keys = [{k % 7 for k, v in zip(*(p.column(c).to_pylist() for c in "kv"), strict=True) if v > 1} for p in pieces]
        assert sum(map(len, keys)) == 7
