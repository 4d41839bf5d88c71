"""The runs behind the claims about mirrors: workloads of CAR chapter 2 under plans and heuristics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from freshet.mirror import Elements, Learner, RatePrior, perceived_freshness, plan
from freshet.mirror.heuristics import fixed_bandwidth, fixed_frequency, heuristic
from freshet.mirror.learning import NaiveLearner
from freshet.mirror.simulator import Alignment, MirrorWorkload, RefreshingWorld, watch
from freshet.mirror.simulator.drifts import some_faster, unpolled_slower
from freshet.reproduce.trial import Trial

Technique = Literal["PF", "GF"]

THETAS: Final = (0.0, 0.4, 0.8, 1.2, 1.6)
ALIGNMENTS: Final[tuple[Alignment, ...]] = ("shuffled", "aligned", "reverse")
PARTITIONINGS: Final = ("p", "lambda", "p/lambda", "PF")
GROUPS: Final = (5, 10, 25, 50, 100)
BIG_GROUPS: Final = (20, 50, 100, 200)
ITERATIONS: Final = (0, 1, 3, 5, 10)
BEFORE: Final = 50
"""Polls per element before rates change."""
SINCE: Final = (0, 2, 5, 10, 15, 20, 30, 40, 50)
"""Polls per element since."""
PARETO: Final = 1.1
"""Shape of the sizes; the thesis does not print its own."""


def big(trial: Trial, seed: int = 0) -> MirrorWorkload:
    """CAR Table 2.3; a tenth of it in quick mode."""
    scale = 0.1 if trial.quick else 1.0
    return MirrorWorkload(int(500_000 * scale), 1e6 * scale, 250_000 * scale, theta=1.0, deviation=2.0, seed=seed)


def small(theta: float = 1.0, rates: Alignment = "shuffled", seed: int = 0) -> MirrorWorkload:
    """CAR Table 2.2."""
    return MirrorWorkload(theta=theta, rates=rates, seed=seed)


@dataclass(frozen=True, slots=True)
class IdealRun:
    """An optimal plan: for perceived freshness (PF), or for general freshness (GF), which ignores worth."""

    bed: MirrorWorkload
    technique: Technique = "PF"


def ideal(run: IdealRun) -> float:
    """Perceived freshness of an optimal plan."""
    elements = run.bed.elements()
    known = elements if run.technique == "PF" else Elements.of(elements.rates, sizes=elements.sizes)
    return perceived_freshness(elements, plan(known, run.bed.syncs).frequencies)


@dataclass(frozen=True, slots=True)
class HeuristicRun:
    """A heuristic: what to sort by, how many partitions, how many iterations of k-means, how to share."""

    bed: MirrorWorkload
    key: str = "PF"
    groups: int = 50
    iterations: int = 0
    share: Literal["FFA", "FBA"] = "FFA"


def by_heuristic(run: HeuristicRun) -> float:
    """Perceived freshness of a heuristic."""
    elements = run.bed.elements()
    frequencies = heuristic(
        elements,
        run.bed.syncs,
        key=run.key,
        groups=run.groups,
        iterations=run.iterations,
        allocate=fixed_bandwidth if run.share == "FBA" else fixed_frequency,
        sized=run.bed.sizes is not None,
    )
    return perceived_freshness(elements, frequencies)


@dataclass(frozen=True, slots=True)
class SizesRun:
    """CAR §2.5.3: equal worth, aligned rates, Pareto sizes."""

    sizes: Alignment
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SizesOutcome:
    """Perceived freshness of three plans for elements of different sizes.

    Args:
        blind: The plan that takes all sizes for 1, whatever it costs.
        cost: Share of the bandwidth that it uses.
        scaled: That plan, scaled to the full bandwidth.
        aware: The optimal plan.
    """

    blind: float
    cost: float
    scaled: float
    aware: float


def with_sizes(run: SizesRun) -> SizesOutcome:
    """Plans with and without knowledge of sizes."""
    bed = MirrorWorkload(theta=0.0, rates="aligned", sizes=run.sizes, pareto=PARETO, seed=run.seed)
    elements = bed.elements()
    blind = plan(Elements.of(elements.rates, elements.worth), bed.syncs).frequencies
    cost = float(elements.sizes @ blind) / bed.syncs
    return SizesOutcome(
        perceived_freshness(elements, blind),
        cost,
        perceived_freshness(elements, blind / cost),
        plan(elements, bed.syncs).perceived,
    )


@dataclass(frozen=True, slots=True)
class AllocationRun:
    """FFA or FBA with PFS-partitioning."""

    share: Literal["FFA", "FBA"]
    groups: int
    seed: int = 0


def by_allocation(run: AllocationRun) -> float:
    """Perceived freshness over that of the optimal plan, with small elements that change often."""
    rng = np.random.default_rng(run.seed)
    bed = MirrorWorkload(theta=0.0, rates="aligned", sizes="reverse", pareto=PARETO, seed=run.seed)
    drawn = bed.elements()
    worth = rng.permutation(replace(bed, theta=1.0).elements().worth)
    elements = Elements.of(drawn.rates, worth, drawn.sizes)
    allocate = fixed_bandwidth if run.share == "FBA" else fixed_frequency
    frequencies = heuristic(elements, bed.syncs, key="PFS", groups=run.groups, allocate=allocate)
    return perceived_freshness(elements, frequencies) / plan(elements, bed.syncs).perceived


@dataclass(frozen=True, slots=True)
class WayBackRun:
    """A mirror that has learned its rates when some of them change: which ones, and how it learns and explores."""

    drift: Literal["faster", "slower"]
    naive: bool = False
    exploration: float = 0.02
    seed: int = 0


def way_back(run: WayBackRun) -> list[float]:
    """Perceived freshness over that of known rates, by polls per element since the change (:data:`SINCE`)."""
    bed = MirrorWorkload(theta=1.0, seed=run.seed)
    elements = bed.elements()
    count = len(elements)
    kind = NaiveLearner if run.naive else Learner
    learner = kind(count, prior=RatePrior(mean=bed.syncs / count))
    world = RefreshingWorld(elements, bed.syncs, learner, exploration=run.exploration, seed=run.seed)
    world.run(BEFORE * count)
    drift = some_faster if run.drift == "faster" else unpolled_slower
    world.drift(drift(elements, bed.syncs, np.random.default_rng(run.seed)))
    return [world.run((BEFORE + polls) * count).share for polls in SINCE]


def watched_error(bed: MirrorWorkload) -> float:
    """By how much perceived freshness by events differs from the analytic value."""
    elements = bed.elements()
    made = plan(elements, bed.syncs)
    seen = watch(elements, made.frequencies, periods=2000.0, seed=bed.seed)
    return abs(seen.perceived - made.perceived)
