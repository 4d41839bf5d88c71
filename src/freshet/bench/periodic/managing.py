"""Ways of managing quality against each other, at loads that are too much (RT Fig. 10a on Spark)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from freshet.bench.figures import Spread, mean, over, quartiles
from freshet.bench.periodic.answers import AnswersChecked
from freshet.bench.periodic.rig import WARM_S, PeriodicRig, PeriodicRun
from freshet.bench.periodic.sides import GRID, SIDES, QualitySide, rule_of
from freshet.bench.periodic.table2 import CHUNKS, PAIRS, PERIOD_S, Table2
from freshet.bench.stage import Stage
from freshet.quality.periodic import Gains
from freshet.reproduce.rtstream.runs import RecordedRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOADS: Final = (1.2, 1.5)
FULL_S: Final = 0.97
"""Seconds from a common release to its last answer that are a load of 1: best effort just misses nothing."""
PROBE: Final = 25_000.0
"""Tuples per second and stream at which that time is measured first, to find the rates of loads."""
NEXT: Final = 1.25
"""About the load at which it is measured next."""
PROBE_S: Final = 2.0
"""How many times as long as other runs these last."""
_LEAST: Final = 0.01
"""A quality below it counts as this much in a ratio."""

SideRuns = Mapping[tuple[QualitySide, float], Sequence[PeriodicRun]]
"""By side and load, one run of each repetition."""


@dataclass(slots=True)
class ManagingBench:
    """Runs all sides in each repetition, in alternating order, each at every load.

    Args:
        stage: Where.
        session: Spark.
        seconds: Of a run, after its warm-up.
    """

    stage: Stage
    session: SparkSession
    seconds: float
    spans: dict[float, float] = field(default_factory=dict)
    """Seconds from a common release to its last answer, by rate."""
    rates: dict[float, float] = field(default_factory=dict)
    """Tuples per second and stream, by load."""
    checked: AnswersChecked = field(default_factory=AnswersChecked)
    _folders: Any = field(default_factory=count)

    def rig(self, rate: float) -> PeriodicRig:
        """An engine with the queries, over an empty log."""
        return PeriodicRig(self.session, self.stage.folder / f"managing-{next(self._folders)}", Table2(rate))

    def find_rates(self) -> None:
        """Finds the rates of loads: at 100 % best effort just misses nothing, at 150 % the work that is due takes 1.5
        times as long, the overhead of steps included. That time is taken to be linear in the rate; it is measured on
        both sides of 100 %."""
        short = self._span(low := PROBE)
        long = self._span(high := low * NEXT * FULL_S / short)
        for load in (1.0, *LOADS):
            self.rates[load] = low + (high - low) * (FULL_S * load - short) / (long - short)

    def _span(self, rate: float) -> float:
        """Seconds from a common release to its last answer at a rate."""
        with self.rig(rate) as rig:
            run = rig.side("best-effort", rule_of("best-effort", GRID[0]), 1.0, PROBE_S * self.seconds, 0)
        self.spans[rate] = float(np.median(run.makespans))
        return self.spans[rate]

    def times(self, load: float) -> float:
        """How many times as many tuples come at a load as at 100 %."""
        return self.rates[load] / self.rates[1.0]

    def gains(self) -> tuple[Gains, dict[str, float]]:
        """The gains with which feedback reaches the highest quality at the highest load, and that of all."""
        found = {}
        with self.rig(self.rates[1.0]) as rig:
            for gains in GRID:
                rule, times = rule_of("feedback", gains), self.times(LOADS[-1])
                found[gains] = rig.side("feedback", rule, times, self.seconds, 0).quality
        texts = {f"{each.integral:g}, {each.proportional:g}": quality for each, quality in found.items()}
        return max(found, key=lambda each: found[each]), texts

    def repeat(self, gains: Gains, repetitions: int) -> SideRuns:
        """All repetitions. Controllers and margins go on from one to the next: none begins anew."""
        cells = [(side, load) for load in LOADS for side in SIDES]
        rules: dict[tuple[QualitySide, float], RecordedRule] = {
            (side, load): rule_of(side, gains) for side, load in cells
        }
        found: dict[tuple[QualitySide, float], list[PeriodicRun]] = {cell: [] for cell in cells}
        with self.stage.steps("runs", repetitions * len(cells)) as advance:
            for number in range(repetitions):
                with self.rig(self.rates[1.0]) as rig:
                    # Workers compile and fill caches: no side shall be the one that runs first.
                    rig.side("best-effort", rule_of("best-effort", gains), 1.0, PERIOD_S, number)
                    for side, load in cells[:: 1 if number % 2 == 0 else -1]:
                        run = rig.side(side, rules[side, load], self.times(load), self.seconds, number)
                        found[side, load].append(run)
                        advance()
                    self.checked = self.checked.plus(rig.answers())
        return found


def figures_of(found: SideRuns) -> dict[str, float | Spread]:
    """The figures, with a suffix for each load."""
    figures: dict[str, float | Spread] = {}
    for load in LOADS:
        sides = {side: found[side, load] for side in SIDES}
        quality = {side: [run.quality for run in runs] for side, runs in sides.items()}
        for other in ("feedback", "best-effort"):
            figures[_key(f"quality_dynamic_vs_{other}", load)] = over(
                quality["dynamic"], [max(_LEAST, each) for each in quality[other]]
            )
        figures[_key("missed_dynamic", load)] = mean([run.missed for run in sides["dynamic"]])
        figures[_key("ended_early_dynamic", load)] = mean([run.ended_early for run in sides["dynamic"]])
        for side in ("dynamic", "fair", "feedback", "best-effort"):
            figures[_key(f"deviation_{side}", load)] = mean([run.deviation for run in sides[side]])
        for side, values in quality.items():
            figures[_key(f"quality_{side}", load)] = mean(values)
    ours = [run for load in LOADS for run in found["dynamic", load]]
    figures["besides_operators_s"] = mean([run.besides for run in ours])
    figures["time_error_p50"] = quartiles([error for run in ours for error in run.time_errors])
    figures["sampling_share_dynamic"] = mean([run.sampling for run in ours])
    figures["sampling_share_fixed"] = mean([run.sampling for load in LOADS for run in found["fixed", load]])
    return figures


def _key(name: str, load: float) -> str:
    """The name of a figure at a load.

    >>> _key("quality_best-effort", 1.2)
    'quality_best_effort_120'
    """
    return f"{name.replace('-', '_')}_{100 * load:.0f}"


def conditions_of(bench: ManagingBench, gains: Gains, searched: Mapping[str, float]) -> dict[str, Any]:
    """How it was measured."""
    return {
        "queries": "the 24 of RT §5.2.1 with the periods listed there, over eight streams and a table; "
        f"{PAIRS:g} pairs for each tuple at 100 %; overload = defer, thin; late instances finish; edf, ties by hash",
        "load": f"work that is due over the time until then, overhead of steps included: at 100 % best effort answers "
        f"all instances of a common release within {FULL_S:g} s of their deadline of 1 s, at 150 % it takes 1.5 times "
        "as long, by a straight line through two rates",
        "tuples_per_s_of_each_stream": {f"{100 * load:.0f} %": round(rate) for load, rate in bench.rates.items()},
        "seconds_by_rate": bench.spans,
        "arrivals": f"{CHUNKS} times per second and stream, Poisson numbers; the same for all sides of a repetition",
        "tables": "dealt by seeds 0-9, anew at each common release, the same for all sides; 5 repetitions of 8 s have "
        "each seed twice",
        "sides": "dynamic: balanced levels by prediction, samples where they tell most; fair: the same "
        "with the highest common level; fixed: as dynamic with samples of 1/10; "
        "feedback: a PI controller on the miss ratio; best effort reads everything; shortest-first: best effort that "
        "breaks ties by the expected time. A new engine in each repetition; controllers and margins go on",
        "gains_of_feedback": {"integral": gains.integral, "proportional": gains.proportional, "searched": searched},
        "warm_up": f"{WARM_S:g} s of each run do not count, nor a first run of best effort on each engine",
        "besides_operators_s": "of all instances of a common release together, under dynamic: what no level makes "
        "shorter, such as steps and reading windows",
        "quality": "mean over instances, 0 if late (RT Eq. 3); deviation: among the instances with the same dealing of "
        "tables, averaged over dealings",
        "answers_wrong": "of all sides, and after kills, against the batch answer over log minus ledger: "
        f"{bench.checked.checked} answers of these runs, {bench.checked.thinned} of them from some of the tuples",
    }
