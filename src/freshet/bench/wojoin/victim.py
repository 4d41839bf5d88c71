"""The application with joins by ordered keys that ``freshet bench wojoin`` kills, run as a process of its own:
``python victim.py FOLDER NUMBER POLICY RATE [drain]``.

Stream a runs ahead of b, and both come out of order. One join rests and has hardly any memory, so that it lets tuples
go, one gives its rows in the order of the key, and one is a LEFT JOIN in memory.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.app import App
from freshet.bench.crash.application import ResidentNotes, running
from freshet.log import Retention

ON: Final = "a.epoch = b.epoch AND a.u = b.u"
QUERIES: Final = {
    "resting": f"SELECT a.epoch, a.n, b.n AS m, a.t FROM a JOIN b ON {ON}",
    "sorted": f"SELECT a.epoch, a.n, b.n AS m FROM a JOIN b ON {ON}",
    "alone": f"SELECT a.epoch, a.n, b.n AS m FROM a LEFT JOIN b ON {ON}",
}
CHUNKS: Final = 50
"""Pushes a second of each stream."""
_LAG_MS: Final = {"a": 0, "b": 400}
_SLACK_MS: Final = 60
_KEEP: Final = Retention(history_age=None, history_bytes=None, bound_bytes=None)


def declare(folder: Path) -> App:
    """The application with its state in a folder. It keeps everything, so that it can be computed again."""
    app = App("wojoin-crash", state=folder / "state")
    for name in "ab":
        schema = "epoch bigint, u int, n bigint, t string"
        app.stream(name, schema, ordered_by="epoch", disorder="60 rows", retention=_KEEP)
    app.query("resting", QUERIES["resting"], join_buffer="log", join_memory="64 KiB", retention=_KEEP)
    app.query("sorted", QUERIES["sorted"], join_buffer="hybrid", retention=_KEEP)
    app.query("alone", QUERIES["alone"], join_buffer="ram", retention=_KEEP)
    return app


def rows(name: str, now_ms: int, count: int, draw: np.random.Generator) -> pa.Table:
    """What comes into a stream at a time: keys of some hundredths of a second, nearly in order.

    >>> rows("a", 10_000, 3, np.random.default_rng(1)).column_names
    ['epoch', 'u', 'n', 't']
    """
    keys = (now_ms - _LAG_MS[name] - draw.integers(0, _SLACK_MS, count)) // 10
    texts = ["x" * int(width) for width in draw.integers(0, 1200, count)]
    numbers = draw.integers(0, 2**62, count)
    return pa.table({"epoch": keys, "u": draw.integers(0, 20, count).astype(np.int32), "n": numbers, "t": texts})


def main(folder: Path, number: int, policy: str, rate: float, drain: bool) -> None:
    """Runs until it is killed; with ``drain``, for two seconds and until nothing waits."""
    parent, draw = os.getppid(), np.random.default_rng([number, 91])
    with declare(folder).start(policy=policy) as run:
        mark = running(folder).with_suffix(f".{number}")
        mark.write_text(str(number))
        mark.replace(running(folder))
        until, present = time.monotonic() + 2.0, ResidentNotes(folder)
        while not (drain and time.monotonic() >= until):
            if os.getppid() != parent:
                os._exit(1)  # the process that would have killed us is gone
            for name in "ab":
                run.push(name, rows(name, round(time.time() * 1000), int(rate / CHUNKS), draw))
            present.note(run)
            time.sleep(1.0 / CHUNKS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), sys.argv[5:] == ["drain"])
