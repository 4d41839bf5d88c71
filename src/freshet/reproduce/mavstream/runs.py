"""The simulations behind the claims of MAV §5: which load, which strategy, what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from freshet.engine import Optimizer, RunMemory
from freshet.model import Expectations, Promises
from freshet.policies import Everything
from freshet.quality.optimizer import LookSettings, MeasureLook, StrategyState
from freshet.reproduce.trial import Trial
from freshet.simulation.outcome import Floats
from freshet.simulation.workloads.mavstream import FEW, QUERY, RATES, STREAMS, TUPLE_BYTES, MavWorkload
from freshet.simulation.world import World

Wish = Literal["latency", "latency, dont-care memory", "latency and memory"]
"""What is expected: Fig. 5-6, Fig. 7-8, Fig. 9-10."""
MavLoad = tuple[float, bool]
"""Mean work that arrives per second, in seconds, and whether streams have bursts."""

LOADS: Final = ((0.95, False), (1.1, False), (1.3, False), (0.9, True))
"""Loads that are swept, and whether streams have bursts: the paper does not say which load it had."""
LOAD: Final = (1.1, False)
"""The one that decides Fig. 5-6 and 9-10: rates are constant, so only an overload brings latencies of 500 ms."""
BURSTS: Final = ((0.9, True), (1.1, True))
"""Those of Fig. 7-8, where rates double now and then; the first decides."""
STRATEGIES: Final = ("pcs", "simplified-segment", "segment")
"""Those of MAV §5. The decision table also has round robin, which ranks below Simplified Segment in everything."""
FIRST: Final = "segment"
"""The optimizer begins with the worst strategy for latency (MAV §5)."""
EVERY: Final = 3.0
"""Seconds between looks (MAV §5)."""
LATENCY: Final = 0.5
"""Expected seconds (MAV §5)."""
MEMORY: Final = (10e6, 1e6)
"""Expected bytes, before the change and after it (MAV §5)."""
BURST_S: Final = 5.0
"""Seconds of a burst, of which there is one every 20 s."""
TRAIN_S: Final = 0.1
"""A train holds the tuples of this many seconds. Without a bound no strategy could prefer anything."""


@dataclass(frozen=True, slots=True)
class MavRun:
    """One simulation.

    Args:
        bed: The query and its streams.
        wish: What is expected.
        change: When less memory is expected, in seconds.
        strategy: The strategy that the query keeps; None: the optimizer chooses.
    """

    bed: MavWorkload
    wish: Wish
    change: float
    strategy: str | None = None

    @property
    def expected(self) -> Expectations:
        """What is expected of the query. Memory is scaled with the rates."""
        given: dict[str, Any] = {"latency": {"class": "must", "points": LATENCY}}
        if self.wish != "latency":
            before, after = (size * self.bed.scale for size in MEMORY)
            kind = "must" if self.wish == "latency and memory" else "dont-care"
            points = [(0.0, before), (self.change, before), (self.change, after)]
            given["memory"] = {"class": kind, "points": points}
        return Expectations.parse(given)


@dataclass(frozen=True, slots=True)
class MavSwitch:
    """A change of the strategy: when, to which, and the measures that were violated."""

    time: float
    to: str
    violated: frozenset[str]


@dataclass(frozen=True, slots=True)
class MavResult:
    """What came of a simulation, by look.

    Args:
        times: When the looks were.
        latency: Mean seconds of the answers since the look before; NaN: there were none.
        observed: Latency as the monitor sees it: at least the age of the oldest waiting tuple.
        memory: Mean bytes in queues since the look before.
        strategies: The strategy of the interval before each look.
        violated_s: Seconds of intervals in which a measure was violated, summed up over the measures. The latency is
            that of the answers, as in the paper.
        watched_s: The same with the latency that the monitor sees.
        switches: Changes of the strategy.
        answers: Mean seconds of all answers.
    """

    times: tuple[float, ...]
    latency: tuple[float, ...]
    observed: tuple[float, ...]
    memory: tuple[float, ...]
    strategies: tuple[str, ...]
    violated_s: float
    watched_s: float
    switches: tuple[MavSwitch, ...]
    answers: float

    def mean(self, what: Literal["latency", "observed", "memory"], since: float = 0.0) -> float:
        """The mean of a figure over the looks after some time."""
        values = [value for time, value in zip(self.times, getattr(self, what), strict=True) if time > since]
        return float(np.nanmean(values))


def simulate(run: MavRun) -> MavResult:
    """Runs the query under a fixed strategy or under the optimizer, which looks at both."""
    bed, memory = run.bed, RunMemory()
    optimizer = Optimizer(settings=LookSettings(every=EVERY), memory=memory)
    if run.strategy is None:
        memory.states[QUERY] = StrategyState(FIRST)
    else:
        optimizer.pin(QUERY, run.strategy)
    world = World(
        bed.streams_of(),
        [bed.query_of(Promises(expect=run.expected))],
        Everything(),
        most_rows=max(1, round(TRAIN_S * bed.scale * sum(bed.rates))),
        seed=bed.seed,
        sizes=dict.fromkeys(STREAMS, TUPLE_BYTES),
        optimizer=optimizer,
    )
    world.run(until=bed.seconds)
    return _result(memory, *world.departed()[QUERY])


def _result(memory: RunMemory, arrivals: Floats, departures: Floats) -> MavResult:
    looks = memory.looks[QUERY]
    times = [look.time for look in looks]
    seen = [{each.measure: each for each in look.measures} for look in looks]
    ends = np.searchsorted(departures, times, side="right")
    waits = departures - arrivals
    parts = [waits[first:end] for first, end in zip((0, *ends), ends, strict=False)]
    spans = np.diff(times, prepend=0.0)
    latency = [float(part.mean()) if len(part) else float("nan") for part in parts]
    late = np.array(latency) > LATENCY
    missed = {name: np.array([name in look and look[name].missed for look in seen]) for name in ("latency", "memory")}
    switches = [
        MavSwitch(look.time, look.to, frozenset(each.measure for each in look.measures if each.violated))
        for look in looks
        if look.switches and look.applied
    ]
    return MavResult(
        tuple(times),
        tuple(latency),
        tuple(_figure(look, "latency") for look in seen),
        tuple(_figure(look, "memory") for look in seen),
        tuple(look.strategy for look in looks),
        float(spans @ late + spans @ missed["memory"]),
        float(spans @ missed["latency"] + spans @ missed["memory"]),
        tuple(switches),
        float(waits.mean()),
    )


def _figure(look: Mapping[str, MeasureLook], measure: str) -> float:
    seen = look.get(measure)
    return float("nan") if seen is None or seen.observed is None else seen.observed


def bed(trial: Trial, load: MavLoad, seed: int = 0, rates: tuple[float, ...] = RATES) -> MavWorkload:
    """The testbed at a load: a fiftieth of the rates for a minute, or the paper's rates for as long as it ran."""
    seconds, scale = (60.0, 0.02) if trial.quick else (1000.0, 1.0)
    return MavWorkload(load[0], seconds, rates, scale, burst_s=BURST_S if load[1] else 0.0, seed=seed)


def runs(
    trial: Trial, wish: Wish, load: MavLoad, strategy: str | None = None, rates: tuple[float, ...] = RATES
) -> list[MavResult]:
    """One simulation for each seed. The first call makes all simulations of the paper, in as many processes as there
    may be."""
    trial.map(simulate, _all(trial))
    return trial.map(simulate, _seeded(trial, wish, load, strategy, rates))


def _seeded(trial: Trial, wish: Wish, load: MavLoad, strategy: str | None, rates: tuple[float, ...]) -> list[MavRun]:
    # What a fixed strategy does depends on no expectation: one run serves all figures.
    wish = "latency and memory" if strategy is not None else wish
    beds = [bed(trial, load, seed, rates) for seed in trial.seeds]
    return [MavRun(each, wish, change(trial), strategy) for each in beds]


def _all(trial: Trial) -> list[MavRun]:
    """Every simulation of Fig. 5-6 and 9-10, then those of Fig. 7-8."""
    both: tuple[Wish, ...] = ("latency", "latency and memory")
    found = [_seeded(trial, wish, load, None, RATES) for load in LOADS for wish in both]
    found += [_seeded(trial, both[1], load, strategy, RATES) for load in LOADS for strategy in STRATEGIES]
    few: tuple[Wish, ...] = ("latency", "latency, dont-care memory")
    found += [_seeded(trial, wish, load, None, FEW) for load in BURSTS for wish in few]
    return [run for each in found for run in each]


def change(trial: Trial) -> float:
    """When less memory is expected: in the middle (MAV §5: after 500 s)."""
    return bed(trial, LOAD).seconds / 2.0
