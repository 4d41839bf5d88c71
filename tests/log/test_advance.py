"""Cursors of many sinks that move together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.log import Advance, CursorMoved, Limits, Log, Retention
from freshet.model import ARRIVAL


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        for query in ("a", "b", "c"):
            log.declare(query, Retention())
            log.append(query, pa.table({"v": [1, 2, 3], ARRIVAL: [1, 2, 3]}))
            log.start_reader(f"{query}/s", query, kind="sink")
        yield log


def test_cursors_and_states_move_in_one_transaction(log: Log) -> None:
    before = log._store.commits
    assert log.advance_all([Advance(f"{query}/s", query, 2, {"path": query}) for query in ("a", "b", "c")]) == {}
    assert log._store.commits == before + 1
    assert [log.cursor(f"{query}/s") for query in ("a", "b", "c")] == [2, 2, 2]
    assert log.reader_state("b/s") == {"path": "b"}


def test_one_that_cannot_move_does_not_hold_up_the_others(log: Log, tmp_path: Path) -> None:
    log.park(["b/s"])
    moves = [Advance("a/s", "a", 3), Advance("b/s", "b", 3), Advance("gone/s", "a", 1), Advance("c/s", "c", 99)]
    refused = log.advance_all(moves)
    assert {reader: type(error) for reader, error in refused.items() if reader != "gone/s"} == {
        "b/s": CursorMoved,
        "c/s": CursorMoved,
    }
    assert "gone/s" in str(refused["gone/s"])
    log.close()
    with Log.open(tmp_path / "state") as again:
        assert [again.cursor(f"{query}/s") for query in ("a", "b", "c")] == [3, 0, 0]


def test_one_alone_is_told(log: Log) -> None:
    with pytest.raises(CursorMoved):
        log.advance("a/s", "b", 2)


def test_nothing_is_committed_for_nobody(log: Log) -> None:
    before = log._store.commits
    assert log.advance_all([]) == {}
    assert log._store.commits == before
