"""From trials of ``freshet bench many`` to figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from freshet.bench.figures import Spread, extremes, over
from freshet.bench.many.side import Backlog
from freshet.bench.many.trial import TrialOutcome

MEASURES: Final[Mapping[str, Callable[[TrialOutcome], float]]] = {
    "mean_s": lambda outcome: float(outcome.waits.mean()),
    "p95_s": lambda outcome: float(np.percentile(outcome.waits, 95)),
    "rounds_per_s": lambda outcome: outcome.rounds,
    "cpu_s_per_million": lambda outcome: outcome.cpu.total,
    "peak_mb": lambda outcome: outcome.peak_mb,
    "driver_mb": lambda outcome: outcome.driver_mb,
    "driver_growth_mb": lambda outcome: outcome.driver_growth_mb,
    "answered": lambda outcome: outcome.answered,
}


@dataclass(frozen=True, slots=True, order=True)
class TrialKey:
    """Where a trial belongs: queries, kind of sink, rate and side."""

    queries: int
    sink: str
    rate: float
    side: str

    @property
    def name(self) -> str:
        """The end of the names of its figures.

        >>> TrialKey(25, "parquet", 2000.0, "freshet").name
        'freshet_25_parquet'
        """
        return f"{self.side}_{self.queries}_{self.sink}"


@dataclass(slots=True)
class TrialFigures:
    """Everything that was measured.

    Args:
        outcomes: Outcomes of trials.
        backlogs: Results with waiting trains, by side and number of queries.
        silent: Why a side did not get going.
    """

    outcomes: dict[TrialKey, list[TrialOutcome]] = field(default_factory=dict)
    backlogs: dict[tuple[str, int], list[Backlog]] = field(default_factory=dict)
    silent: dict[TrialKey, str] = field(default_factory=dict)

    def means(self, place: TrialKey) -> list[float]:
        """Mean waits of the trials at a place."""
        return [MEASURES["mean_s"](outcome) for outcome in self.outcomes.get(place, ())]

    def sunk(self, place: TrialKey) -> list[float]:
        """Mean waits up to the sinks behind an output, if there are any."""
        return [float(outcome.sunk.mean()) for outcome in self.outcomes.get(place, ()) if outcome.sunk is not None]


def comparison_figures(found: TrialFigures, rate: float) -> dict[str, float | Spread]:
    """Figures of all sides at one rate."""
    figures: dict[str, float | Spread] = {}
    for place, outcomes in sorted(found.outcomes.items()):
        if place.rate != rate:
            continue
        if place.side in ("queries", "foreach"):
            own = TrialKey(place.queries, place.sink, rate, "freshet")
            end = "" if place.sink == "parquet" else f"_{place.sink}"
            for name, ours in {"latency": found.means(own), "sunk": found.sunk(own)}.items():
                if ours:
                    figures[f"{name}_gain_vs_{place.side}_{place.queries}{end}"] = over(
                        found.means(place), ours, paired=False
                    )
        if place.side == "floor" and (means := found.means(replace(place, side="freshet"))):
            figures[f"latency_vs_floor_{place.queries}"] = over(means, found.means(place), paired=False)
        figures |= outcome_figures(place.name, outcomes)
    return figures


def outcome_figures(name: str, outcomes: Sequence[TrialOutcome]) -> dict[str, float | Spread]:
    """Figures of trials at a place."""
    figures: dict[str, float | Spread] = {
        f"{measure}_{name}": extremes([value(outcome) for outcome in outcomes]) for measure, value in MEASURES.items()
    }
    sunk = [float(outcome.sunk.mean()) for outcome in outcomes if outcome.sunk is not None]
    if sunk:
        figures[f"sunk_mean_s_{name}"] = extremes(sunk)
    if checked := sum(outcome.checked for outcome in outcomes):
        figures[f"rows_checked_{name}"] = checked
    return figures


def load_figures(
    found: TrialFigures, queries: int, sinks: Sequence[str], rate: float, compared: float
) -> dict[str, float | Spread]:
    """Figures of many queries at rates other than the one at which all sides were compared; ``rate`` was the first of
    them. Names without a suffix are of the first kind of sink."""
    figures: dict[str, float | Spread] = {}
    for sink in sinks:
        end = "" if sink == sinks[0] else f"_{sink}"
        own = {
            place.rate: outcomes
            for place, outcomes in found.outcomes.items()
            if (place.queries, place.sink, place.side) == (queries, sink, "freshet")
        }
        if rate in own:
            kept = [each for each, outcomes in own.items() if all(outcome.kept_up for outcome in outcomes)]
            figures[f"rows_per_s_{queries}{end}"] = max(kept, default=0.0)
            figures[f"latency_s_{queries}{end}"] = extremes([MEASURES["mean_s"](each) for each in own[rate]])
    for place, outcomes in sorted(found.outcomes.items()):
        if place.queries == queries and place.rate != compared:
            figures |= outcome_figures(f"{place.name}_{place.rate:g}", outcomes)
    return figures


def floor_figures(found: TrialFigures, queries: int) -> dict[str, float | Spread]:
    """CPU time for waiting trains, against that of the floor."""
    ours, floor = (found.backlogs.get((side, queries), []) for side in ("freshet", "floor"))
    if not ours or not floor:
        return {}

    def per_million(backlog: Backlog, seconds: float) -> float:
        return seconds / (backlog.rows * queries / 1e6)

    def spent(backlog: Backlog) -> float:
        return per_million(backlog, backlog.answering.total + backlog.taking_in.total)

    figures: dict[str, float | Spread] = {
        f"cpu_vs_floor_{queries}": over([spent(each) for each in ours], [spent(each) for each in floor], paired=False),
        f"backlog_cpu_s_per_million_floor_{queries}": extremes([spent(each) for each in floor]),
        f"backlog_cpu_s_per_million_freshet_{queries}": extremes([spent(each) for each in ours]),
        f"backlog_rows_per_s_freshet_{queries}": extremes([each.rows / each.seconds for each in ours]),
        f"backlog_rows_per_s_floor_{queries}": extremes([each.rows / each.seconds for each in floor]),
    }
    for part in ("driver", "jvm", "workers"):
        figures[f"backlog_cpu_s_per_million_{part}_{queries}"] = extremes(
            [per_million(each, getattr(each.answering, part)) for each in ours]
        )
    figures[f"backlog_cpu_s_per_million_taking_in_{queries}"] = extremes(
        [per_million(each, each.taking_in.total) for each in ours]
    )
    return figures
