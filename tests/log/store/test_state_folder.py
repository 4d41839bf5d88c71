"""Who may write to a state folder, and which formats are read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tests.log.rows import rows, values, write

from freshet.log import Deposed, Log, LogReader
from freshet.log.store.verify import verify
from freshet.model import Commit, FreshetError, UserError


def test_a_second_owner_is_refused(tmp_path: Path) -> None:
    with Log.open(tmp_path):
        script = (
            "import sys, pathlib, freshet.log as l\n"
            "try: l.Log.open(pathlib.Path(sys.argv[1]))\n"
            "except Exception as e: print(type(e).__name__, e)"
        )
        told = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
        assert told.stdout.startswith("UserError")
        assert "in use by process" in told.stdout
        assert "epoch 1" in told.stdout
        with pytest.raises(UserError, match="in use"):
            Log.open(tmp_path)
    Log.open(tmp_path).close()


def test_an_owner_back_from_the_dead_cannot_write(tmp_path: Path) -> None:
    with Log.open(tmp_path) as old:
        old.declare("s")
        old.start_reader("q", "s")
        old.append("s", rows(1))
        file = write(old, "unit", s=rows(13))
        # What a shared disk does when it takes the lease of a silent host away.
        (tmp_path / "lock").unlink()
        script = (
            "import sys, pathlib, pyarrow as pa, freshet.log as l\n"
            "log = l.Log.open(pathlib.Path(sys.argv[1]))\n"
            "print(log.append('s', pa.table({'v': [2], '__arrival': [2]})))"
        )
        new = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
        assert new.stdout.strip() == "range(1, 2)"
        for call in (
            lambda: old.append("s", rows(3)),
            lambda: old.commit([Commit((("q", "s", 0, 1),), (file,))]),
            lambda: old.advance("q", "s", 1),
            lambda: old.collect(),
        ):
            with pytest.raises(Deposed, match="epoch 1 of this state folder is over"):
                call()
    with Log.open(tmp_path) as log:
        assert values(log, "s") == [1, 2]
        assert log.cursor("q") == 0


def test_another_format_is_refused(tmp_path: Path) -> None:
    Log.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="has format 99, this version of Freshet reads format 10"):
        Log.open(tmp_path)


def test_a_folder_of_the_first_format_is_taken_over(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        for reader in ("well", "stuck"):
            log.start_reader(reader, "s")
        log.append("s", rows(1, 2))
        log.advance("well", "s", 1)
        log.set_need("stuck", False)
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.execute("DELETE FROM meta WHERE key IN ('digest', 'commits')")
    (tmp_path / "tail").unlink()
    for file in (tmp_path / "segments").iterdir():
        unstamped = file.name.split("@")[0] + ".arrows"
        connection.execute("UPDATE segments SET file = ? WHERE file = ?", (unstamped, file.name))
        file.rename(file.with_name(unstamped))
    connection.commit()
    with LogReader(tmp_path) as other:
        assert other.end("s") == 2
    with Log.open(tmp_path) as log:
        found = {name: (one.next, one.needed, one.parked) for name, one in log.readers().items()}
        assert found == {"well": (1, True, False), "stuck": (0, False, False)}
        log.park(["well"])
    # What holds parked readers must not be opened by a version that does not know them.
    with sqlite3.connect(tmp_path / "store.db") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (10,)


def test_a_foreign_database_or_a_file_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(UserError, match="not one of Freshet"):
        Log.open(tmp_path)
    with pytest.raises(UserError, match="not a folder"):
        Log.open(tmp_path / "store.db")


def test_a_closed_log_says_so(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    log.declare("s")
    log.close()
    log.close()
    with pytest.raises(FreshetError, match="closed"):
        log.append("s", rows(1))


def test_kinds_are_found_once_in_a_folder_of_format_3(tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[2] / "takeover" / "v3" / "waiting.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    with LogReader(tmp_path / "state") as before:
        # One that is only read stays as it is.
        kinds = {name: before.kind(name) for name in before.streams()}
        readers = {name: (reader.kind, reader.owner) for name, reader in before.readers().items()}
    with Log.open(tmp_path / "state") as log:
        streams = {name: log.kind(name) for name in log.streams()}
        assert {name: (reader.kind, reader.owner) for name, reader in log.readers().items()} == readers
    assert streams == kinds | {"packets": "stream", "alerts": "stream"}
    assert set(streams.values()) == {"stream", "output", "queue", "state", "versions"}
    assert (streams["large"], streams["pairs.join_1.state"], streams["table:hosts"]) == ("output", "state", "versions")
    assert {name for name, kind in streams.items() if "@" in name or name.startswith("__shared")} <= {
        name for name, kind in streams.items() if kind == "queue"
    }
    assert readers["pairs.join_1.state"] == ("state", "pairs")
    assert {owner for kind, owner in readers.values() if kind == "operator"} >= {"pairs", "both", "loud"}
    assert not any(check.damage for check in verify(tmp_path / "state"))
