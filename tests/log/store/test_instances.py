"""Instances of periodic queries in the store, and in stores of earlier versions."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from freshet.log import Log, LogReader
from freshet.log.store.digest import KEY, digest_of
from freshet.model import Commit, Instance


def test_a_store_that_knows_no_windows_of_instances_is_read_as_it_is_and_upgraded_by_its_owner(tmp_path: Path) -> None:
    one = Instance("q", 2_000_000, 3_000_000, {"q.edge": 4}, "answered", quality=0.5, rows=3, since=1_000_000)
    with Log.open(tmp_path) as log:
        log.declare("q", kind="output")
        log.release({"q": 2_000_000}, lambda: [one])
        assert log.instances() == [one]
    with sqlite3.connect(tmp_path / "store.db") as store:
        store.execute("ALTER TABLE instances DROP COLUMN since")
        store.execute("UPDATE meta SET value = ? WHERE key = ?", (digest_of(store), KEY))
    store.close()
    with LogReader(tmp_path) as reader:
        assert [(each.quality, each.since) for each in reader.instances()] == [(0.5, -1)]
    later = Instance("q", 4_000_000, 5_000_000, {"q.edge": 4}, since=3_000_000)
    with Log.open(tmp_path) as log:
        log.release({"q": 4_000_000}, lambda: [later])
        assert [each.since for each in log.instances()] == [-1, 3_000_000]
        log.commit([Commit()])
