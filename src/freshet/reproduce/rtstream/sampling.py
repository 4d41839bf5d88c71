"""How far off samples are: windows through the compiled kernels, again and again (RT §5.1, Fig. 8-9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from freshet.kernels.superbox.superbox import Superbox
from freshet.model import ARRIVAL, Filter
from freshet.quality.periodic import OperatorCost, PlanStep, PlanTime

_COSTS: Final = {"select": 0.2e-6, "join": 5e-6, "sum": 0.4e-6}
"""Seconds per tuple, within the ranges of RT Table 1."""
_PLANS: Final = {"select": ("select",), "join-sum": ("join", "sum"), "select-join-sum": ("select", "join", "sum")}


@dataclass(frozen=True, slots=True)
class SamplingRun:
    """Samples of many windows.

    Args:
        plan: The query: a selection, a join with a table and an aggregate (RT Fig. 1), or all three.
        rows: Tuples of a window.
        share: Selectivity of the operators.
        sampled: Share of what enters its first operator that is sampled.
        behind: Share of what enters the later operators that is sampled.
        windows: Number of windows.
    """

    plan: Literal["select", "join-sum", "select-join-sum"] = "select"
    rows: int = 1000
    share: float = 0.2
    sampled: float = 0.1
    behind: float = 0.1
    windows: int = 400
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SamplingErrors:
    """Root mean square errors of what samples say.

    Args:
        selectivity: Absolute error of the selectivity of the first operator.
        relative: The same, relative to the selectivity.
        time: Relative error of the time of the query.
    """

    selectivity: float
    relative: float
    time: float


def sampling_errors(run: SamplingRun) -> SamplingErrors:
    """Samples windows at random without replacement, and compares with what all of their tuples give."""
    random = np.random.default_rng([run.seed, run.rows, round(run.share * 1000)])
    names = _PLANS[run.plan]
    boxes = {name: Superbox(((Filter(name, f"{name}_by < {run.share}"),),), _schema(names)) for name in names}
    shares, times = [], []
    for _ in range(run.windows):
        columns = {f"{name}_by": random.random(run.rows) for name in names}
        window = pa.table({**columns, ARRIVAL: np.arange(run.rows)})
        true, found = (_passed(boxes, window, *sizes, random) for sizes in ((1.0, 1.0), (run.sampled, run.behind)))
        guessed = {name: true[name] if share is None else share for name, share in found.items()}
        first = true[names[0]] or 0.0
        shares.append(((guessed[names[0]] or 0.0) - first, first))
        times.append(_seconds(guessed, run.rows) / _seconds(true, run.rows) - 1.0)
    errors = np.array([error for error, _ in shares])
    relative = errors / np.array([max(share, 1.0 / run.rows) for _, share in shares])
    return SamplingErrors(_rms(errors), _rms(relative), _rms(np.array(times)))


def _passed(
    boxes: Mapping[str, Superbox], table: pa.Table, first: float, later: float, random: np.random.Generator
) -> dict[str, float | None]:
    """The selectivity of each operator over a sample of what enters it; None: nothing did."""
    found: dict[str, float | None] = {}
    for name, box in boxes.items():
        share = later if found else first
        # Operators behind the first see what passed its sample: of that they take all, unless they should see less.
        share = min(1.0, share / first) if found else share
        size = max(1, round(share * table.num_rows)) if table.num_rows else 0
        rows = table.take(np.sort(random.choice(table.num_rows, size, replace=False))) if size else table
        kept = box.begin(rows)[0].finish({}).table if size else rows
        found[name] = kept.num_rows / size if size else None
        table = kept if isinstance(kept, pa.Table) else pa.Table.from_batches([kept])
    return found


def _seconds(shares: Mapping[str, float | None], rows: int) -> float:
    steps, source = [], "window"
    for name, share in shares.items():
        steps.append(PlanStep(name, (source,), OperatorCost.given([_COSTS[name]], 0.0), share or 0.0))
        source = name
    return PlanTime(tuple(steps)).seconds({"window": rows})


def _schema(names: tuple[str, ...]) -> pa.Schema:
    return pa.schema([*((f"{name}_by", pa.float64()) for name in names), (ARRIVAL, pa.int64())])


def _rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def seeded(run: SamplingRun, seeds: Sequence[int]) -> list[SamplingRun]:
    """The same run once for each seed."""
    return [replace(run, seed=seed) for seed in seeds]
