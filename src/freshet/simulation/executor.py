"""An executor that charges costs to a virtual clock instead of working."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import count
from statistics import fmean
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshet.engine import Clock
from freshet.kernels.in_parts import LITTLE, first_share, next_share, timing_of
from freshet.kernels.keeping import kept_mask
from freshet.model import (
    Chain,
    ChainResult,
    Input,
    Network,
    NetworkNode,
    OperatorRun,
    SegmentFile,
    Train,
    Unit,
    UnitResult,
    UserError,
)
from freshet.model.promises.keep import Timing
from freshet.simulation.draws import Draws, PartnerAges
from freshet.simulation.log import SimulatedLog, Tuples, microseconds
from freshet.simulation.memory import FoldMemory, together
from freshet.simulation.pairs import PairDraws

EVERY: Final = 0.005
"""Seconds after which an instance looks how far it is (RT Table 2)."""
Departs = Literal["tuple", "box", "unit"]
"""When tuples leave a unit.

- ``tuple``: each tuple when it has passed all boxes of its chain, before the next one begins (FAS §2).
- ``box``: a box takes the whole train before the next box begins, and tuples leave the last one by one (CAR §3.3.2).
- ``unit``: all at the end, as on Spark, where they depart with the commit.
"""


@dataclass(frozen=True, slots=True)
class Profile:
    """What an operator does in simulated time.

    Args:
        cost: Seconds per tuple.
        selectivity: Tuples out per tuple in; above 1 some come more than once, as from a join.
        size: Bytes of a tuple that it gives out; None: as many as a tuple that it takes.
        lasts: Seconds for which it remembers a tuple, as joins and windows do; None: not at all.
        slide: Makes it a window. It gives out one row at each multiple of this many seconds at which it remembers
            something, as soon as no earlier tuple can come any more, and nothing else.
        out_cost: Seconds per tuple that it gives out (RT §4.1: C_i).
        pairs: Makes it a join of the tuples that come together, as in an instance of a periodic query. Its selectivity
            is per pair (RT §4.1.2): tuples have keys, of which there are as many as that asks for.

    >>> Profile(1e-6, 0.2).selectivity, Profile(1e-6, slide=10.0).lasts
    (0.2, 10.0)
    """

    cost: float
    selectivity: float = 1.0
    size: int | None = None
    lasts: float | None = None
    slide: float | None = None
    out_cost: float = 0.0
    pairs: bool = False

    def __post_init__(self) -> None:
        if self.cost < 0.0 or self.selectivity < 0.0:
            raise UserError(f"an operator of cost {self.cost} and selectivity {self.selectivity}: use 0 or more")
        if self.slide is not None and self.lasts is None:
            object.__setattr__(self, "lasts", self.slide)


@dataclass(frozen=True, slots=True)
class _Work:
    """An operator in its place."""

    name: str
    profile: Profile
    draws: Draws | PairDraws | None
    partners: PartnerAges | None = None
    """Of a join: how much older the partners of its tuples are."""
    valid: tuple[float, ...] = ()
    """Of a join: for each port, for how many seconds the tuples of the other ports are worth answering."""

    def paired(self, inputs: Sequence[Tuples]) -> Tuples:
        """The tuples that come in at all ports. A pair expires with the first of its two."""
        every = together(inputs)
        if self.partners is None:
            return every
        valid = np.repeat(self.valid, [len(each.arrivals) for each in inputs])
        partners = every.arrivals - self.partners.of(every.origins) + valid
        return every._replace(expiries=np.minimum(every.expiries, partners))


class SimulatedExecutor:
    """Runs units in simulated time. A unit costs its overhead; each box that gets tuples costs its call and theirs.

    Args:
        profiles: What operators do, by name.
        overhead: Seconds that each unit costs before it touches a tuple.
        call: Seconds that each call of a box costs: one for each operator of a unit to which tuples come.
        slots: Units that may run at once.
        seed: Of the :class:`~freshet.simulation.draws.Draws`.
        departs: When tuples leave a unit.
        validity: Seconds for which tuples are worth answering, by stream; by default for ever.
    """

    alone: AbstractSet[str] = frozenset()
    slow: AbstractSet[int] = frozenset()

    def __init__(
        self,
        log: SimulatedLog,
        clock: Clock,
        profiles: Mapping[str, Profile],
        *,
        overhead: float = 0.0,
        call: float = 0.0,
        slots: int = 1,
        seed: int = 0,
        departs: Departs = "tuple",
        validity: Mapping[str, float] | None = None,
    ) -> None:
        self._log, self._clock = log, clock
        self._validity = dict(validity or {})
        """Seconds for which the tuples of a stream or of an output are worth answering."""
        self._valid: dict[int, float] = {}
        """The same, of what operators give out."""
        self._profiles, self._overhead, self._call, self._seed = profiles, overhead, call, seed
        self.slots = slots
        self._departs = departs
        self._nodes: dict[int, NetworkNode] = {}
        self._works: dict[int, _Work] = {}
        self._behind: dict[int, int] = {}
        """Bytes of a tuple that each operator gives out."""
        self._heap: list[tuple[float, int, UnitResult]] = []
        self._order = count()

    def install(
        self, network: Network, schemas: Mapping[str, pa.Schema], fail_on_error: AbstractSet[str]
    ) -> Mapping[str, pa.Schema]:
        """Takes note of the operators; simulated tuples have no columns, only sizes."""
        for node in network.new_to(self._nodes):
            profile = self._profiles[node.operator.name]
            self._nodes[node.number] = node
            self._works[node.number] = self._work(node, profile)
            self._measure(node, profile)
        self._log.sizes.update({query: self._behind[network.root(query)] for query in network})
        self._validity.update({query: self._valid[network.root(query)] for query in network})
        return dict.fromkeys(network, pa.schema([]))

    def _work(self, node: NetworkNode, profile: Profile) -> _Work:
        valid = [
            self._validity.get(edge.stream, math.inf) if edge.source is None else self._valid[edge.source]
            for edge in node.queues
        ]
        self._valid[node.number] = min(valid)
        name, partners = node.operator.name, None
        if profile.lasts is not None and profile.slide is None and len(valid) > 1:
            partners = PartnerAges(self._seed, name, profile.lasts)
        others = tuple(min([*valid[:port], *valid[port + 1 :]], default=math.inf) for port in range(len(valid)))
        return _Work(name, profile, self._draws(node.name, profile), partners, others)

    def _draws(self, name: str, profile: Profile) -> Draws | PairDraws | None:
        if profile.pairs:
            return PairDraws(self._seed, name, profile.selectivity)
        return None if profile.selectivity == 1.0 else Draws(self._seed, name, profile.selectivity)

    def work(self, node: int) -> tuple[Profile, Draws | PairDraws | None]:
        """What an operator does."""
        return self._works[node].profile, self._works[node].draws

    def origins(self, stream: str, first: int, end: int) -> NDArray[np.int64]:
        """Where tuples of a stream come from."""
        return self._log.tuples(Train(stream, first, end)).origins

    def _measure(self, node: NetworkNode, profile: Profile) -> None:
        """Finds how large tuples are in front of an operator and behind it."""
        for edge in node.queues:
            if edge.source is not None:
                self._log.sizes[edge.stream] = self._behind[edge.source]
        size = profile.size if profile.size is not None else self._log.size(node.queues[0].stream)
        self._behind[node.number] = size

    def sizes(self, node: int) -> tuple[float, float]:
        """Bytes of a tuple in front of an operator, the mean over its inputs, and behind it: as declared."""
        return fmean(self._log.size(edge.stream) for edge in self._nodes[node].queues), self._behind[node]

    def parts(self, fold: str, now: int, rows: int, remembered: int) -> int:
        """Always one: simulated tuples have no keys."""
        return 1

    def way(self, nodes: Collection[int]) -> str:
        """Units with the same number of boxes have the same overhead."""
        return way_of(self._call, nodes)

    def submit(self, unit: Unit) -> None:
        """Works out what the unit will have done, and when."""
        started, timing = self._clock.now(), timing_of(unit.chains)
        run, results, given, moment = self._run(unit, 1.0)
        if timing is not None and (moment - started - self._overhead) * (1.0 + LITTLE) > timing.may:
            run, results, given, moment = self._run(unit, self._share(unit, timing))
        written = [*run.appended, *((stream, tuples) for chain, tuples in zip(unit.chains, given, strict=True)
                                    for stream in chain.writes)]  # fmt: skip
        overhead = self._overhead + self._call * run.calls
        finished = UnitResult(unit, started, moment, tuple(results), self._stage(unit.id, written), overhead)
        heapq.heappush(self._heap, (moment, next(self._order), finished))

    def _run(self, unit: Unit, share: float) -> tuple[_UnitRun, list[ChainResult], list[Tuples], float]:
        """What a unit does over a share of what its trains are to keep, and when it has done so."""
        run, moment = _UnitRun(self, unit), self._clock.now() + self._overhead
        results: list[ChainResult] = []
        given: list[Tuples] = []
        for chain in unit.chains:
            inputs = [self._tuples(each, given, share) for each in chain.inputs]
            result, tuples, moment = run.chain(chain, inputs, moment)
            results.append(replace(result, share=share))
            given.append(tuples)
        return run, results, given, moment

    def _share(self, unit: Unit, timing: Timing) -> float:
        """How much of what it is to keep an instance reads that looks every 5 ms how far it is."""
        began, share, upto = self._clock.now() + self._overhead, 0.0, first_share(timing, EVERY)
        while share < upto < 1.0:
            share, upto = upto, next_share(upto, self._run(unit, upto)[-1] - began, timing, EVERY)
        return upto

    def _stage(self, unit: str, written: Sequence[tuple[str, Tuples]]) -> tuple[SegmentFile, ...]:
        some = [(stream, tuples) for stream, tuples in written if len(tuples.arrivals)]
        self._log.stage(unit, [tuples for _, tuples in some])
        members = tuple((stream, len(tuples.arrivals), place, 0, 0, 0) for place, (stream, tuples) in enumerate(some))
        return (SegmentFile(unit, 0, members),) if members else ()

    def _tuples(self, each: Input, given: Sequence[Tuples], share: float) -> Tuples:
        if not isinstance(each, Train):
            return given[each]
        tuples = self._log.tuples(each)
        return tuples if each.keep is None else tuples.at(kept_mask(replace(each, keep=each.keep.read(share))))

    def finished(self) -> Sequence[UnitResult]:
        results = []
        while self._heap and self._heap[0][0] <= self._clock.now():
            results.append(heapq.heappop(self._heap)[2])
        return results

    def next_finish(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def cancel(self, unit: str) -> None:
        """Gives a unit up: its time until now is lost, its trains go back."""
        now = self._clock.now()
        for place, (_, order, result) in enumerate(self._heap):
            if result.unit.id == unit:
                self._heap[place] = now, order, UnitResult(result.unit, result.started, now, retry="cancelled")
        heapq.heapify(self._heap)

    def close(self) -> None:
        """Has nothing to stop."""


def drawn(draws: Draws | PairDraws, origins: NDArray[np.int64], ports: Sequence[NDArray[np.int64]]) -> NDArray[np.intp]:
    """The places of the tuples that an operator gives out, among those that come in."""
    if isinstance(draws, PairDraws):
        return draws.matches(ports)
    return np.repeat(np.arange(len(origins)), draws.copies(origins))


def way_of(call: float, nodes: Collection[int]) -> str:
    """The way in which a unit of these operators runs, if a call of a box costs ``call`` seconds."""
    return str(len(nodes)) if call else "simulated"


class _UnitRun:
    """One unit while it runs."""

    def __init__(self, executor: SimulatedExecutor, unit: Unit) -> None:
        self._works, self._log = executor._works, executor._log
        self._call, self._departs = executor._call, executor._departs
        self._states = {state.fold: state for state in unit.states}
        self.calls = 0
        self.appended: list[tuple[str, Tuples]] = []
        self._dropped: list[tuple[str, int]] = []

    def chain(self, chain: Chain, inputs: Sequence[Tuples], moment: float) -> tuple[ChainResult, Tuples, float]:
        """What a chain did, what it gives out, and when it was done."""
        runs: list[OperatorRun] = []
        self._dropped = []
        entered = tuple([len(tuples.arrivals) for tuples in inputs]) if chain.tells_ports else ()
        parts = [(number,) for number in chain.nodes] if self._departs == "box" else [chain.nodes]
        for nodes in parts:
            tuples, departures, moment = self._pass(nodes, inputs, moment, runs)
            inputs = [tuples]
        own = None if self._departs == "unit" else departures
        rows, dropped = len(tuples.arrivals), tuple(self._dropped)
        result = ChainResult(
            chain, rows, tuple(runs), tuples.arrivals, own, tuples.expiries, dropped=dropped, entered=entered
        )
        return result, tuples, moment

    def _pass(
        self, nodes: Sequence[int], inputs: Sequence[Tuples], moment: float, runs: list[OperatorRun]
    ) -> tuple[Tuples, NDArray[np.float64], float]:
        """Lets each tuple pass some operators before the next one begins; returns what comes out, when, and the end."""
        tuples = self._works[nodes[0]].paired(inputs)
        rows = len(tuples.arrivals)
        # Seconds of each tuple. The last place is for what windows give out; it comes after all of them.
        service = np.zeros(rows + 1)
        places = np.arange(rows)
        calls = 0
        for number in nodes:
            work, entered = self._works[number], len(places)
            cost, draws = work.profile.cost, work.draws
            service += cost * np.bincount(places, minlength=rows + 1)
            ports = inputs if number == nodes[0] else [tuples]
            closed = self._remember(work, ports) if work.profile.lasts is not None else None
            if closed is not None:
                tuples = closed
                places = np.full(len(tuples.arrivals), rows)
            elif draws is not None:
                kept = drawn(draws, tuples.origins, [each.origins for each in inputs])
                tuples, places = tuples.at(kept), places[kept]
            seconds = entered * cost
            if work.profile.out_cost:
                service += work.profile.out_cost * np.bincount(places, minlength=rows + 1)
                seconds += work.profile.out_cost * len(places)
            runs.append(OperatorRun(number, entered, len(places), seconds))
            calls += bool(entered or len(places))
        departures = moment + calls * self._call + np.cumsum(service)
        self.calls += calls
        return tuples, departures[places], float(departures[-1])

    def _remember(self, work: _Work, inputs: Sequence[Tuples]) -> Tuples | None:
        """Updates what an operator remembers; returns what comes out of a window."""
        profile = work.profile
        assert profile.lasts is not None, f"{work.name} remembers nothing"
        slide = None if profile.slide is None else microseconds(profile.slide)
        memory = FoldMemory(self._states[work.name], self._log, microseconds(profile.lasts), slide)
        closed = memory.take(inputs)
        self.appended += memory.appended
        self._dropped += memory.dropped
        return None if slide is None else closed
