"""Merging equal rows is tried when it may have become worth it, and not in every step."""

from __future__ import annotations

import pyarrow as pa

from freshet.kernels.folds.states.slab import Slab
from freshet.kernels.folds.states.state_rows import StateRows
from freshet.kernels.folds.states.upkeep import keep_open


class InVain:
    """Finds nothing to merge, and notes the number of rows of each try."""

    def __init__(self) -> None:
        self.tries: list[int] = []

    def __call__(self, rows: pa.Table, forced: bool) -> pa.Table | None:
        assert not forced
        self.tries.append(rows.num_rows)
        return None


def slab(first: int, rows: int) -> Slab:
    return Slab(pa.table({"end": pa.array(range(first, first + rows), pa.int64())}), "end")


def test_a_number_of_rows_that_hovers_around_a_power_of_two_is_no_reason_to_merge() -> None:
    compact, rows, end = InVain(), StateRows.of(slab(0, 250).table, "end"), 250
    for _ in range(50):
        rows = keep_open(rows, slab(end, 10), None, compact).rows
        end += 10
        rows = keep_open(rows, slab(end, 0), end - 251, compact).rows
        assert len(rows) == 250
    assert compact.tries == [260]


def test_merging_is_tried_again_when_the_number_has_doubled_or_halved() -> None:
    compact, rows = InVain(), StateRows.of(slab(0, 200).table, "end")
    for end in range(200, 1100, 10):
        rows = keep_open(rows, slab(end, 10), None, compact).rows
    assert compact.tries == [260, 520, 1030]
    for limit in range(9, 900, 10):
        rows = keep_open(rows, slab(1100, 0), limit, compact).rows
    assert compact.tries == [260, 520, 1030, 510, 250]
