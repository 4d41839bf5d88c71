"""The application that ``freshet bench crash`` kills, run as a process of its own:
``python application.py FOLDER NUMBER POLICY RATE [drain]``. Older versions of Freshet must be able to run it, too.

It has two sources: a generator, and pushes; every acknowledged push is noted in a file. Its queries are of both
physical forms. One is a UNION ALL, one reads the output of another. Three have a state: an aggregate with boundaries, a
join of both streams by event time, and an aggregate over the last tuples of each key. All write JSON lines.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from freshet.app import App
from freshet.log import Retention

if TYPE_CHECKING:
    from freshet.app.running.run import Run

COLUMNS: Final = "id bigint, k int, v double, j int, ts timestamp"
QUERIES: Final = {
    "low": "SELECT id, k, v * 2 AS x FROM made WHERE k < 60 AND v > 0.2",
    "lower": "SELECT id, x + 1 AS y FROM low WHERE k < 30",
    "both": "SELECT id, k FROM made WHERE k >= 50 UNION ALL SELECT id, k FROM pushed WHERE k <> 7",
    "label": "SELECT id, concat(upper('k'), CAST(k AS STRING)) AS name FROM pushed WHERE v < 0.9",
}
"""Queries without a state, in an order in which each query comes after what it reads."""

WINDOW: Final = 60
"""Seconds of event time that states remember: a state outlives several kills."""
SLIDE: Final = 2
LAST: Final = 10
STATEFUL: Final = {
    "sums": "SELECT k, count(*) AS n, sum(id) AS ids, window_end "
    f"FROM made [RANGE {WINDOW} SECONDS SLIDE {SLIDE} SECONDS] GROUP BY k",
    "met": f"SELECT made.id AS one, pushed.id AS other FROM made [RANGE {WINDOW} SECONDS] "
    f"JOIN pushed [RANGE {WINDOW} SECONDS] ON made.j = pushed.j",
    "last": f"SELECT k, count(*) AS n, sum(id) AS ids FROM pushed [PARTITION BY k ROWS {LAST}] GROUP BY k",
}
"""Queries with a state. Their numbers are integers, so that answers are equal to the last digit."""

PUSH_ROWS: Final = 20
_PAUSE: Final = 0.02
_LOOK: Final = 0.5
"""Seconds between two looks for residents."""
_MOST_PUSHES: Final = 100_000
_PARTNERS: Final = 10_000
"""Values of the key of the join: so many that a tuple meets few others."""
_DELAY: Final = "20 ms"
_LATENESS: Final = "2 s"
"""A hundred times the mean delay: no tuple comes later."""
_PARTS_FROM: Final = {"KEYED_ROWS": 20, "KEYED_STATE": 1000}
_KEEP: Final = Retention(history_age=None, history_bytes=None, bound_bytes=None)


def declare(folder: Path, rate: float) -> App:
    """The application with its state in a folder. It keeps everything, so that it can be computed again."""
    app = App("crash", state=folder / "state")
    columns = {
        "id": {"kind": "sequence"},
        "k": {"kind": "uniform", "low": 0, "high": 99},
        "j": {"kind": "uniform", "low": 0, "high": _PARTNERS - 1},
        "ts": {"kind": "event_time", "delay": _DELAY, "fraction": 0.2},
    }
    source = {"kind": "generator", "rate": rate, "columns": columns}
    app.stream("made", COLUMNS, source=source, event_time="ts", lateness=_LATENESS, retention=_KEEP)
    app.stream("pushed", COLUMNS, event_time="ts", lateness=_LATENESS, retention=_KEEP)
    for name, sql in (QUERIES | STATEFUL).items():
        sink = {"kind": "jsonl", "path": str(jsonl(folder, name)), "arrival": True}
        app.query(name, sql, sinks=[sink], retention=_KEEP)
    return app


def jsonl(folder: Path, query: str) -> Path:
    """Where a query's lines go."""
    return folder / f"{query}.jsonl"


def acknowledged(folder: Path) -> Path:
    """Where acknowledged pushes are noted: a line for each, with its first id."""
    return folder / "acknowledged"


def residents(folder: Path) -> Path:
    """The file with the processes that are residents, a line each."""
    return folder / "residents"


def running(folder: Path) -> Path:
    """The file with the id of the process, written once the application runs."""
    return folder / "running"


class ResidentNotes:
    """Notes which processes are residents, for whoever kills them.

    Args:
        folder: Of the application.
    """

    def __init__(self, folder: Path) -> None:
        self._file, self._next, self._noted = residents(folder), 0.0, ""

    def note(self, run: Run) -> None:
        """Looks again, if the last look is some time ago."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LOOK
        told: Mapping[str, Any] = run.report()
        # An older version has no residents.
        there = "".join(f"{each['process']}\n" for each in told.get("residents", {}).get("present", ()))
        if there != self._noted:
            written = self._file.with_suffix(".new")
            written.write_text(there)
            written.replace(self._file)
            self._noted = there


def pushed_rows(first: int, now: datetime) -> list[dict[str, object]]:
    """The rows of a push.

    >>> [*pushed_rows(7, datetime(2024, 1, 1))[0].items()][:-1], len(pushed_rows(1_000_000, datetime(2024, 1, 1)))
    ([('id', 7), ('k', 7), ('v', 0.07), ('j', 5433)], 20)
    """
    return [
        {"id": row, "k": row % 100, "v": row % 100 / 100, "j": row * 7919 % _PARTNERS, "ts": now}
        for row in range(first, first + PUSH_ROWS)
    ]


def divide_early() -> None:
    """States are divided by key as soon as they have some rows, and put together again as early: trains are small here.
    No answer depends on it."""
    with suppress(ImportError):  # an older version decides it elsewhere, or does not divide states
        from freshet.kernels import task_split

        vars(task_split).update(_PARTS_FROM)


def main(folder: Path, number: int, policy: str, rate: float, drain: bool) -> None:
    """Runs until it is killed; with ``drain``, runs for two seconds and then until nothing waits."""
    parent = os.getppid()
    divide_early()
    with declare(folder, rate).start(policy=policy) as run, acknowledged(folder).open("a") as notes:
        mark = running(folder).with_suffix(f".{number}")
        mark.write_text(str(number))
        mark.replace(running(folder))
        until, present = time.monotonic() + 2.0, ResidentNotes(folder)
        for push in range(_MOST_PUSHES):
            if os.getppid() != parent:
                os._exit(1)  # the process that would have killed us is gone
            if drain and time.monotonic() >= until:
                return
            first = (number * _MOST_PUSHES + push) * PUSH_ROWS
            run.push("pushed", pushed_rows(first, datetime.now(UTC)))
            notes.write(f"{first}\n")
            notes.flush()
            os.fsync(notes.fileno())
            present.note(run)
            time.sleep(_PAUSE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), sys.argv[5:] == ["drain"])
