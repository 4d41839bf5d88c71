"""``freshet bench periodic``: what instances of periodic queries cost."""

from __future__ import annotations

from typing import Annotated

import typer

from freshet.bench.periodic.panes import measure_panes
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage


@bench(
    "What a release of a periodic aggregate costs with panes, against reading its whole window.", takes="two minutes"
)
def periodic(
    stage: Stage,
    rate: Annotated[int, typer.Option(min=1, help="Rows per second.")] = 20_000,
    window: Annotated[int, typer.Option(min=2, help="Seconds of the window; the period is one second.")] = 60,
    releases: Annotated[int, typer.Option(min=4, help="Measured releases of each side.")] = 20,
    warm_up: Annotated[int, typer.Option(min=0, help="Releases before these.")] = 5,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """A grouped aggregate over a window of time is released every second, in two forms at once: one keeps panes, the
    other reads its whole window. Each instance is a unit of its own, one at a time. The window is full from the first
    release on. The cost of an instance is the time for which its unit keeps the worker, the overhead of the step
    included.
    """
    figures, answers = measure_panes(stage, rate, window, releases, warm_up, master)
    text = f"{rate:,} rows/s, 100 groups, [RANGE {window} s] PERIOD 1 s; count, sum, max"
    return Result.of({**figures, "answers_different": answers}, {"aggregate": text})
