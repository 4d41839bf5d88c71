"""``freshet bench overhead``: what a step costs, and what a micro-batch does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from freshet.bench.figures import Spread, quartiles, ratio
from freshet.bench.interleave import interleave
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.rows import SQL, make_rows
from freshet.bench.stage import Stage

if TYPE_CHECKING:
    from freshet.bench.micro_batches import MicroBatch
    from freshet.bench.steps import StepTimes

_PARTS: Final = ("decide", "plan", "job", "hand_over", "commit")


@bench("The cost of one small step, against a micro-batch of Structured Streaming.", takes="about four minutes")
def overhead(
    stage: Stage,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a train.")] = 1000,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds that are measured; in each, a block of both sides.")] = 10,
    block: Annotated[int, typer.Option(min=4, help="Steps (and micro-batches) of a block.")] = 25,
    warm_up: Annotated[int, typer.Option(min=0, help="Rounds before; Java compiles for some 300 executions.")] = 14,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """One query (two filters and a projection) over a backlog of small trains, each processed by a step of its own with
    a durable output; and the same rows, one file in each micro-batch, through Structured Streaming with a Parquet
    sink and a checkpoint. Blocks of both sides alternate in one JVM.
    """
    from freshet.bench.micro_batches import MicroBatches
    from freshet.bench.steps import Steps
    from freshet.spark.session.embedded import embedded_session

    stage.say("starting Spark ...")
    trains = [make_rows(number * rows, rows) for number in range(block)]
    with (
        embedded_session("freshet bench overhead", master, log_folder=stage.logs) as session,
        Steps(session, stage.folder / "state", most_rows=rows) as steps,
    ):
        batches = MicroBatches(session, stage.folder / "streaming")
        steps.add_query("out")

        def run_steps() -> list[StepTimes]:
            for rows in trains:
                steps.append(rows)
            # As with the micro-batches, the first and the last are left out.
            return steps.run()[1:-1]

        sides: dict[str, Any] = {"step": run_steps, "batch": lambda: batches.run(trains)}
        with stage.steps("warming up", warm_up) as advance:
            interleave(sides, warm_up, advance)
        with stage.steps("measuring", rounds) as advance:
            found = interleave(sides, rounds, advance)
        same = steps.output_rows("out") == batches.output_rows()
    if not same:
        raise RuntimeError("the two sides wrote different numbers of rows: the comparison means nothing")
    return Result.of(_figures(found["step"], found["batch"]), _conditions(rows))


def _figures(steps: Sequence[list[StepTimes]], batches: Sequence[list[MicroBatch]]) -> dict[str, float | Spread]:
    ours = [[each.step for each in block] for block in steps]
    theirs = [[each.trigger for each in block] for block in batches]
    every = [each for block in steps for each in block]
    parts = {f"{part}_ms": quartiles([getattr(each, part) * 1e3 for each in every]) for part in _PARTS}
    return {
        "step_ms": quartiles([each.step * 1e3 for each in every]),
        "micro_batch_ms": quartiles([second * 1e3 for block in theirs for second in block]),
        "step_vs_micro_batch": ratio(ours, theirs),
        **parts,
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
