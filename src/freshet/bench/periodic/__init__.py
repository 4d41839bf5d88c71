"""``freshet bench periodic``: what instances of periodic queries cost, and how good they are under too much load."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from freshet.bench.figures import Spread
from freshet.bench.periodic.panes import measure_panes
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage


@bench("Quality of periodic queries under too much load, and what panes save.", takes="about twenty minutes")
def periodic(
    stage: Stage,
    repetitions: Annotated[int, typer.Option(min=0, help="Repetitions; each runs every side at both loads.")] = 5,
    seconds: Annotated[float, typer.Option(min=2.0, help="Seconds of a run that count.")] = 8.0,
    kills: Annotated[int, typer.Option(min=0, help="How often an application is killed.")] = 20,
    releases: Annotated[int, typer.Option(min=4, help="Measured releases of panes and of whole windows.")] = 20,
    window: Annotated[int, typer.Option(min=2, help="Seconds of these windows; the period is one second.")] = 60,
    rate: Annotated[int, typer.Option(min=1, help="Rows per second there.")] = 20_000,
) -> Result:
    """RT's Table 2 runs on Spark at 120 and 150 % of what the machine can do, under five ways of managing quality. An
    application with the same queries is killed with SIGKILL again and again; then every answer is compared with the
    batch answer over log minus ledger. Last, a grouped aggregate over a window of time is released every second, in two
    forms at once: one keeps panes, the other reads its whole window. The cost of an instance is the time for which its
    unit keeps the worker, the overhead of the step included.
    """
    from freshet.bench.periodic.kills import killed_answers
    from freshet.bench.periodic.managing import ManagingBench, conditions_of, figures_of

    figures: dict[str, float | Spread] = {}
    conditions: dict[str, Any] = {}
    wrong = 0
    if repetitions:
        with stage.spark("periodic", "local[1]") as session:
            managing = ManagingBench(stage, session, seconds)
            stage.say("looking for the rates of loads ...")
            managing.find_rates()
            rate_1 = managing.rates[1.0]
            stage.say(f"100 % is {rate_1:.0f} tuples/s on each stream; looking for the gains of feedback ...")
            gains, searched = managing.gains()
            figures |= figures_of(managing.repeat(gains, repetitions))
            wrong += managing.checked.wrong
            conditions |= conditions_of(managing, gains, searched)
    if kills:
        checked, ended_early = killed_answers(stage, kills)
        wrong += checked.wrong
        figures |= {"kills": kills, "answers_checked_after_kills": checked.checked}
        figures |= {"answers_thinned_after_kills": checked.thinned, "ended_early_in_last_process": ended_early}
    panes, different = measure_panes(stage, rate, window, releases, 5, "local[*]")
    text = f"{rate:,} rows/s, 100 groups, [RANGE {window} s] PERIOD 1 s; count, sum, max"
    return Result.of(
        {**figures, "answers_wrong": wrong, **panes, "answers_different": different}, {**conditions, "aggregate": text}
    )
