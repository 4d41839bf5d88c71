"""The application that ``freshet bench crash`` kills, run as a process of its own:
``python application.py FOLDER NUMBER POLICY RATE [drain]``. Older versions of Freshet must be able to run it, too.

It has two sources: a generator, and pushes; every acknowledged push is noted in a file. Its queries are of both
physical forms. One is a UNION ALL, one reads the output of another, and all write JSON lines.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

from freshet.app import App
from freshet.log import Retention

COLUMNS: Final = "id bigint, k int, v double"
QUERIES: Final = {
    "low": "SELECT id, k, v * 2 AS x FROM made WHERE k < 60 AND v > 0.2",
    "lower": "SELECT id, x + 1 AS y FROM low WHERE k < 30",
    "both": "SELECT id, k FROM made WHERE k >= 50 UNION ALL SELECT id, k FROM pushed WHERE k <> 7",
    "label": "SELECT id, concat(upper('k'), CAST(k AS STRING)) AS name FROM pushed WHERE v < 0.9",
}
"""In an order in which each query comes after what it reads."""

PUSH_ROWS: Final = 20
_PAUSE: Final = 0.02
_MOST_PUSHES: Final = 100_000
_KEEP: Final = Retention(history_age=None, history_bytes=None, bound_bytes=None)


def declare(folder: Path, rate: float) -> App:
    """The application with its state in a folder. It keeps everything, so that it can be computed again."""
    app = App("crash", state=folder / "state")
    columns = {"id": {"kind": "sequence"}, "k": {"kind": "uniform", "low": 0, "high": 99}}
    app.stream("made", COLUMNS, source={"kind": "generator", "rate": rate, "columns": columns}, retention=_KEEP)
    app.stream("pushed", COLUMNS, retention=_KEEP)
    for name, sql in QUERIES.items():
        sink = {"kind": "jsonl", "path": str(jsonl(folder, name)), "arrival": True}
        app.query(name, sql, sinks=[sink], retention=_KEEP)
    return app


def jsonl(folder: Path, query: str) -> Path:
    """Where a query's lines go."""
    return folder / f"{query}.jsonl"


def acknowledged(folder: Path) -> Path:
    """Where acknowledged pushes are noted: a line for each, with its first id."""
    return folder / "acknowledged"


def running(folder: Path) -> Path:
    """The file with the id of the process, written once the application runs."""
    return folder / "running"


def pushed_rows(first: int) -> list[dict[str, object]]:
    """The rows of a push.

    >>> len(pushed_rows(1_000_000)), pushed_rows(7)[0]
    (20, {'id': 7, 'k': 7, 'v': 0.07})
    """
    return [{"id": row, "k": row % 100, "v": row % 100 / 100} for row in range(first, first + PUSH_ROWS)]


def main(folder: Path, number: int, policy: str, rate: float, drain: bool) -> None:
    """Runs until it is killed; with ``drain``, runs for two seconds and then until nothing waits."""
    parent = os.getppid()
    with declare(folder, rate).start(policy=policy) as run, acknowledged(folder).open("a") as notes:
        mark = running(folder).with_suffix(f".{number}")
        mark.write_text(str(number))
        mark.replace(running(folder))
        until = time.monotonic() + 2.0
        for push in range(_MOST_PUSHES):
            if os.getppid() != parent:
                os._exit(1)  # the process that would have killed us is gone
            if drain and time.monotonic() >= until:
                return
            first = (number * _MOST_PUSHES + push) * PUSH_ROWS
            run.push("pushed", pushed_rows(first))
            notes.write(f"{first}\n")
            notes.flush()
            os.fsync(notes.fileno())
            time.sleep(_PAUSE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), sys.argv[5:] == ["drain"])
