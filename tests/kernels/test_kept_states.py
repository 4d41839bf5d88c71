"""Kept states: found only if they are exactly what a unit names, within their bytes, the oldest first."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from freshet.kernels.folds import CompiledFold, LiveFold, compile_fold
from freshet.kernels.kept_states import KeptStates, Mark, stamp_of
from freshet.model import ARRIVAL, Call, Lifetime, Panes, Segment, Train

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64()})


def panes(size: int = 100) -> CompiledFold:
    return compile_fold(Panes("q.panes", Lifetime("ts", size), 100, ("k",), (Call("n", "count"),)), SCHEMA)


def live(fold: CompiledFold, rows: int) -> LiveFold:
    table = pa.table({"ts": [1] * rows, "k": range(rows), ARRIVAL: [0] * rows})
    return fold.live([each.empty_table() for each in fold.states]).run(table, [None], [None])[1]


def state(first: int, end: int, *files: tuple[str, int, int]) -> Train:
    segments = tuple(Segment("q.state", begin, rows, 0, 0, 0, file, 0, 100) for file, begin, rows in files)
    return Train("q.state", first, end, segments)


def test_a_mark_follows_the_changes_that_the_log_makes() -> None:
    mark = Mark.of(state(0, 10, ("a", 0, 10)))
    assert mark.after(3) == Mark.of(state(3, 10, ("a", 0, 10)))
    assert mark.after(3, 5, "b") == Mark.of(state(3, 15, ("a", 0, 10), ("b", 10, 5)))
    assert mark.after(10) == Mark.of(state(10, 10))
    assert mark.after(10, 5, "b") == Mark.of(state(10, 15, ("b", 10, 5)))
    assert mark.after(0, 5, "b") != mark.after(0, 5, "c")


def test_both_what_a_unit_found_and_what_it_made_are_good() -> None:
    kept, fold = KeptStates(2**20), panes()
    one, two, three = (stamp_of([state(0, end, (file, 0, end))]) for file, end in (("a", 5), ("b", 6), ("b2", 6)))
    versions = {one: live(fold, 5), two: live(fold, 6)}
    kept.keep("q", fold, versions)
    assert kept.find("q", fold, one) is versions[one]
    assert kept.find("q", fold, two) is versions[two]
    assert kept.find("q", fold, three) is None
    assert kept.find("r", fold, two) is None
    assert kept.find("q", panes(200), two) is None, "another query has taken its name"
    assert kept.find("q", panes(), two) is versions[two], "the same query was compiled again"
    kept.keep("q", fold, {two: versions[two], three: live(fold, 6)})
    assert kept.find("q", fold, one) is None
    assert (kept.hits, kept.misses) == (3, 4)


def test_the_least_recently_used_go_first() -> None:
    fold, stamp = panes(), stamp_of([state(0, 100, ("a", 0, 100))])
    some = live(fold, 100)
    kept = KeptStates(3 * some.nbytes)
    for name in "abc":
        kept.keep(name, fold, {stamp: some})
    assert kept.nbytes == 3 * some.nbytes
    assert kept.find("a", fold, stamp)
    kept.keep("d", fold, {stamp: some})
    assert [name for name in "abcd" if kept.find(name, fold, stamp)] == ["a", "c", "d"]
    kept.keep("large", fold, {stamp: live(fold, 1000)})
    assert (kept.nbytes, kept.find("large", fold, stamp)) == (0, None)


def test_what_is_made_of_rows_counts_too() -> None:
    def size(emit: Any) -> int:
        operator = Panes("q.panes", Lifetime("ts", 100), 100, ("k",), (Call("n", "count"),), emit)
        fold = live(compile_fold(operator, SCHEMA), 1000)
        table = pa.table({"ts": [1], "k": [1], ARRIVAL: [0]})
        folded, _ = fold.run(table, [None], [None])
        return fold.nbytes if emit == "closed" or folded.output.num_rows else 0

    assert size("changes") >= size("closed") + 8 * 1000, "looking up a group has made an index"
