"""The process that test_crash kills: appends, processes and collects as fast as it can, and says what is durable.

Usage: crash_child STATE. Appends go on where the source position says; each batch of n rows carries one
dead letter. A reader doubles every value into ``out``; a sink copies ``out`` into JSON lines.
"""

from __future__ import annotations

import itertools
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from freshet.log import DurableLines, Log, Retention, SegmentWriter
from freshet.model import ARRIVAL, Commit


def append(log: Log) -> None:
    at = (log.source_position("in") or {"at": 0})["at"]
    for size in itertools.cycle((1, 7, 50)):
        values = pa.array(range(at, at + size), pa.int64())
        table = pa.table({"v": values, ARRIVAL: values})
        log.append("in", table, source_position={"at": at + size}, dead=[{"batch": at}])
        at += size
        print(at, flush=True)


def process(log: Log) -> None:
    for number in itertools.count():
        first = log.cursor("q") or 0
        end = min(log.end("in"), first + 20)
        if first == end:
            continue
        table = log.read("in", first, end)
        doubled = table.set_column(0, "v", pc.multiply(table["v"], 2))
        with SegmentWriter(log.folder, f"unit-{log.epoch}-{number}") as writer:
            writer.add("out", doubled)
            log.commit([Commit((("q", "in", first, end),), (writer.finish(),))])


def sink(log: Log, path: Path) -> None:
    lines = DurableLines(path, log.reader_state("sink").get("bytes", 0))
    while True:
        first, end = log.cursor("sink") or 0, log.end("out")
        if first < end:
            length = lines.write(map(str, log.read("out", first, end)["v"].to_pylist()))
            log.advance("sink", "out", end, {"bytes": length})
        log.collect()


def main(state: Path) -> None:
    log = Log.open(state)
    log.declare("in", Retention(history_age=None, history_bytes=None))
    log.declare("out", Retention(history_age=0, history_bytes=0))
    log.start_reader("q", "in")
    log.start_reader("sink", "out")
    threading.Thread(target=process, args=(log,), daemon=True).start()
    threading.Thread(target=sink, args=(log, state / "sink.txt"), daemon=True).start()
    append(log)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
