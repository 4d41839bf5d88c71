"""Bytes that a remembered row takes: ours with its indexes, and in the state store of Structured Streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from freshet.bench.stage import Stage
from freshet.bench.wojoin.zeek import Merged
from freshet.kernels.folds.join import CompiledJoin
from freshet.testing import LocalRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILES: Final = 40
"""Micro-batches of Structured Streaming."""
_NEWEST: Final = "stateOnCurrentVersionSizeBytes"


def our_bytes(run: LocalRun, join: CompiledJoin) -> int:
    """Bytes of what the one join of an application remembers now, with the indexes by which it looks it up."""
    [fold] = run.engine.board.folds()
    ranges = [(stream, fold.lows[stream]) for stream in fold.present]
    known = set(run.log.streams())
    tables = [
        run.log.read(stream, low, run.log.end(stream))
        if stream in known and low < run.log.end(stream)
        else schema.empty_table()
        for (stream, low), schema in zip(ranges, join.states, strict=True)
    ]
    live = join.live(tables)
    for side in live.sides:
        for slab in side.slabs:
            slab.index(join.state_keys)
            slab.ended(slab.span[0])  # makes the index by which rows are forgotten
    return live.nbytes


def streaming_bytes(stage: Stage, session: SparkSession, merged: Merged, delay: float) -> tuple[float, dict[str, Any]]:
    """Bytes of a row in the state store of Structured Streaming: of the newest version alone, although it keeps two in
    memory.

    Args:
        stage: Where.
        session: Where it runs.
        merged: The streams.
        delay: Of the watermark, in seconds.
    """
    from pyspark.sql import functions as F

    from freshet.bench.rig.streaming import StreamingRig

    schema = "ts timestamp, uid string, n int"
    with StreamingRig(session, stage.folder / "streaming", {"a": schema, "b": schema}) as rig:
        ends = np.linspace(0, merged.rows, _FILES + 1).astype(int)[1:]
        done = [0, 0]
        for end in ends:
            for port, name in enumerate("ab"):
                upto = int(np.count_nonzero(merged.side[:end] == port))
                rig.write({name: _table(merged, port, done[port], upto)})
                done[port] = upto
        left, right = (
            rig.source(name, 1).withWatermark("ts", f"{round(delay * 1000)} milliseconds").alias(name) for name in "ab"
        )
        rows = left.join(right, F.expr("a.ts = b.ts AND a.uid = b.uid"))
        found = rig.run("q", rows.select(F.col("a.n"), F.col("b.n").alias("m")), "noop")
    states = [each["stateOperators"][0] for each in found]
    total = sum(each["numRowsTotal"] for each in states)
    size = sum(each["customMetrics"].get(_NEWEST, each["memoryUsedBytes"]) for each in states)
    notes = {
        "batches": len(states),
        "rows_mean": total / len(states),
        "memory_used_bytes_per_row": sum(each["memoryUsedBytes"] for each in states) / total,
        "state": "HDFSBackedStateStore, newest version alone",
    }
    return size / total, notes


def _table(merged: Merged, port: int, first: int, end: int) -> pa.Table:
    side = merged.sides[port]
    times = pa.array(side.keys[first:end]).cast(pa.timestamp("us", "UTC"))
    numbers = pa.array(np.arange(first, end), pa.int32())
    return pa.table({"ts": times, "uid": list(side.uids[first:end]), "n": numbers})
