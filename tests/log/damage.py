"""A state folder as a kill leaves it, and what two readers make of a copy of it that was damaged.

``python -m tests.log.damage make STATE`` fills a folder and dies. ``python -m tests.log.damage serve`` takes the name
of a folder from each line of its input and prints the answers that it gives, as JSON, or what was said instead. Each
folder is looked at in a process of its own, so that a signal is an outcome like others.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas  # noqa: F401  Arrow imports it with the first value, and every process that is forked would do so again
import pyarrow as pa

from freshet.log import (
    Damaged,
    Limits,
    Log,
    LogReader,
    Retention,
    SegmentWriter,
    TableVersions,
    newest_version,
    stamped,
)
from freshet.model import ARRIVAL, Commit, Filter, UserError
from freshet.spark.worker.spec import Spec, load_spec

SPEC = Spec((Filter("q.filter_1", "v > 1"),), ((pa.schema([("v", pa.int64())]),),))


def rows(first: int, count: int) -> pa.Table:
    values = list(range(first, first + count))
    columns = {"v": pa.array(values, pa.int64()), "text": [f"row {value}" if value % 3 else None for value in values]}
    return pa.table({**columns, ARRIVAL: pa.array([1_000_000 + value for value in values], pa.int64())})


def make(state: Path) -> None:
    """Appends, commits and versions; half of it is in the database, the rest in its write-ahead log."""
    log = Log.open(state)
    for stream in ("in", "out", "q.join.state"):
        log.declare(stream, Retention(history_age=None), clock="v")  # a long test must not outlive the history
    log.start_reader("q.filter_1", "in")
    log.start_reader("sink", "out")
    tables = TableVersions(log, "hosts")
    for number in range(12):
        log.append("in", rows(20 * number, 20), source_position={"at": number}, dead=[{"row": number}],
                   newest=number, watermark=number)  # fmt: skip
        with SegmentWriter(log.folder, stamped(f"unit-{number}", log.commits)) as writer:
            writer.add("out", rows(10 * number, 10))
            writer.add("q.join.state", rows(5 * number, 5))
            cursors = (("q.filter_1", "in", 20 * number, 20 * number + 20),)
            log.commit([Commit(cursors, (writer.finish(),), (("out", number),))])
        log.advance("sink", "out", 10 * number + 5, {"bytes": number})
        tables.put(rows(number // 4, 3))
        if number == 6:
            with sqlite3.connect(state / "store.db") as other:
                other.execute("PRAGMA wal_checkpoint(PASSIVE)")
    # What a unit leaves that was not committed.
    with SegmentWriter(log.folder, stamped("unit-99", log.commits)) as writer:
        writer.add("out", rows(0, 3))
        writer.finish()
    SPEC.store(state / "specs")
    os.kill(os.getpid(), signal.SIGKILL)


def answers(state: Path) -> dict[str, Any]:
    """Everything that a state folder says; what is damaged says so in its place."""
    found: dict[str, Any] = {"other": _said(lambda: _read(state)), "owner": _said(lambda: _own(state))}
    found["spec"] = _said(lambda: load_spec(state / "specs", SPEC.store(state / "specs")).text())
    return found


def _read(state: Path) -> dict[str, Any]:
    with LogReader(state) as log:
        return _contents(log)


def _own(state: Path) -> dict[str, Any]:
    with Log.open(state, limits=Limits(min_free_bytes=0, orphan_age=-10.0, sparse_age=-10.0)) as log:
        log.collect()
        meters = {name: (each.dead, each.late, each.heartbeats) for name, each in log.meters().streams.items()}
        positions = {name: log.source_position(name) for name in log.streams()}
        log.append("in", rows(0, 1))
        return _contents(log) | {"meters": meters, "positions": positions}


def _contents(log: Log | LogReader) -> dict[str, Any]:
    readers = {name: (one.stream, one.next, one.needed, one.parked, one.state) for name, one in log.readers().items()}
    found: dict[str, Any] = {"readers": readers}
    for stream in sorted(log.streams()):
        oldest, end = log.oldest(stream), log.end(stream)
        found[stream] = (oldest, end, [log.watermark(stream, at) for at in range(oldest, end)])
        for segment in log.train(stream, oldest, end).segments:
            read = _said(lambda segment=segment: log.read(segment.stream, segment.first, segment.end).to_pydict())
            found[f"{stream} from {segment.first}"] = read if "damaged" in read else read["said"]
    found["hosts"] = _said(lambda: newest_version(log, "hosts").to_pydict())  # type: ignore[union-attr]
    return found


def _said(ask: Any) -> dict[str, Any]:
    try:
        return {"said": ask()}
    except (Damaged, UserError) as error:
        return {"damaged": str(error)}


def serve() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            with suppress(BaseException):
                text = json.dumps(answers(Path(line.strip())), default=repr)
                os.write(1, (text + "\n").encode())
                os._exit(0)
            import traceback

            traceback.print_exc()
            os._exit(1)
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    make(Path(sys.argv[2])) if sys.argv[1] == "make" else serve()
