"""An application that is thinned in both physical forms, and a process that runs it until it is killed."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

from freshet.app import App, Run
from freshet.log import Log, LogReader, Retention
from freshet.testing import assert_same, remaining

THIN = ("defer", "thin")


def application(folder: Path) -> App:
    app = App("thinned", state=folder / "state", report=folder / "report.json", master="local[2]")
    app.stream("s", "ts timestamp, id bigint, size int", event_time="ts", lateness="0 s", retention=kept())
    # The pattern runs in Spark's own form, the rest in kernels.
    app.query("compiled", "SELECT id, size FROM s WHERE size % 3 = 0", overload=THIN, retention=kept())
    app.query("planned", "SELECT id FROM s WHERE CAST(id AS string) RLIKE '[02468]$'", overload=THIN, retention=kept())
    app.query("worthy", "SELECT id, size FROM s WHERE CAST(id AS string) RLIKE '[13]$'", overload=THIN, value="size",
              retention=kept())  # fmt: skip
    app.query("sums", "SELECT sum(size) AS total, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]",
              overload=THIN, retention=kept())  # fmt: skip
    return app


def kept() -> Retention:
    return Retention(history_age=None, history_bytes=None)


def push(run: Run, first: int, count: int) -> None:
    run.push("s", [{"ts": n // 10, "id": n, "size": n * 7919 % 1000} for n in range(first, first + count)])


def check(log: Log | LogReader) -> None:
    """Compares all answers with what plain Python makes of log minus ledger."""
    edges = {entry.query: entry.edge for entry in log.ledger()}
    assert set(edges) == {"compiled", "planned", "worthy", "sums"}
    left = {query: remaining(log, edge, "s").to_pylist() for query, edge in edges.items()}
    answers = {query: log.read(query, 0, log.end(query)).drop_columns(["__arrival"]).to_pylist() for query in left}
    compiled = [{"id": row["id"], "size": row["size"]} for row in left["compiled"] if row["size"] % 3 == 0]
    assert_same(answers["compiled"], compiled)
    assert_same(answers["planned"], [{"id": row["id"]} for row in left["planned"] if row["id"] % 2 == 0])
    worthy = [{"id": row["id"], "size": row["size"]} for row in left["worthy"] if row["id"] % 10 in (1, 3)]
    assert_same(answers["worthy"], worthy)
    windows: dict[int, list[int]] = {}
    for row in left["sums"]:
        windows.setdefault(row["id"] // 100, []).append(row["size"])
    expected = [{"total": sum(sizes), "n": len(sizes)} for _, sizes in sorted(windows.items())]
    # The last window is open; thinned rows let time pass as others do.
    open_window = (log.end("s") - 1) // 100
    assert_same(answers["sums"], expected[:-1] if open_window in windows else expected)


def main(folder: Path, seed: int) -> None:
    """Pushes rows and thins at random, for ever."""
    draw = random.Random(seed)
    with application(folder).start() as run:
        first = run.read("s").num_rows
        for first in itertools.count(first, 500):  # noqa: B020  # the rows follow each other over all runs
            run.thin(draw.choice(("compiled", "planned", "worthy", "sums")), draw.choice((0.2, 0.5, 1.0)))
            push(run, first, 500)
            print(first, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
