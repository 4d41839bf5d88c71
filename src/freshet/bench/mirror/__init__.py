"""``freshet bench mirror``: plans, what is learned, and live polls."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from freshet.bench.figures import Spread
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage

MirrorPart = Literal["all", "plans", "learning", "live"]


@bench("Plans of refresh rates, learned change rates and live polls of a mirror.", takes="about 15 minutes")
def mirror(
    stage: Stage,
    part: Annotated[MirrorPart, typer.Option(help="What to measure.")] = "all",
    objects: Annotated[int, typer.Option(min=1000, help="Elements of the large plans (times ten once).")] = 1_000_000,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions of the simulated learning.")] = 3,
    seconds: Annotated[float, typer.Option(min=30.0, help="Seconds of live polls.")] = 300.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 1,
) -> Result:
    """Plans: `plan_s_1e6` and `plan_s_1e7` are seconds for so many elements (ten times `--objects`), `kkt_residual` is
    the greatest relative violation of an optimality condition. At half of `--objects` (CAR Table 2.3), `plan_...` is
    compared with PF-partitioning cleaned up by k-means (50 partitions, 10 iterations), and with a plan that begins at
    the mu of an earlier one after 1 % of the rates changed. Learning is simulated (Table 2.2, theta 1): perceived
    freshness by learned rates over that by known ones, after 50 polls per element, and 50 polls after a drift; `naive`
    estimates by changes over time. Live figures come from the record of a local server.
    """
    figures: dict[str, float | Spread] = {}
    if part in ("all", "plans"):
        from freshet.bench.mirror.plans import plans

        figures |= plans(stage, objects=objects, seed=seed)
    if part in ("all", "learning"):
        from freshet.bench.mirror.learning import learning

        figures |= learning(stage, seeds=seeds, seed=seed)
    if part in ("all", "live"):
        from freshet.bench.mirror.live import live

        figures |= live(stage, seconds=seconds, seed=seed)
    return Result.of(figures, {"seed": seed, "seeds": seeds, "objects": objects})
