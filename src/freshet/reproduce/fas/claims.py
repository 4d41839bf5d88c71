"""The claims of FAS: figures 3 to 10, the knob beta, and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from freshet.reproduce.fas.runs import (
    BETAS,
    BURSTY,
    HIGH,
    PLAIN,
    POLICIES,
    READINGS,
    SKEWS,
    TRACE_UTILIZATIONS,
    UTILIZATIONS,
    FasPolicy,
    FasRun,
    Interpretation,
    base,
    for_seeds,
    on_traces,
    seeded,
    simulate,
)
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.simulation.outcome import SimulationOutcome
from freshet.simulation.workloads.fas import FasWorkload
from freshet.simulation.workloads.traces import trace_folder

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


def gains_by_reading(trial: Trial, workload: FasWorkload) -> Measured:
    """The gain in the plain reading, and in all other readings."""
    runs = [FasRun(workload, policy, reading=reading) for reading in READINGS for policy in POLICIES[:2]]
    trial.map(simulate, seeded(trial, runs))
    readings = {str(reading): gains(trial, workload, reading=reading) for reading in READINGS}
    return Measured(readings[str(READINGS[0])], readings)


def at(trial: Trial, utilization: float = HIGH) -> FasWorkload:
    """The default setting at a utilization."""
    return replace(base(trial), utilization=utilization)


def worst(each: Iterable[Sequence[float]], choose: Callable[[Iterable[float]], float] = max) -> list[float]:
    """The worst value of several settings, for each seed."""
    return [choose(values) for values in zip(*each, strict=True)]


@claim(
    "fas.fig3.fas-below-rb",
    source="FAS §7.1, Fig. 3",
    published="below 1 at every utilization",
    how="staleness of FAS-MCQ over that of RB-MCQ, worst utilization from 0.1 to 0.99",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    beds = [at(trial, utilization) for utilization in UTILIZATIONS]
    return Measured(worst(ratios(trial, FasRun(bed, "fas"), FasRun(bed, "rb")) for bed in beds))


@claim(
    "fas.fig3.rb-below-rr-and-fcfs",
    source="FAS §7.1, Fig. 3",
    published="below 1 at every utilization",
    how="staleness of RB-MCQ over the lower one of RR and FCFS, worst utilization from 0.1 to 0.99",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    beds = [at(trial, utilization) for utilization in UTILIZATIONS]
    return Measured(
        worst(ratios(trial, FasRun(bed, "rb"), FasRun(bed, policy)) for bed in beds for policy in POLICIES[2:])
    )


@claim(
    "fas.fig3.grows-with-load",
    source="FAS §7.1, Fig. 3",
    published="staleness rises with utilization",
    how="staleness at a utilization over that at the next lower one, minimum over utilizations and policies",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    pairs = zip(UTILIZATIONS[1:], UTILIZATIONS[:-1], strict=True)
    return Measured(
        worst(
            (
                ratios(trial, FasRun(at(trial, high), policy), FasRun(at(trial, low), policy))
                for high, low in pairs
                for policy in POLICIES
            ),
            min,
        )
    )


@claim(
    "fas.fig3.gain-at-0.1",
    source="FAS §7.1, Fig. 3",
    published=0.30,
    how="share by which FAS-MCQ reduces the staleness of RB-MCQ at utilization 0.1; accepted if it is a reduction",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    return gains_by_reading(trial, at(trial, 0.1))


@claim(
    "fas.fig3.gain-at-0.95",
    source="FAS §7.1, Fig. 3",
    published=0.40,
    how="share by which FAS-MCQ reduces the staleness of RB-MCQ at utilization 0.95; accepted if it is a reduction",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    return gains_by_reading(trial, at(trial))


@claim(
    "fas.fig3.gain-grows",
    source="FAS §7.1, Fig. 3",
    published=0.10,
    how="the gain over RB-MCQ at utilization 0.95 minus that at 0.1",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    def growth(reading: Interpretation) -> list[float]:
        pairs = zip(
            gains(trial, at(trial), reading=reading),
            gains(trial, at(trial, 0.1), reading=reading),
            strict=True,
        )
        return [high - low for high, low in pairs]

    readings = {str(reading): growth(reading) for reading in READINGS}
    return Measured(readings[str(READINGS[0])], readings)


@claim(
    "fas.fig4.rb-below-fas",
    source="FAS §7.1, Fig. 4",
    published="above 1",
    how="response time of FAS-MCQ over that of RB-MCQ, minimum over utilizations from 0.1 to 0.99",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    beds = [at(trial, utilization) for utilization in UTILIZATIONS]
    return Measured(worst((ratios(trial, FasRun(bed, "fas"), FasRun(bed, "rb"), response) for bed in beds), min))


@claim(
    "fas.fig4.rise-at-0.95",
    source="FAS §7.1, Fig. 4",
    published=0.23,
    how="share by which FAS-MCQ raises the response time of RB-MCQ at utilization 0.95; accepted if it is a rise",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    readings = {}
    for reading in READINGS:
        runs = (FasRun(at(trial), "fas", reading=reading), FasRun(at(trial), "rb", reading=reading))
        readings[str(reading)] = [ratio - 1.0 for ratio in ratios(trial, *runs, response)]
    return Measured(readings[str(READINGS[0])], readings)


def along_beta(trial: Trial, measure: Measure) -> list[list[float]]:
    """A measure at each beta over that at the next lower beta, at utilization 0.95."""
    runs = [FasRun(at(trial), "fas", beta) for beta in BETAS]
    return [ratios(trial, high, low, measure) for high, low in zip(runs[1:], runs[:-1], strict=True)]


@claim(
    "fas.fig5.response-rises-with-beta",
    source="FAS §7.2, Fig. 5",
    published="rises with beta",
    how="response time at a beta over that at the next lower one (0 to 1 by 0.25), minimum, utilization 0.95",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(worst(along_beta(trial, response), min))


@claim(
    "fas.fig6.staleness-falls-with-beta",
    source="FAS §7.2, Fig. 6",
    published="falls with beta",
    how="staleness at a beta over that at the next lower one (0 to 1 by 0.25), maximum, utilization 0.95",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(worst(along_beta(trial, staleness), max))


def position(trial: Trial, measure: Measure) -> list[float]:
    """Where beta = 0.25 lies between RB-MCQ (0) and FAS-MCQ (1)."""
    runs = [FasRun(at(trial), "rb"), FasRun(at(trial), "fas", 0.25), FasRun(at(trial), "fas")]
    triples = zip(*(for_seeds(trial, run) for run in runs), strict=True)
    return [(measure(middle) - measure(rate)) / (measure(fas) - measure(rate)) for rate, middle, fas in triples]


@claim(
    "fas.fig7.beta-0.25-staleness",
    source="FAS §7.2, Fig. 7",
    published=0.5,
    how="staleness of FAS-MCQ(0.25) on the way from RB-MCQ (0) to FAS-MCQ (1), utilization 0.95 (20 % of 40 %)",
    low=0.0,
    high=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(position(trial, staleness))


@claim(
    "fas.fig7.beta-0.25-response",
    source="FAS §7.2, Fig. 7",
    published=0.61,
    how="response time of FAS-MCQ(0.25) on the way from RB-MCQ (0) to FAS-MCQ (1), utilization 0.95 (14 % of 23 %)",
    low=0.0,
    high=1.0,
)
def _(trial: Trial) -> Measured:
    return Measured(position(trial, response))


@claim(
    "fas.beta-0-is-rb",
    source="FAS §5.2, Eq. 15",
    published=0.0,
    how="greatest difference between FAS-MCQ(0) and RB-MCQ in staleness of any query and in response time",
    low=0.0,
    high=0.0,
)
def _(trial: Trial) -> Measured:
    pairs = zip(for_seeds(trial, FasRun(at(trial), "fas", 0.0)), for_seeds(trial, FasRun(at(trial), "rb")), strict=True)
    return Measured([_difference(one, other) for one, other in pairs])


def _difference(one: SimulationOutcome, other: SimulationOutcome) -> float:
    queries = (abs(one.by_query[name] - other.by_query[name]) for name in one.by_query)
    return max(*queries, abs(one.response - other.response))


def skewed(trial: Trial, zipf: float) -> FasWorkload:
    """Equal costs and a skew of selectivities, utilization 0.95."""
    return replace(at(trial), equal_costs=True, zipf=zipf)


@claim(
    "fas.fig8.staleness-rises-with-skew",
    source="FAS §7.3, Fig. 8",
    published="rises",
    how="staleness at Zipf parameter 2 over that at 0, minimum over the policies, equal costs, utilization 0.95",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    high, low = skewed(trial, SKEWS[-1]), skewed(trial, SKEWS[0])
    return Measured(worst((ratios(trial, FasRun(high, name), FasRun(low, name)) for name in POLICIES), min))


@claim(
    "fas.fig8.gain-grows-with-skew",
    source="FAS §7.3, Fig. 8",
    published=0.15,
    how="gain over RB-MCQ at Zipf parameter 2 minus that at 0, equal costs, utilization 0.95 (0.55 and 0.40 published)",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    pairs = zip(gains(trial, skewed(trial, SKEWS[-1])), gains(trial, skewed(trial, SKEWS[0])), strict=True)
    values = [high - low for high, low in pairs]
    by_skew = {f"gain at Zipf {zipf:g}": gains(trial, skewed(trial, zipf)) for zipf in SKEWS}
    return Measured(values, by_skew)


@claim(
    "fas.fig9.gain-largest-in-between",
    source="FAS §7.4, Fig. 9",
    published=0.18,
    how="largest gain over RB-MCQ at 2 to 8 of 10 streams bursty minus that at 0 or 10, the larger, utilization 0.95 "
    "(0.40 at 5 and 0.22 at 10 published)",
    low=0.0,
)
def _(trial: Trial) -> Measured:
    by_count = {count: gains(trial, replace(at(trial), bursty=count)) for count in BURSTY}
    between = worst((values for count, values in by_count.items() if count not in (0, 10)), max)
    ends = worst((by_count[0], by_count[10]), max)
    values = [middle - end for middle, end in zip(between, ends, strict=True)]
    return Measured(values, {f"gain with {count} bursty": gain for count, gain in by_count.items()})


@claim(
    "fas.fig10.fas-below-rb",
    source="FAS §7.5, Fig. 10",
    published="below 1 at every utilization",
    how="staleness of FAS-MCQ over that of RB-MCQ on real traces, worst utilization from 0.1 to 0.95",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    return _ranking_on_traces(trial, "fas", ["rb"])


@claim(
    "fas.fig10.rb-below-rr-and-fcfs",
    source="FAS §7.5, Fig. 10",
    published="below 1 at every utilization",
    how="staleness of RB-MCQ over the lower one of RR and FCFS on real traces, worst utilization from 0.1 to 0.95",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    return _ranking_on_traces(trial, "rb", ["rr", "fcfs"])


def _ranking_on_traces(trial: Trial, better: FasPolicy, others: Sequence[FasPolicy]) -> Measured:
    if trace_folder() is None:
        return Measured((), skipped="the traces are not there (shared/data beside the project)")
    beds = [replace(on_traces(trial), utilization=utilization) for utilization in TRACE_UTILIZATIONS]
    by_setting = {
        f"{better} over {other} at {bed.utilization:g}": ratios(trial, FasRun(bed, better), FasRun(bed, other))
        for bed in beds
        for other in others
    }
    return Measured(worst(by_setting.values()), by_setting)


@claim(
    "fas.weights.heavy-queries-gain",
    source="FAS §4.4, Eq. 12",
    published="below 1",
    how="weighted staleness with weights over that without, half of the queries with weight 0.1, utilization 0.95",
    high=1.0,
)
def _(trial: Trial) -> Measured:
    bed = replace(at(trial), light_weight=0.1)
    runs = FasRun(bed, "fas"), FasRun(bed, "fas", weighted=False)
    return Measured(ratios(trial, *runs, lambda outcome: outcome.weighted_staleness))
