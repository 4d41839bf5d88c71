"""The application with periodic queries that ``freshet bench periodic`` kills, run as a process of its own:
``python victim.py FOLDER NUMBER SCHEDULER RATE [drain]``.

Deadlines are so short that levels below 1 are needed as soon as costs are known, on any machine; and periods are so
short that they are known before the process is killed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

import numpy as np

from freshet.app import App
from freshet.bench.crash.application import ResidentNotes, running
from freshet.bench.periodic.table2 import CHUNKS, TABLE, Table2, dealt
from freshet.log import Retention

REPORT: Final = "report.json"
_KEEP: Final = Retention(history_age=None, history_bytes=None, bound_bytes=None)


def bed_of(rate: float) -> Table2:
    """The workload: two streams, six queries."""
    return Table2(rate, streams=2, deadline="5 ms", pace=4)


def declare(folder: Path, rate: float) -> App:
    """The application with its state in a folder. It keeps everything, so that it can be computed again."""
    app = App("periodic-crash", state=folder / "state", workers=1, report=folder / REPORT)
    bed = bed_of(rate)
    file = folder / "known.csv"
    if not file.exists():
        file.write_text("id\n" + "\n".join(map(str, bed.known["id"].to_pylist())))
    app.table(TABLE, file, schema="id int")
    for name in bed.names:
        app.stream(name, "id int, value double, type string", retention=_KEEP)
    for (name, text), table in zip(bed.texts.items(), dealt(0), strict=False):
        app.query(name, text, overload=["defer", "thin"], quality=table, retention=_KEEP)
    return app


def main(folder: Path, number: int, rate: float, drain: bool) -> None:
    """Runs until it is killed; with ``drain``, for eight seconds (so that costs are known) and until nothing waits."""
    parent, bed, draw = os.getppid(), bed_of(rate), np.random.default_rng([number, 173])
    with declare(folder, rate).start() as run:
        mark = running(folder).with_suffix(f".{number}")
        mark.write_text(str(number))
        mark.replace(running(folder))
        until, present = time.monotonic() + 8.0, ResidentNotes(folder)
        while not (drain and time.monotonic() >= until):
            if os.getppid() != parent:
                os._exit(1)  # the process that would have killed us is gone
            for name in bed.names:
                run.push(name, bed.rows(int(draw.poisson(rate / CHUNKS)), draw))
            present.note(run)
            time.sleep(1.0 / CHUNKS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[4]), sys.argv[5:] == ["drain"])
