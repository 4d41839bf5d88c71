"""``freshet bench backlog``: how much memory it takes to work off millions of waiting rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.rig.meter import KINDS, ProcessMeter, peak
from freshet.bench.stage import Stage
from freshet.bench.windows.load import EPOCH, JOIN, LATENESS, NEAR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from freshet.bench.rig.engine import EngineRig

QUERIES: Final = {
    "some": "SELECT ts, k, v * 2 AS w FROM a WHERE v < 0.05 AND k % 7 <> 3",
    "sliding": (
        "SELECT k % 1000 AS g, count(*) AS n, avg(v) AS mean, max(k) AS last, window_end "
        "FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k % 1000"
    ),
    "pairs": f"SELECT a.k, a.v, b.w FROM a [RANGE {NEAR} SECONDS] JOIN b [RANGE {NEAR} SECONDS] ON a.k = b.k",
}
RATE: Final = 20_000
"""Rows per second of event time, of both streams together."""
_SEGMENT: Final = 5
"""Seconds of event time in a segment, as a source would write it."""
_EVERY: Final = 0.2


@bench("A backlog of millions of rows: the rate, and the peak memory.", takes="about three minutes")
def backlog(
    stage: Stage,
    rows: Annotated[int, typer.Option(min=10_000, help="Rows that wait, in two streams together.")] = 20_000_000,
    train: Annotated[int, typer.Option(min=1000, help="Rows of a train, like `max_train_rows` of an app.")] = 500_000,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """Three queries (filters, a sliding aggregate and a join of both streams) run over rows that are in the log before
    they begin: first over a tenth of the rows, then over all of them, in one process. Memory is bounded if the peak is
    the same.
    """
    figures: dict[str, float] = {"rows": rows}
    with stage.spark("backlog", master) as session:
        for name, count in (("tenth", rows // 10), ("all", rows)):
            figures |= {f"{key}_{name}": value for key, value in _work_off(stage, session, name, count, train).items()}
    for kind in ("driver", "workers"):
        figures[f"peak_{kind}_vs_tenth"] = figures[f"peak_{kind}_mb_all"] / figures[f"peak_{kind}_mb_tenth"]
    return Result.of(figures, _conditions(train))


def _work_off(stage: Stage, session: SparkSession, name: str, rows: int, train: int) -> dict[str, float]:
    """Fills a log and works it off; returns how long that took and how much memory was held meanwhile."""
    from freshet.bench.rig.engine import EngineRig

    with EngineRig(session, stage.folder / name, JOIN.declared, slots=2, most_rows=train) as rig:
        rig.add_queries(QUERIES)
        seconds = range(0, rows // RATE + 1, _SEGMENT)
        with stage.steps(f"{rows:,} rows: filling the log", len(seconds)) as advance:
            for second in seconds:
                rig.append(JOIN.rows(EPOCH + second, EPOCH + min(second + _SEGMENT, rows / RATE), RATE))
                advance()
        stage.say(f"{rows:,} rows: working them off ...")
        began = time.perf_counter()
        with ProcessMeter().watching(_EVERY) as seen:
            rig.work_off()
        took = time.perf_counter() - began
        _check_done(rig)
        out = {f"rows_out_{query}": rig.log.end(query) for query in QUERIES}
    peaks = {f"peak_{kind}_mb": getattr(peak(seen), kind) for kind in KINDS}
    return {"rows_per_second": rows / took, "seconds": took, **peaks, **out}


def _check_done(rig: EngineRig) -> None:
    """Checks that all rows were read, and that no query was given up."""
    for name, reader in rig.log.readers().items():
        if reader.kind != "state" and reader.next < rig.log.end(reader.stream):
            raise RuntimeError(f"{name} is at {reader.next} of {rig.log.end(reader.stream)}: nothing was measured")


def _conditions(train: int) -> dict[str, Any]:
    return {
        "queries": QUERIES,
        "rows": f"half of them in each stream, {RATE:,} for a second of event time; lateness {LATENESS} s",
        "train": train,
        "memory": (
            f"private pages that are no copy of a file, every {_EVERY:g} s; driver: this process, workers: all Python "
            "workers together; the JVM takes what its heap allows before it collects"
        ),
    }
