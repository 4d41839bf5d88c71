"""Kept states: found only if they are exactly what a unit names, within their bytes, the oldest first."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from freshet.kernels.folds import CompiledFold, LiveFold, compile_fold
from freshet.kernels.kept_states import KeptStates, RangeMark, stamp_of
from freshet.model import ARRIVAL, Call, Lifetime, Panes, Segment, Train

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64()})


def panes(size: int = 100) -> CompiledFold:
    return compile_fold(Panes("q.panes", Lifetime("ts", size), 100, ("k",), (Call("n", "count"),)), SCHEMA)


def tuples(rows: int) -> pa.Table:
    return pa.table({"ts": [1] * rows, "k": range(rows), ARRIVAL: [0] * rows})


def live(fold: CompiledFold, rows: int) -> LiveFold:
    return fold.live([each.empty_table() for each in fold.states]).run(tuples(rows), [None], [None])[1]


def nothing(part: Train, schema: pa.Schema) -> pa.Table:
    return schema.empty_table()


def unread(part: Train, schema: pa.Schema) -> pa.Table:
    raise AssertionError(f"{part} is kept, and need not be read")


def state(first: int, end: int, *files: tuple[str, int, int]) -> Train:
    segments = tuple(Segment("q.state", begin, rows, 0, 0, 0, file, 0, 100) for file, begin, rows in files)
    return Train("q.state", first, end, segments)


def test_a_mark_follows_the_changes_that_the_log_makes() -> None:
    mark = RangeMark.of(state(0, 10, ("a", 0, 10)))
    assert mark.after(3) == RangeMark.of(state(3, 10, ("a", 0, 10)))
    assert mark.after(3, 5, "b") == RangeMark.of(state(3, 15, ("a", 0, 10), ("b", 10, 5)))
    assert mark.after(10) == RangeMark.of(state(10, 10))
    assert mark.after(10, 5, "b") == RangeMark.of(state(10, 15, ("b", 10, 5)))
    assert mark.after(0, 5, "b") != mark.after(0, 5, "c")


def test_both_what_a_unit_found_and_what_it_made_are_good() -> None:
    kept, fold = KeptStates(2**20), panes()
    one, two, three = ([state(0, end, (file, 0, end))] for file, end in (("a", 5), ("b", 6), ("b2", 6)))
    versions = {stamp_of(one): live(fold, 5), stamp_of(two): live(fold, 6)}
    kept.keep("q", fold, versions)
    assert kept.recall("q", fold, one, unread) is versions[stamp_of(one)]
    assert kept.recall("q", fold, two, unread) is versions[stamp_of(two)]
    assert kept.recall("q", panes(), two, unread) is versions[stamp_of(two)], "the same query was compiled again"
    for place, other, ranges in (("q", fold, three), ("r", fold, two), ("q", panes(200), two)):
        assert kept.recall(place, other, ranges, nothing).rows == 0, "another attempt, another fold, another query"
    kept.keep("q", fold, {stamp_of(two): live(fold, 6), stamp_of(three): live(fold, 6)})
    assert kept.recall("q", fold, one, nothing).rows == 0
    assert (kept.hits, kept.misses) == (3, 4)


def test_an_earlier_version_is_brought_up_to_date() -> None:
    kept, fold = KeptStates(2**20), panes()
    old = [state(0, 5, ("a", 0, 5))]
    kept.keep("q", fold, {stamp_of(old): live(fold, 5)})
    read: list[Train] = []

    def two_rows(part: Train, schema: pa.Schema) -> pa.Table:
        read.append(part)
        return fold.live([schema.empty_table()]).run(tuples(2), [None], [None])[0].appended[0]

    later = state(3, 7, ("a", 0, 5), ("b", 5, 2))
    assert kept.recall("q", fold, [later], two_rows).rows == 4
    assert [(each.first, each.end, [s.file for s in each.segments]) for each in read] == [(5, 7, ["b"])]
    for other in (state(3, 7, ("c", 0, 5), ("b", 5, 2)), state(3, 7, ("a", 0, 7))):
        assert kept.recall("q", fold, [other], two_rows).rows == 2, "it did not grow out of what was kept"


def test_the_least_recently_used_go_first() -> None:
    fold, ranges = panes(), [state(0, 100, ("a", 0, 100))]
    some, stamp = live(fold, 100), stamp_of(ranges)
    kept = KeptStates(3 * some.nbytes)
    for name in "abc":
        kept.keep(name, fold, {stamp: some})
    assert kept.nbytes == 3 * some.nbytes
    assert kept.recall("a", fold, ranges, unread) is some
    kept.keep("d", fold, {stamp: some})
    assert [name for name in "abcd" if kept.recall(name, fold, ranges, nothing) is some] == ["a", "c", "d"]
    kept.keep("large", fold, {stamp: live(fold, 1000)})
    assert (kept.nbytes, kept.recall("large", fold, ranges, nothing).rows) == (0, 0)


def test_what_is_made_of_rows_counts_too() -> None:
    def size(emit: Any) -> int:
        operator = Panes("q.panes", Lifetime("ts", 100), 100, ("k",), (Call("n", "count"),), emit)
        fold = live(compile_fold(operator, SCHEMA), 1000)
        table = pa.table({"ts": [1], "k": [1], ARRIVAL: [0]})
        folded, _ = fold.run(table, [None], [None])
        return fold.nbytes if emit == "closed" or folded.output.num_rows else 0

    assert size("changes") >= size("closed") + 8 * 1000, "looking up a group has made an index"
