"""``freshet bench optimizer``: each strategy of MavStream alone, and the optimizer that chooses, on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from freshet.bench.figures import Spread, mean, over
from freshet.bench.interleave import interleave
from freshet.bench.optimizer.load import (
    ANYTHING,
    BEAT,
    CALM,
    LATER,
    LOOK_S,
    NOTE_BYTES,
    OVERLOAD,
    RELAXED,
    ROOM,
    SHARES,
    WINDOW_S,
    LoadPhase,
    LoadWishes,
    arrivals,
    calm_beat,
    calm_rows,
    phases,
)
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from freshet.bench.optimizer.rig import SideRun

_PROBE_ROWS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Probed:
    """What was measured before the first repetition: rows per second that the machine can do, seconds that a batch of
    the calm takes, and what is expected.
    """

    capacity: float
    batch_s: float
    wishes: LoadWishes


@bench("MavStream's strategies and the optimizer that chooses among them.", takes="about thirty minutes")
def optimizer(
    stage: Stage,
    seconds: Annotated[float, typer.Option(min=10.0, help="Seconds of the four phases of a run together.")] = 57.0,
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions; each runs every side.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of rows and arrivals.")] = 0,
    master: Annotated[str, typer.Option(help="Spark master; one core is one worker.")] = "local[1]",
) -> Result:
    """One query of eight operators with two joins reads three streams through four phases: calm, a burst, many bursts
    while little memory is expected, and an overload of 1.5. Each strategy keeps it in a run of its own, and in another
    run the optimizer chooses. All sides play the same arrivals. What is expected is what only the best strategy for it
    gave before the first repetition: elsewhere no choice matters.
    """
    from freshet.bench.optimizer.rig import OPTIMIZER, STRATEGIES, THINNED

    with stage.spark("optimizer", master) as session:
        probed = _probe(stage, session, seconds, seed)
        stage.say(
            f"the machine does {probed.capacity:.0f} rows a second; a batch of the calm takes {probed.batch_s:.3f} s; "
            f"expected: {probed.wishes}"
        )
        played = phases(seconds)
        sides = {side: _side(stage, session, side, played, probed, seed) for side in (*STRATEGIES, OPTIMIZER, THINNED)}
        with stage.steps("repetitions", repetitions) as advance:
            found = interleave(sides, repetitions, advance)
    return Result.of(figures_of(found), _conditions(found, probed, played))


def _probe(stage: Stage, session: SparkSession, seconds: float, seed: int) -> Probed:
    """Measures the capacity, then what each strategy gives in the phases calm and burst."""
    from freshet.bench.optimizer.rig import STRATEGIES, OptimizerRig

    with stage.steps("probing", 1 + len(STRATEGIES)) as advance:
        with OptimizerRig(session, stage.folder / "probe", "pcs") as rig:
            capacity = rig.capacity(_PROBE_ROWS)
            batch_s = rig.batch_seconds(capacity)
        advance()
        seen = {}
        for strategy in STRATEGIES:
            run = _side(
                stage, session, strategy, phases(seconds)[:2], Probed(capacity, batch_s, ANYTHING), seed + 1000
            )()
            seen[strategy] = run.seen
            advance()
    best, second = (seen[strategy]["calm"].latency for strategy in ("pcs", "simplified-segment"))
    return Probed(capacity, batch_s, LoadWishes(sqrt(best * second), ROOM * seen["segment"]["burst"].most_memory))


def _side(
    stage: Stage, session: SparkSession, side: str, played: Sequence[LoadPhase], probed: Probed, seed: int
) -> Callable[[], SideRun]:
    """Runs a side; in each repetition, all sides get the same arrivals, and other repetitions get others."""
    from freshet.bench.optimizer.rig import OptimizerRig

    done = 0

    def run() -> SideRun:
        nonlocal done
        came = arrivals(played, probed.capacity, seed + done, calm_beat(probed.batch_s))
        done += 1
        with OptimizerRig(session, stage.folder / f"{side}-{done}", side) as rig:
            return rig.phases(played, came, probed.wishes)

    return run


def figures_of(found: Mapping[str, Sequence[SideRun]]) -> dict[str, float | Spread]:
    """Computes figures from the runs of each side, by repetition."""
    pcs, segment, ours = found["pcs"], found["segment"], found["optimizer"]
    fixed = [name for name in found if not name.startswith("optimizer")]
    total = {name: [violated_s(run) for run in runs] for name, runs in found.items()}
    before = {name: [violated_s(run, but=OVERLOAD) for run in runs] for name, runs in found.items()}
    figures: dict[str, float | Spread] = {
        "memory_segment_vs_pcs": over([run.memory for run in segment], [run.memory for run in pcs]),
        "latency_pcs_vs_segment": over([run.latency for run in pcs], [run.latency for run in segment]),
        "violation_vs_best_fixed": over(total["optimizer"], _best(total, fixed)),
        "violation_before_overload_vs_best_fixed": over(before["optimizer"], _best(before, fixed)),
        "violation_best_by_phase_vs_best_fixed": over(_best_by_phase(found, fixed), _best(total, fixed)),
        "monitor_share": mean([run.monitor_share for run in ours]),
        "rows_wrong": sum(run.wrong for runs in found.values() for run in runs),
        "rows_checked": sum(run.answers for runs in found.values() for run in runs),
        "switches": mean([len(run.switches) for run in ours]),
    }
    if "optimizer-thin" in found:
        figures |= _shedding(found["optimizer-thin"], ours)
    for name, runs in found.items():
        key = name.replace("-", "_")
        figures[f"violated_s_{key}"] = mean(total[name])
        figures[f"latency_ms_{key}"] = mean([run.latency for run in runs]).times(1e3)
        figures[f"kilobytes_waiting_{key}"] = mean([run.memory for run in runs]).times(1e-3)
    return figures


def _best(violated: Mapping[str, Sequence[float]], fixed: Sequence[str]) -> list[float]:
    """The violated seconds of the best fixed strategy of each repetition; of nothing, at least one interval."""
    return [max(LOOK_S, min(each)) for each in zip(*(violated[name] for name in fixed), strict=True)]


def _best_by_phase(found: Mapping[str, Sequence[SideRun]], fixed: Sequence[str]) -> list[float]:
    """Violated seconds of each repetition if each phase had its best fixed strategy from its first moment on."""
    runs = zip(*(found[name] for name in fixed), strict=True)
    return [sum(min(run.violated[phase].total for run in each) for phase in each[0].violated) for each in runs]


def _shedding(thinned: Sequence[SideRun], ours: Sequence[SideRun]) -> dict[str, float | Spread]:
    """What thinning is worth in the overload, and whether as much was left out as had to be."""
    with_, without = ([run.violated["overload"].total for run in runs] for runs in (thinned, ours))
    return {
        "violation_shed_vs_unshed": over(with_, [max(LOOK_S, each) for each in without]),
        "shed_vs_excess": over([run.thinned for run in thinned], [max(1.0, run.excess) for run in thinned]),
    }


def violated_s(run: SideRun, but: str | None = None) -> float:
    """Violated seconds of latency and of memory, over all phases but one."""
    return sum(each.total for phase, each in run.violated.items() if phase != but)


def _conditions(found: Mapping[str, Sequence[SideRun]], probed: Probed, played: Sequence[LoadPhase]) -> dict[str, Any]:
    from freshet.bench.optimizer.rig import TRAIN_ROWS

    return {
        "sides": (
            "pcs, simplified-segment, segment: the query keeps this strategy (`strategy = ...`), and the optimizer "
            "looks without acting, so all sides pay for looks; optimizer: it begins with what its table ranks best for "
            "latency, because nothing waits then, and chooses. Every side is a new engine over an empty log that has "
            "run all three strategies before its first phase; optimizer-thin: the same with overload = [defer, thin]"
        ),
        "query": (
            "eight operators: three selections, two joins over windows of "
            f"{WINDOW_S} s, an expensive selection between and one behind them, a projection; in front of joins, "
            f"tuples lose unused columns, among them one of {NOTE_BYTES} bytes"
        ),
        "phases": {
            phase.name: [{"seconds": seconds, "load": load} for seconds, load in phase.pieces] for phase in played
        },
        "load": (
            f"1 is {probed.capacity:.0f} rows per second: what was worked off in trains of {TRAIN_ROWS} rows before "
            "the first repetition, the mean over the strategies. They differ in the steps that they need, so the same "
            f"load keeps some busier than others. In the calm a batch of {calm_rows(probed.capacity)} rows comes every "
            f"{calm_beat(probed.batch_s):.3f} s: alone, such a batch was measured to take {probed.batch_s:.3f} s as a "
            f"mean over the strategies, {CALM:g} of that time"
        ),
        "busy": {name: _rounded(runs, lambda run: run.busy) for name, runs in found.items()},
        "arrivals": f"shares {SHARES}; a batch every {BEAT:g} s, but for the calm, with Poisson numbers of rows "
        f"of all streams; rows of {LATER} belong to rows of the second before; the same for all sides of a repetition",
        "expected": (
            f"class must, a look every {LOOK_S:g} s. Calm and burst: latency {probed.wishes.latency:.3f} s, the "
            "geometric mean of what pcs and simplified-segment gave in a calm before; memory 100 times as much as "
            f"later. Then: memory {probed.wishes.memory / 1e3:.0f} kB, {ROOM:g} times what segment had at most in a "
            f"burst before; latency {RELAXED:g} times that of earlier"
        ),
        "violated_s": "seconds of intervals between looks in which a measure missed its expectation, by the monitor's "
        "figures, summed up over both measures; best fixed: the least of the three in the same repetition; before the "
        "overload: without this phase, in which no strategy can keep anything unless rows are left out; best by phase: "
        "what each phase's best strategy had there, as if somebody had known beforehand when to choose which",
        "violated_by_phase": {
            name: _rounded(runs, lambda run: {phase: each.total for phase, each in run.violated.items()})
            for name, runs in found.items()
        },
        "latency": "from when rows were due to the commit of an answer, the mean over all answers of a run, also those "
        "that came after the last phase: these are the same on all sides without thinning",
        "memory": "bytes in queues, also of rows in progress, as the mean over the phases",
        "excess": "rows of the overload for which there is no time within 0.95 of it, by what a row took from then on "
        "to the end, with all that a step takes besides; on the thinned side",
        "rows_wrong": "rows that a batch by NumPy over log minus ledger has and the output lacks, or the other way "
        "around, on all sides, for every eighth id",
        "kept": "share of its input that the thinned query kept at the looks of the overload, as a mean",
        "kept_in_overload": [round(run.kept, 3) for run in found.get("optimizer-thin", ())],
        "switches": [[(round(time, 1), to) for time, to in run.switches] for run in found["optimizer"]],
        "spread": "least and greatest of a repetition; figures are means over repetitions",
    }


def _rounded(runs: Sequence[SideRun], by_phase: Callable[[SideRun], Mapping[str, float]]) -> dict[str, list[float]]:
    """Values by phase and repetition."""
    each = [by_phase(run) for run in runs]
    return {phase: [round(values[phase], 3) for values in each] for phase in each[0]}
