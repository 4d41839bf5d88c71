"""No commit names bytes that are not synced, whoever has written them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from tests.log.power import PowerCuts

from freshet.log import Log, NotSynced, SegmentWriter
from freshet.log.store.verify import verify
from freshet.model import ARRIVAL, Commit, SegmentFile

ALL = 1 << 40
"""No file is so large that its writer would sync it."""


def rows(first: int, count: int = 10) -> pa.Table:
    numbers = pa.array(range(first, first + count), pa.int64())
    return pa.table({"v": numbers, ARRIVAL: numbers})


def written(log: Log, name: str, first: int, synced_from: int = ALL) -> SegmentFile:
    with SegmentWriter(log.folder, name) as writer:
        writer.add("out", rows(first))
        return writer.finish(synced_from)


def test_what_is_committed_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    with Log.open(state) as log:
        for stream in ("in", "out"):
            log.declare(stream)
        log.start_reader("q", "in")
        cuts = PowerCuts(state, tmp_path / "cuts")
        with cuts.watching(monkeypatch):
            log.append("in", rows(0, 30))
            for number in range(3):
                first = 10 * number
                # A unit in parts that its writers sync or not; another one of the same unit is never committed.
                parts = [written(log, f"u{number}-{part}", first, ALL * (part != number)) for part in range(3)]
                written(log, f"u{number}-orphan", first)
                log.commit([Commit((("q", "in", first, first + 10),), tuple(parts))])
    checked = 0
    for copy in sorted((tmp_path / "cuts").iterdir(), key=lambda each: int(each.name)):
        assert [check.damage for check in verify(copy) if check.damage] == []
        with Log.open(copy) as log:
            cursor = log.cursor("q") or 0
            assert log.end("out") == 3 * cursor
            expected = [value for first in range(0, cursor, 10) for value in 3 * list(range(first, first + 10))]
            assert not cursor or log.read("out", 0, log.end("out"))["v"].to_pylist() == expected
            checked += bool(cursor)
    assert checked == 3
    assert cuts.lost > 0


def test_files_of_a_group_are_synced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Log.open(tmp_path / "state") as log:
        log.declare("out")
        cuts = PowerCuts(tmp_path / "state", tmp_path / "cuts")
        with cuts.watching(monkeypatch):
            files = [written(log, f"u{number}", 0) for number in range(4)]
            assert cuts.syncs == []
            assert [file.synced for file in files] == [False] * 4
            log.commit([Commit(files=(files[0], files[1])), Commit(files=(files[2],)), Commit(files=(files[3],))])
            assert cuts.syncs == [*(file.name for file in files), "segments"]
            log.commit([Commit(files=(written(log, "u9", 0, 0),))])
            assert cuts.syncs[5:] == ["u9.arrows", "segments"]


def test_files_that_cannot_be_synced_are_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with Log.open(tmp_path) as log:
        log.declare("out")
        file = written(log, "u1", 0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", broken)
            with pytest.raises(NotSynced, match="could not be synced"):
                log.commit([Commit(files=(file,))])
        assert log.end("out") == 0
        log.commit([Commit(files=(written(log, "u2", 0),))])
        assert log.end("out") == 10
