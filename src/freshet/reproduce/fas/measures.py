"""What the claims of FAS are made of: measures of runs, and ratios of them seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from freshet.reproduce.fas.runs import (
    HIGH,
    PLAIN,
    POLICIES,
    READINGS,
    FasRun,
    Interpretation,
    base,
    for_seeds,
    seeded,
    simulate,
)
from freshet.reproduce.registry import Measured
from freshet.reproduce.trial import Trial
from freshet.simulation.outcome import SimulationOutcome
from freshet.simulation.workloads.fas import FasWorkload

Measure = Callable[[SimulationOutcome], float]


def staleness(outcome: SimulationOutcome) -> float:
    """Mean staleness of all outputs."""
    return outcome.staleness


def response(outcome: SimulationOutcome) -> float:
    """Mean response time of all output tuples."""
    return outcome.response


def ratios(trial: Trial, above: FasRun, below: FasRun, measure: Measure = staleness) -> list[float]:
    """A measure of one run over that of another, for each seed; equal seeds have equal tuples."""
    pairs = zip(for_seeds(trial, above), for_seeds(trial, below), strict=True)
    return [measure(one) / measure(other) for one, other in pairs]


def gains(trial: Trial, workload: FasWorkload, reading: Interpretation = PLAIN) -> list[float]:
    """The share by which FAS-MCQ reduces the staleness of RB-MCQ, for each seed."""
    runs = FasRun(workload, "fas", reading=reading), FasRun(workload, "rb", reading=reading)
    return [1.0 - ratio for ratio in ratios(trial, *runs)]


def by_reading(trial: Trial, measure: Callable[[Interpretation], list[float]]) -> Measured:
    """The plain reading, and in quick mode all others: which one is taken does not depend on the size."""
    readings = {str(reading): measure(reading) for reading in (READINGS if trial.quick else (PLAIN,))}
    return Measured(readings[str(PLAIN)], readings)


def gains_by_reading(trial: Trial, workload: FasWorkload) -> Measured:
    """The gain in the plain reading, and in others."""
    if trial.quick:
        runs = [FasRun(workload, policy, reading=reading) for reading in READINGS for policy in POLICIES[:2]]
        trial.map(simulate, seeded(trial, runs))
    found = by_reading(trial, lambda reading: gains(trial, workload, reading=reading))
    whole = gains(trial, replace(workload, of_query=True))
    return replace(found, readings={**found.readings, "selectivities of whole queries": whole})


def at(trial: Trial, utilization: float = HIGH) -> FasWorkload:
    """The default setting at a utilization."""
    return replace(base(trial), utilization=utilization)


def worst(each: Iterable[Sequence[float]], choose: Callable[[Iterable[float]], float] = max) -> list[float]:
    """The worst value of several settings, for each seed."""
    return [choose(values) for values in zip(*each, strict=True)]


def differences(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Differences, seed by seed."""
    return [a - b for a, b in zip(one, other, strict=True)]
