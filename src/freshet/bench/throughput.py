"""``freshet bench throughput``: how many rows a second, against the same program as one batch job."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow.parquet as pq
import typer

from freshet.bench.figures import Spread, extremes, ratio
from freshet.bench.interleave import measure
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.rows import SQL, STREAM, make_rows, program
from freshet.bench.stage import Stage
from freshet.log.segments.sums import Checks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from freshet.bench.rig.engine import EngineRig

_SEGMENT: Final = 100_000
_FILE: Final = 1_000_000


@bench("Rows a second through one query, against one Spark batch job over the same rows.", takes="about two minutes")
def throughput(
    stage: Stage,
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the stream.")] = 6_000_000,
    train: Annotated[int, typer.Option(min=1000, help="Rows of a train.")] = 500_000,
    rounds: Annotated[int, typer.Option(min=1, help="Measured rounds; each has all sides.")] = 7,
    warm_up: Annotated[int, typer.Option(min=0, help="Rounds before.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Maximum units at once, like `workers` of an app.")] = 2,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """One query (two filters and a projection) runs over a stream that is in the log, train by train, with a durable
    output and a commit for each. The same program runs as one DataFrame job from Parquet to Parquet. Rounds alternate
    in one JVM. The query runs both with and without checksums of segments.
    """
    from freshet.bench.rig.engine import EngineRig

    with (
        stage.spark("throughput", master) as session,
        EngineRig(session, stage.folder / "state", [STREAM], most_rows=train, slots=workers) as rig,
    ):
        _fill(stage, rig, rows)
        freshet = _freshet(rig, rows)
        sides = {
            "freshet": lambda: freshet(Checks.ONCE),
            "always": lambda: freshet(Checks.ALWAYS),
            "never": lambda: freshet(Checks.NEVER),
            "batch": _batch(stage, session),
        }
        found = measure(stage, sides, rounds, warm_up)
    return Result.of(_figures(rows, found), _conditions(rows, train, workers))


def _fill(stage: Stage, rig: EngineRig, rows: int) -> None:
    """Writes the same rows into the log, in segments like those of sources, and into Parquet files."""
    folder = stage.folder / "input"
    folder.mkdir()
    for first in range(0, rows, _FILE):
        table = make_rows(first, min(_FILE, rows - first))
        pq.write_table(table, folder / f"{first:012}.parquet")
        for offset in range(0, table.num_rows, _SEGMENT):
            rig.append({STREAM.name: table.slice(offset, _SEGMENT)})


def _freshet(rig: EngineRig, rows: int) -> Callable[[Checks], tuple[float, int]]:
    number = 0

    def run(checks: Checks) -> tuple[float, int]:
        nonlocal number
        number += 1
        name = f"out_{number}"
        rig.executor.jobs.checks = checks
        began = time.perf_counter()
        rig.add_queries({name: SQL})
        rig.work_off()
        seconds = time.perf_counter() - began
        done = rig.engine.meters.queries[name].tuples_in
        if done != rows:
            raise RuntimeError(f"{done} of {rows} rows were processed")
        written = rig.log.end(name)
        rig.drop_query(name)
        return seconds, written

    return run


def _batch(stage: Stage, session: SparkSession) -> Callable[[], tuple[float, int]]:
    source, target = str(stage.folder / "input"), str(stage.folder / "output")

    def run() -> tuple[float, int]:
        began = time.perf_counter()
        program(session.read.parquet(source)).write.mode("overwrite").parquet(target)
        seconds = time.perf_counter() - began
        return seconds, session.read.parquet(target).count()

    return run


def _figures(rows: int, found: dict[str, list[tuple[float, int]]]) -> dict[str, float | Spread]:
    written = {count for side in found.values() for _, count in side}
    if len(written) != 1:
        raise RuntimeError(f"the sides wrote different numbers of rows ({written}): the comparison means nothing")
    rates = {name: [rows / seconds for seconds, _ in side] for name, side in found.items()}
    return {
        "rows_per_second": extremes(rates["freshet"]),
        "batch_rows_per_second": extremes(rates["batch"]),
        "throughput_vs_batch": ratio(*([[rate] for rate in rates[name]] for name in ("freshet", "batch"))),
        "checksum_cost": ratio(*([[seconds] for seconds, _ in found[name]] for name in ("always", "never"))),
        "rows": rows,
        "rows_written": written.pop(),
    }


def _conditions(rows: int, train: int, workers: int) -> dict[str, Any]:
    return {
        "query": SQL,
        "freshet": (
            f"the query is added, and {rows:,} rows that wait in the log (segments of {_SEGMENT:,}) pass in trains of "
            f"{train:,}, of which up to {workers} run at once; output files and commits are synced to disk; ends with "
            "the last commit"
        ),
        "batch": (
            "read.parquet, where, where, select, write.parquet as one job over the same rows (snappy, files of "
            f"{_FILE:,} rows); output synced to disk or not as Spark does it"
        ),
        "checksum_cost": (
            "time with checksums (written, and those of every segment looked at whenever it is read; a run looks once) "
            "over time without"
        ),
        "same": "one JVM, one session and its settings; rounds of all sides alternate; all warm",
        "spread": "least and greatest over rounds",
    }
