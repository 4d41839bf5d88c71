"""``freshet bench overhead``: what a step costs, and what a micro-batch costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, NamedTuple

import typer

from freshet.bench.figures import Spread, quartiles, ratio
from freshet.bench.interleave import measure
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.rig.notes import PARTS, StepNote
from freshet.bench.rows import SCHEMA, SQL, STREAM, make_rows, program
from freshet.bench.stage import Stage


@bench(
    "The cost of one small step, by a resident and as a Spark job, against a micro-batch of Structured Streaming.",
    takes="about four minutes",
)
def overhead(
    stage: Stage,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a train.")] = 1000,
    rounds: Annotated[int, typer.Option(min=1, help="Measured rounds; each has a block of every side.")] = 10,
    block: Annotated[int, typer.Option(min=4, help="Steps (and micro-batches) of a block.")] = 25,
    warm_up: Annotated[int, typer.Option(min=0, help="Rounds before; Java compiles for some 300 executions.")] = 14,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """One query (two filters and a projection) runs over a backlog of small trains. A step of its own processes each
    train, with a durable output: on one side a resident runs it, on another it is a Spark job. The same rows, one file
    in each micro-batch, go through Structured Streaming with a Parquet sink and a checkpoint. Blocks of all sides
    alternate in one JVM.
    """
    from freshet.bench.rig.engine import EngineRig
    from freshet.bench.rig.streaming import StreamingRig

    trains = [make_rows(number * rows, rows) for number in range(block)]
    with (
        stage.spark("overhead", master) as session,
        EngineRig(session, stage.folder / "resident", [STREAM], most_rows=rows, resident=1) as resident,
        EngineRig(session, stage.folder / "job", [STREAM], most_rows=rows, resident="off") as job,
        StreamingRig(session, stage.folder / "streaming", {STREAM.name: SCHEMA}) as theirs,
    ):
        for rig in (resident, job):
            rig.add_queries({"out": SQL})

        def run_steps(rig: EngineRig) -> list[StepNote]:
            for rows in trains:
                rig.append({STREAM.name: rows})
            # As with the micro-batches, the first and the last are left out.
            return rig.work_off()[1:-1]

        def run_batches() -> list[MicroBatch]:
            theirs.clear()
            for rows in trains:
                theirs.write({STREAM.name: rows})
            # One file in each micro-batch; all are there, so the folder is listed once and none waits for a poll.
            return micro_batches(theirs.run("out", program(theirs.source(STREAM.name, most_files=1)), "parquet"))

        sides: dict[str, Callable[[], Any]] = {
            "resident": partial(run_steps, resident),
            "job": partial(run_steps, job),
            "batch": run_batches,
        }
        found = measure(stage, sides, rounds, warm_up)
        written = {resident.log.end("out"), job.log.end("out")}
        same = written == {session.read.parquet(str(theirs.output("out"))).count()}
        given_back = resident.executor.residents()["given_back"]
    if not same or given_back:
        raise RuntimeError("the sides wrote different numbers of rows, or went another way: this means nothing")
    return Result.of(_figures(found), _conditions(rows))


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


def _figures(found: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, float | Spread]:
    steps: dict[str, list[list[float]]] = {
        way: [[each.seconds for each in block] for block in found[way]] for way in ("resident", "job")
    }
    theirs = [[each.trigger for each in block] for block in found["batch"]]
    figures: dict[str, float | Spread] = {
        "step_ms": _milliseconds(steps["resident"]),
        "job_step_ms": _milliseconds(steps["job"]),
        "micro_batch_ms": _milliseconds(theirs),
        "step_ms_resident_vs_job": ratio(steps["resident"], steps["job"]),
        "step_vs_micro_batch": ratio(steps["resident"], theirs),
        "job_step_vs_micro_batch": ratio(steps["job"], theirs),
    }
    for way, prefix in (("resident", ""), ("job", "job_")):
        for part in PARTS:
            spent = [[each.parts[part] for each in block] for block in found[way]]
            figures[f"{prefix}{part}_ms"] = _milliseconds(spent)
    periods = [[each.period for each in block] for block in found["batch"]]
    counts = {"steps": sum(map(len, steps["resident"])), "micro_batches": sum(map(len, theirs))}
    return {**figures, "micro_batch_period_ms": _milliseconds(periods), **counts}


def _milliseconds(blocks: Sequence[Sequence[float]]) -> Spread:
    return quartiles([second * 1e3 for block in blocks for second in block])


def _conditions(rows: int) -> dict[str, Any]:
    return {
        "query": SQL,
        "ways": "step: by one resident; job_step: as a Spark job; both in one Spark, over the same rows",
        "parts": "see PARTS in freshet/bench/rig/notes.py; in the middle they add up to a step",
        "step": (
            f"end of one commit to end of the next, {rows} rows of a backlog in Freshet's log, one step at a time; "
            "output file and commit are synced to disk"
        ),
        "micro_batch": (
            f"triggerExecution as Spark reports it, one Parquet file of {rows} rows per trigger, files present before "
            "the query starts, Parquet sink with checkpoint, synced to disk or not as Spark does it"
        ),
        "same": "one JVM, one session and its settings, the same rows; blocks of all sides alternate; all warm",
        "spread": "quartiles over steps and micro-batches; for the ratio, least and greatest of a round",
    }
