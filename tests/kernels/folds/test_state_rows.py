"""Rows in slabs are the rows that came and were not dropped, however they were merged, and are found by all ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.folds.logs import SCHEMA, VALUES

from freshet.kernels.folds.groups import canonical
from freshet.kernels.folds.states import state_rows
from freshet.kernels.folds.states.hashing import hash_rows, same
from freshet.kernels.folds.states.slab import Slab
from freshet.kernels.folds.states.state_rows import StateRows

COLUMNS = pa.schema({"k": pa.string(), "n": pa.int64(), "start": pa.int64(), "end": pa.int64()})
Row = tuple[str, int, int, int]


def table(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([] for _ in COLUMNS)
    arrays = [pa.array(list(each), kind) for each, kind in zip(columns, COLUMNS.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=COLUMNS)


@dataclass
class Twins:
    """Rows in slabs, and the same as a list."""

    rows: StateRows
    list: list[Row] = field(default_factory=list)

    def check(self, random: Random) -> None:
        assert len(self.rows) == len(self.list)
        assert self.rows.table().to_pylist() == table(self.list).to_pylist()
        places = np.array([random.randrange(len(self.list)) for _ in range(9)] if self.list else [], np.int64)
        found = self.rows.take(places + self.rows.skipped, COLUMNS.names).to_pylist()
        assert found == [dict(zip(COLUMNS.names, self.list[place], strict=True)) for place in places]
        after, until = sorted((random.randint(-5, 70), random.randint(-5, 70)))
        between = self.rows.between(after, until)
        between = between[between >= self.rows.skipped] - self.rows.skipped
        assert between.tolist() == [at for at, row in enumerate(self.list) if after < row[3] <= until]
        probe = Slab(table([("a", 1, 0, 9), ("é", 2, 0, 9)]), "end", "start")
        alike = self.rows.alike(probe, ("k",)) - self.rows.skipped
        assert alike.tolist() == [at for at, row in enumerate(self.list) if row[0] in "aé"]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0, 1, 4]))
def test_slabs_are_as_good_as_one_list(seed: int, growth: int) -> None:
    random = Random(seed)
    twins, now, limit = Twins(StateRows.of(table([]), "end", "start")), 0, -9
    versions = [(twins.rows, list(twins.list))]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(state_rows, "GROWTH", growth)
        for _ in range(random.randint(1, 25)):
            fresh = [
                (random.choice("abcé"), random.randint(0, 3), start := now + random.randint(-4, 2), start + 5)
                for _ in range(random.choice([0, 1, 3, 20]))
            ]
            now += 1
            twins.rows, twins.list = twins.rows.append(Slab(table(fresh), "end", "start")), twins.list + fresh
            limit = max(limit, now - random.randint(0, 8))
            first = next((at for at, row in enumerate(twins.list) if row[3] > limit), len(twins.list))
            assert twins.rows.ended_first(limit) == first
            twins.rows, twins.list = twins.rows.drop(first), twins.list[first:]
            assert twins.rows.ended(limit) == sum(row[3] <= limit for row in twins.list)
            assert twins.rows.open(limit).to_pylist() == table([r for r in twins.list if r[3] > limit]).to_pylist()
            twins.check(random)
            versions.append((twins.rows, list(twins.list)))
            if random.random() < 0.1:  # what was made in vain leaves no trace
                twins.rows, twins.list = random.choice(versions[-3:])
    for rows, listed in versions:
        assert rows.table().to_pylist() == table(listed).to_pylist()


def test_slabs_stay_few_and_rows_are_seldom_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copied, merged = [], Slab.merged

    def counted(slabs: list[Slab], skipped: int) -> Slab:
        copied.append(sum(map(len, slabs)))
        return merged(slabs, skipped)

    monkeypatch.setattr(Slab, "merged", staticmethod(counted))
    rows = StateRows.of(table([]), "end", "start")
    for step in range(2000):
        rows = rows.append(Slab(table([("a", step, step, step + 500)] * 3), "end", "start"))
        rows = rows.drop(rows.ended_first(step))
        assert len(rows.slabs) <= 8
    assert len(rows) == 1500
    assert sum(copied) <= 12 * 3 * 2000


@pytest.mark.parametrize("column", list(VALUES))
def test_equal_keys_have_equal_hashes_wherever_they_lie(column: str) -> None:
    values = [*VALUES[column], *reversed(VALUES[column])]
    whole = canonical(pa.array(values, SCHEMA.field(column).type))
    hashes = hash_rows([whole], len(whole))
    assert hashes.tolist() == hashes.tolist()[::-1]
    assert len(set(hashes.tolist())) == len({repr(each) for each in whole.to_pylist()})
    for first in range(len(whole)):
        part = whole.slice(first, 3)
        assert hash_rows([part], len(part)).tolist() == hashes[first : first + 3].tolist()


def test_hashes_of_several_columns_depend_on_their_order_and_on_cuts_of_texts() -> None:
    def one(*values: Any) -> int:
        return int(hash_rows([pa.array([value]) for value in values], 1)[0])

    assert len({one("ab", "c"), one("a", "bc"), one("c", "ab"), one("abc", ""), one("abc", None)}) == 5
    assert len({one(1, 2), one(2, 1), one(1), one()}) == 4
    assert one("x" * 200_000) == one("x" * 200_000) != one("x" * 200_001)


def test_many_texts_are_hashed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array([f"text {number % 97}" * (number % 5) for number in range(1000)])
    whole = hash_rows([texts], len(texts)).tolist()
    monkeypatch.setattr("freshet.kernels.folds.states.hashing.AT_ONCE", 7)
    assert hash_rows([texts], len(texts)).tolist() == whole


def test_null_equals_nothing_and_nan_itself() -> None:
    assert same(pa.array([None, "a", "a"]), pa.array([None, "a", "b"])).tolist() == [False, True, False]
    floats = pa.array([float("nan"), None, 1.5], pa.float32())
    assert same(floats, floats).tolist() == [True, False, True]
