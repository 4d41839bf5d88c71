"""``freshet bench state``: what a step costs by how much is remembered, and how much faster more workers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer

from freshet.bench.figures import Spread, extremes, quartiles, ratio
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage

if TYPE_CHECKING:
    from freshet.bench.state.load import StateLoad
    from freshet.bench.state.steps import StepTime, WorkerSteps

SIZES: Final = {"join": (10**5, 10**7), "panes": (10**4, 10**6)}
"""What is remembered: rows of a join, groups of panes."""
_GROUPS: Final = 10**6
_ROUND: Final = 50
_WARM_UP: Final = 40
_REBUILDS: Final = 3

StepRounds = list[list["StepTime"]]
"""Steps by round."""


@bench("What a step costs by how much its fold remembers, and how folds scale with workers.", takes="ten minutes")
def state(
    stage: Stage,
    rounds: Annotated[int, typer.Option(min=1, help=f"Rounds of {_ROUND} steps of each size, in turn.")] = 10,
    share: Annotated[float, typer.Option(min=0.001, max=1.0, help="Share of the large sizes that is used.")] = 1.0,
    scale_rounds: Annotated[int, typer.Option(min=0, help="Rounds of the backlogs; 0: leave them out.")] = 3,
    trains: Annotated[int, typer.Option(min=1, help="Measured trains of a backlog.")] = 6,
    only: Annotated[bool, typer.Option("--only-scale", help="Measure the backlogs alone.")] = False,
    master: Annotated[str, typer.Option(help="Spark master of the backlogs.")] = "local[*]",
) -> Result:
    """A step has 1,000 rows, and closes nothing. A worker runs it as in a resident, in this process: it reads its
    assignment, runs the fold, writes a synced file and reports. Steps over a small and a large state take turns.
    `step_cost_vs_state_join` and `_panes` are the ratios of their medians, `fold_cost_...` those of the fold alone.
    `rebuild_seconds_...` are the first steps, one for each input, of a worker that has not kept the large state: it
    reads the state from the log, and makes its indexes.

    A backlog has trains of a million rows, over a million groups; it waits in the log, and residents on Spark work it
    off. `scale_2` is how many times as fast two residents are as one, `scale_2_cpu` the CPU of all processes over that
    with one. The same for distinct values with quantiles, and for a join.
    """
    from freshet.bench.state.load import JoinLoad, PanesLoad
    from freshet.bench.state.scale import QUERIES, ScaleBacklog, measure_scale

    figures: dict[str, float | Spread] = {}
    notes: dict[str, Any] = {}
    made: Mapping[str, type[JoinLoad] | type[PanesLoad]] = {"join": JoinLoad, "panes": PanesLoad}
    for kind, (small, large) in SIZES.items() if not only else ():
        loads = {"small": made[kind](small), "large": made[kind](max(small, round(large * share)))}
        figures |= _measure(stage, kind, loads, rounds, notes)
    if scale_rounds:
        backlogs = {name: ScaleBacklog(name, max(1000, round(_GROUPS * share)), trains) for name in QUERIES}
        with stage.spark("state", master) as session:
            scale, told = measure_scale(stage, session, backlogs, scale_rounds)
        figures, notes = {**figures, **scale}, {**notes, **told, "scale_queries": QUERIES}
    return Result.of(figures, {**notes, **_CONDITIONS})


def _measure(
    stage: Stage, kind: str, loads: Mapping[str, StateLoad], rounds: int, notes: dict[str, Any]
) -> dict[str, float | Spread]:
    from freshet.bench.state.steps import WorkerSteps

    stage.say(f"{kind}: writing the states ...")
    sides = {name: WorkerSteps(load, stage.folder / f"{kind}-{name}") for name, load in loads.items()}
    with stage.steps(f"{kind}: rebuilding", _REBUILDS) as advance:
        rebuilt = []
        for _ in range(_REBUILDS):
            rebuilt.append(sum(step.unit for step in sides["large"].rebuild()))
            advance()
    for side in sides.values():
        for _ in range(_WARM_UP):
            side.step()
    with stage.steps(f"{kind}: steps", rounds) as advance:
        found = _steps(sides, rounds, advance)
    notes[f"remembered_{kind}"] = {name: side.rows for name, side in sides.items()}
    notes[f"rows_out_per_row_{kind}"] = {name: _rows_out(each) for name, each in found.items()}
    return {f"rebuild_seconds_{kind}": extremes(rebuilt), **_figures(kind, found)}


def _steps(sides: Mapping[str, WorkerSteps], rounds: int, advance: Any) -> dict[str, StepRounds]:
    found: dict[str, StepRounds] = {name: [] for name in sides}
    for _ in range(rounds):
        for each in found.values():
            each.append([])
        for _ in range(_ROUND):
            for name, side in sides.items():
                found[name][-1].append(side.step())
        advance()
    return found


def _figures(kind: str, found: Mapping[str, StepRounds]) -> dict[str, float | Spread]:
    units, folds = ({name: _seconds(each, part) for name, each in found.items()} for part in ("unit", "fold"))
    figures: dict[str, float | Spread] = {
        f"step_cost_vs_state_{kind}": ratio(units["large"], units["small"]),
        f"fold_cost_vs_state_{kind}": ratio(folds["large"], folds["small"]),
    }
    for name in found:
        every = np.concatenate(units[name])
        figures[f"step_ms_{kind}_{name}"] = quartiles(every).times(1e3)
        figures[f"step_ms_p99_{kind}_{name}"] = float(np.percentile(every, 99)) * 1e3
        figures[f"fold_ms_{kind}_{name}"] = quartiles(np.concatenate(folds[name])).times(1e3)
    return figures


def _seconds(found: StepRounds, part: str) -> Sequence[Sequence[float]]:
    return [[getattr(each, part) for each in steps] for steps in found]


def _rows_out(found: StepRounds) -> float:
    rows = [each.rows_out for steps in found for each in steps]
    return round(float(np.mean(rows)) / 1000, 3)


_CONDITIONS: Final = {
    "step": "1,000 rows into one input; nothing closes; of a join as many rows expire as come",
    "join": "two inputs with half of the rows each, keys drawn so that a row meets one other on average",
    "panes": "count, mean and maximum by group within one window",
    "rewriting": "a state in many small segments is written anew by units of their own, which are not steps",
    "rebuilding": "segment files are in the page cache",
    "scale": (
        "one query; trains of as many rows as there are groups; two trains before those that are measured, so that the "
        "state is large, and divided if that pays; nothing closes; sides take turns, each with a log of its own"
    ),
    "spread": "quartiles; of a ratio: least and greatest of a round; of rebuilding and scale: least and greatest",
}
