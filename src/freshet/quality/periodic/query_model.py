"""What is known of a query's operators: costs by profiling, selectivities by sampling or smoothing (RT §4.1-4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from freshet.quality.periodic.operator_cost import OperatorCost
from freshet.quality.periodic.plan_time import PlanStep, PlanTime
from freshet.quality.smoothing import Smoothed

KNOWN: Final = 30.0
"""Number of tuples given out in a sample that tells as much as earlier instances do."""


class PlannedOperator(NamedTuple):
    """An operator in the plan of a query.

    Args:
        name: Its name.
        inputs: The streams or operators that it reads, one for each port.
        pairs: Whether it is a join of streams: its selectivity is per pair.
    """

    name: str
    inputs: tuple[str, ...]
    pairs: bool = False


class ProfiledRun(NamedTuple):
    """What an operator did for an instance.

    Args:
        name: Its name.
        rows_in: Tuples that came in at each port.
        rows_out: Tuples that it put out.
        seconds: Seconds that it took.
    """

    name: str
    rows_in: tuple[int, ...]
    rows_out: int
    seconds: float = 0.0


class QueryModel:
    """What the instances of a query taught about its operators.

    Args:
        operators: Its operators, each after those that it reads.
        costs: What they cost, if it is known; otherwise it is learned.
        alpha: Share of the newest instance in smoothed selectivities (RT §4.1.3).
        cold: Number of instances until costs are known.

    >>> model = QueryModel([PlannedOperator("select", ("s",)), PlannedOperator("count", ("select",))])
    >>> model.observe([ProfiledRun("select", (1000,), 200, 180e-6), ProfiledRun("count", (200,), 1, 80e-6)])
    >>> round(model.plan().seconds({"s": 2000}) * 1e6)
    520
    >>> sampled = model.plan(model.selectivities([ProfiledRun("select", (1000,), 400)]))
    >>> round(sampled.seconds({"s": 2000}) * 1e6)
    659
    """

    def __init__(
        self,
        operators: Sequence[PlannedOperator],
        costs: Mapping[str, OperatorCost] | None = None,
        alpha: float = 0.3,
        cold: int = 1,
    ) -> None:
        self._cold = cold
        self.operators = tuple(operators)
        self._costs = {each.name: OperatorCost(len(each.inputs)) for each in operators} | dict(costs or {})
        self._shares = {each.name: Smoothed(alpha, 1.0) for each in operators}
        self._given = frozenset(costs or ())
        self.version = 0
        """Grows with everything that was learned."""

    @property
    def learned(self) -> bool:
        """Whether some instances were seen, or all costs are given. The first ones compile and fill caches: what they
        say of costs would make levels fall, and small windows could never show that it was wrong."""
        return all(each.name in self._given or self._costs[each.name].runs >= self._cold for each in self.operators)

    def observe(self, runs: Iterable[ProfiledRun]) -> None:
        """Takes in what an instance did, when it has ended."""
        self.version += 1
        pairs = {each.name for each in self.operators if each.pairs}
        for run in runs:
            if run.name not in self._given:
                self._costs[run.name].observe(run.rows_in, run.rows_out, run.seconds)
            chances = _chances(run, run.name in pairs)
            if chances > 0.0:
                self._shares[run.name].observe(run.rows_out / chances, sum(run.rows_in))

    def selectivities(self, samples: Iterable[ProfiledRun] = ()) -> dict[str, float]:
        """The selectivity of each operator: the smoothed one of earlier instances, and what its sample adds to it.

        What earlier instances say counts like a sample that gave out :data:`KNOWN` tuples. So a sample of a join in
        which two pairs meet changes little, and one of a filter that thousands pass decides.
        """
        found = {name: share.value for name, share in self._shares.items()}
        pairs = {each.name for each in self.operators if each.pairs}
        for sample in samples:
            chances = _chances(sample, sample.name in pairs)
            before = found[sample.name] if self._shares[sample.name].learned else 0.0
            if chances > 0.0 and before > 0.0:
                found[sample.name] = (KNOWN + sample.rows_out) / (KNOWN / before + chances)
            elif chances > 0.0:
                found[sample.name] = sample.rows_out / chances
        return found

    def plan(self, selectivities: Mapping[str, float] | None = None, overhead: float = 0.0) -> PlanTime:
        """The plan with these selectivities, or with the smoothed ones."""
        shares = self.selectivities() if selectivities is None else selectivities
        steps = (
            PlanStep(each.name, each.inputs, self._costs[each.name], shares[each.name], each.pairs)
            for each in self.operators
        )
        return PlanTime(tuple(steps), overhead)


def _chances(run: ProfiledRun, pairs: bool) -> float:
    step = PlanStep(run.name, (), _ANY, pairs=pairs)
    return step.chances(run.rows_in)


_ANY = OperatorCost()
