"""``freshet bench overhead``: what a step costs, and what a micro-batch costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import typer

from freshet.bench.figures import Spread, quartiles, ratio
from freshet.bench.interleave import measure
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.rig.notes import PARTS, StepNote
from freshet.bench.rows import SCHEMA, SQL, STREAM, make_rows, program
from freshet.bench.stage import Stage


@bench("The cost of one small step, against a micro-batch of Structured Streaming.", takes="about four minutes")
def overhead(
    stage: Stage,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a train.")] = 1000,
    rounds: Annotated[int, typer.Option(min=1, help="Measured rounds; each has a block of both sides.")] = 10,
    block: Annotated[int, typer.Option(min=4, help="Steps (and micro-batches) of a block.")] = 25,
    warm_up: Annotated[int, typer.Option(min=0, help="Rounds before; Java compiles for some 300 executions.")] = 14,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """One query (two filters and a projection) runs over a backlog of small trains. A step of its own processes each
    train, with a durable output. The same rows, one file in each micro-batch, go through Structured Streaming with a
    Parquet sink and a checkpoint. Blocks of both sides alternate in one JVM.
    """
    from freshet.bench.rig.engine import EngineRig
    from freshet.bench.rig.streaming import StreamingRig

    trains = [make_rows(number * rows, rows) for number in range(block)]
    with (
        stage.spark("overhead", master) as session,
        EngineRig(session, stage.folder / "state", [STREAM], most_rows=rows) as ours,
        StreamingRig(session, stage.folder / "streaming", {STREAM.name: SCHEMA}) as theirs,
    ):
        ours.add_queries({"out": SQL})

        def run_steps() -> list[StepNote]:
            for rows in trains:
                ours.append({STREAM.name: rows})
            # As with the micro-batches, the first and the last are left out.
            return ours.work_off()[1:-1]

        def run_batches() -> list[MicroBatch]:
            theirs.clear()
            for rows in trains:
                theirs.write({STREAM.name: rows})
            # One file in each micro-batch; all are there, so the folder is listed once and none waits for a poll.
            return micro_batches(theirs.run("out", program(theirs.source(STREAM.name, most_files=1)), "parquet"))

        sides: dict[str, Callable[[], Any]] = {"step": run_steps, "batch": run_batches}
        found = measure(stage, sides, rounds, warm_up)
        same = ours.log.end("out") == session.read.parquet(str(theirs.output("out"))).count()
    if not same:
        raise RuntimeError("the two sides wrote different numbers of rows: the comparison means nothing")
    return Result.of(_figures(found["step"], found["batch"]), _conditions(rows))


class MicroBatch(NamedTuple):
    """Seconds of one micro-batch: ``trigger`` as Spark reports it, ``period`` from its start to that of the next."""

    trigger: float
    period: float


def micro_batches(progress: Sequence[Mapping[str, Any]]) -> list[MicroBatch]:
    """Reads Spark's reports, without the first, which contains the start of the query, and the last, which has no
    successor.

    >>> seconds = ("00.0", "01.5", "02.0")
    >>> reports = [{"timestamp": f"2024-01-01T00:00:{s}Z", "durationMs": {"triggerExecution": 400}} for s in seconds]
    >>> micro_batches(reports)
    [MicroBatch(trigger=0.4, period=0.5)]
    """
    starts = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in progress]
    return [
        MicroBatch(each["durationMs"]["triggerExecution"] / 1e3, after - start)
        for each, start, after in zip(progress[1:-1], starts[1:], starts[2:], strict=False)
    ]


def _figures(steps: Sequence[list[StepNote]], batches: Sequence[list[MicroBatch]]) -> dict[str, float | Spread]:
    ours = [[each.seconds for each in block] for block in steps]
    theirs = [[each.trigger for each in block] for block in batches]
    every = [each for block in steps for each in block]
    return {
        "step_ms": quartiles([each.seconds * 1e3 for each in every]),
        "micro_batch_ms": quartiles([second * 1e3 for block in theirs for second in block]),
        "step_vs_micro_batch": ratio(ours, theirs),
        **{f"{part}_ms": quartiles([each.parts[part] * 1e3 for each in every]) for part in PARTS},
        "micro_batch_period_ms": quartiles([each.period * 1e3 for block in batches for each in block]),
        "steps": len(every),
        "micro_batches": sum(map(len, theirs)),
    }


def _conditions(rows: int) -> dict[str, Any]:
    return {
        "query": SQL,
        "step": (
            f"end of one commit to end of the next, {rows} rows of a backlog in Freshet's log, one step at a time; "
            "output file and commit are synced to disk"
        ),
        "micro_batch": (
            f"triggerExecution as Spark reports it, one Parquet file of {rows} rows per trigger, files present before "
            "the query starts, Parquet sink with checkpoint, synced to disk or not as Spark does it"
        ),
        "same": "one JVM, one session and its settings, the same rows; blocks of both sides alternate; both warm",
        "spread": "quartiles over steps and micro-batches; for the ratio, least and greatest of a round",
    }
