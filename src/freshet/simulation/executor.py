"""An executor that charges costs to a virtual clock instead of working."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa

from freshet.engine import Clock
from freshet.model import Chain, ChainResult, Input, Network, OperatorRun, SegmentFile, Train, Unit, UnitResult
from freshet.simulation.charge import Charge
from freshet.simulation.draws import Draws
from freshet.simulation.log import SimulatedLog, Tuples


@dataclass(frozen=True, slots=True)
class Profile:
    """What an operator costs (seconds per tuple) and lets through (tuples out per tuple in, at most 1)."""

    cost: float
    selectivity: float = 1.0


class SimulatedExecutor:
    """Runs units in simulated time: a step costs its overhead, then each tuple passes the whole chain in turn.

    Whether an operator lets a tuple through is drawn once per (seed, operator, place of the tuple in its source
    stream), so that answers do not depend on the schedule, and runs repeat exactly.

    Args:
        log: Where the tuples wait.
        clock: The virtual clock.
        profiles: Cost and selectivity by operator name.
        overhead: Seconds that each unit costs before it touches a tuple.
        slots: Units that may run at once.
        seed: Of the draws.
        charge: What the scheduler's own operations cost; it delays each unit.
        together: Whether all tuples of a unit depart at its end, as on Spark, where they depart with the commit.
    """

    alone: AbstractSet[str] = frozenset()

    def __init__(
        self,
        log: SimulatedLog,
        clock: Clock,
        profiles: Mapping[str, Profile],
        *,
        overhead: float = 0.0,
        slots: int = 1,
        seed: int = 0,
        charge: Charge | None = None,
        together: bool = False,
    ) -> None:
        self._log, self._clock = log, clock
        self._profiles, self._overhead, self._seed = profiles, overhead, seed
        self.slots = slots
        self._costs: list[float] = []
        self._draws: list[Draws | None] = []
        self._charge = charge
        self._together_at_end = together
        self._heap: list[tuple[float, int, UnitResult]] = []
        self._order = count()

    def install(
        self, network: Network, schemas: Mapping[str, pa.Schema], fail_on_error: AbstractSet[str]
    ) -> Mapping[str, pa.Schema]:
        """Takes note of the operators; simulated tuples have no columns."""
        for node in network.nodes[len(self._draws) :]:
            profile = self._profiles[node.operator.name]
            self._costs.append(profile.cost)
            passes_all = profile.selectivity >= 1.0
            self._draws.append(None if passes_all else Draws(self._seed, node.name, profile.selectivity))
        return {query: pa.schema([]) for query in network}

    def states(self, fold: str) -> int:
        """Simulated operators remember nothing."""
        return 0

    def way(self, nodes: Collection[int]) -> str:
        """All units have the same overhead."""
        return "simulated"

    def submit(self, unit: Unit) -> None:
        """Works out what the unit will have done, and when."""
        started = self._clock.now()
        overhead = self._overhead + (self._charge.due() if self._charge else 0.0)
        moment = started + overhead
        results: list[ChainResult] = []
        given: list[Tuples] = []
        for chain in unit.chains:
            tuples = self._together([self._tuples(each, given) for each in chain.inputs])
            result, alive, moment = self._run(chain, tuples, moment)
            results.append(result)
            given.append(alive)
        written = [
            (stream, tuples) for chain, tuples in zip(unit.chains, given, strict=True) for stream in chain.writes
        ]
        finished = UnitResult(unit, started, moment, tuple(results), self._stage(unit.id, written), overhead)
        heapq.heappush(self._heap, (moment, next(self._order), finished))

    def _stage(self, unit: str, written: Sequence[tuple[str, Tuples]]) -> tuple[SegmentFile, ...]:
        some = [(stream, tuples) for stream, tuples in written if len(tuples[0])]
        for stream, tuples in some:
            self._log.stage(unit, stream, tuples)
        members = tuple((stream, len(tuples[0]), 0, 0, 0, 0) for stream, tuples in some)
        return (SegmentFile(unit, 0, members),) if members else ()

    def _tuples(self, each: Input, given: Sequence[Tuples]) -> Tuples:
        return self._log.tuples(each) if isinstance(each, Train) else given[each]

    def _together(self, inputs: Sequence[Tuples]) -> Tuples:
        if len(inputs) == 1:
            return inputs[0]
        return np.concatenate([arrivals for arrivals, _ in inputs]), np.concatenate([origins for _, origins in inputs])

    def _run(self, chain: Chain, tuples: Tuples, moment: float) -> tuple[ChainResult, Tuples, float]:
        arrivals, origins = tuples
        rows = len(arrivals)
        service = np.zeros(rows)
        alive = np.arange(rows)
        runs = []
        for number in chain.nodes:
            cost, draws = self._costs[number], self._draws[number]
            service[alive] += cost
            entered = len(alive)
            if draws is not None:
                alive = alive[draws.passes(origins[alive])]
            runs.append(OperatorRun(number, entered, len(alive), entered * cost))
        departures = moment + np.cumsum(service)
        own = None if self._together_at_end else departures[alive]
        result = ChainResult(chain, len(alive), tuple(runs), arrivals[alive], own)
        return result, (arrivals[alive], origins[alive]), float(departures[-1]) if rows else moment

    def finished(self) -> Sequence[UnitResult]:
        """Units that are finished by now."""
        results = []
        while self._heap and self._heap[0][0] <= self._clock.now():
            results.append(heapq.heappop(self._heap)[2])
        return results

    def next_finish(self) -> float | None:
        """When the next unit finishes."""
        return self._heap[0][0] if self._heap else None

    def cancel(self, unit: str) -> None:
        """Gives a unit up: its time until now is lost, its trains go back."""
        kept = []
        for moment, order, result in self._heap:
            if result.unit.id == unit:
                now = self._clock.now()
                kept.append((now, order, UnitResult(result.unit, result.started, now, retry="cancelled")))
            else:
                kept.append((moment, order, result))
        heapq.heapify(kept)
        self._heap = kept

    def close(self) -> None:
        """Nothing to stop."""
