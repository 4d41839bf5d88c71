"""How long a query takes over its windows (RT §4.1.2, §4.3 Eq. 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest

from freshet.quality.periodic.operator_cost import OperatorCost


@dataclass(frozen=True, slots=True)
class PlanStep:
    """An operator of a query with what is known of it.

    Args:
        name: Its name.
        inputs: The streams or operators that it reads, one for each port.
        cost: What it costs.
        selectivity: Tuples out per tuple in; of a join of streams per pair (RT §4.1.2); of a join with a table matches
            per tuple.
        pairs: Whether it is a join of streams.
    """

    name: str
    inputs: tuple[str, ...]
    cost: OperatorCost
    selectivity: float = 1.0
    pairs: bool = False

    def output(self, rows: Sequence[float], selectivity: float | None = None) -> float:
        """Number of tuples that it puts out for these numbers of input tuples.

        >>> PlanStep("join", ("s", "t"), OperatorCost(2), 1e-4, pairs=True).output([4000, 4000])
        1600.0
        """
        return self.chances(rows) * (self.selectivity if selectivity is None else selectivity)

    def chances(self, rows: Sequence[float]) -> float:
        """What its selectivity is a share of: tuples, or pairs of them."""
        return math.prod(rows) if self.pairs else sum(rows)


@dataclass(frozen=True, slots=True)
class PlanTime:
    """The time of a query's plan: the sum over its operators, and the overhead of its step.

    The time of a join grows with the tuples of each input and with the pairs that it puts out. RT prints
    (n_1 s_11)(n_2 s_12) t_13 for it, which charges every pair that could be: 4000 x 4000 pairs at 3 us take 48 s, where
    8000 tuples at 5 us and 1600 pairs at 0.2 us take 40.3 ms.

    Args:
        steps: Its operators, each after those that it reads.
        overhead: Seconds of a step before it touches a tuple; the query's part of them, if queries share the step.

    >>> join = PlanStep("join", ("s", "t"), OperatorCost.given([5e-6, 5e-6], 0.2e-6), 1e-4, pairs=True)
    >>> round(PlanTime((join,)).seconds({"s": 4000, "t": 4000}) * 1e3, 1)
    40.3
    >>> round(PlanTime((join,), overhead=0.02).seconds({"s": 4000, "t": 4000}, {"s": 0.5, "t": 0.5}) * 1e3, 2)
    40.08
    """

    steps: tuple[PlanStep, ...]
    overhead: float = 0.0

    def seconds(self, rows: Mapping[str, float], kept: Mapping[str, float] | None = None) -> float:
        """Seconds for these numbers of tuples, of which these shares are kept. Streams without a share keep all."""
        comes = {name: count * kept.get(name, 1.0) for name, count in rows.items()} if kept else dict(rows)
        found = self.overhead
        for step in self.steps:
            entering = [comes[name] for name in step.inputs]
            out = comes[step.name] = step.output(entering)
            found += step.cost.seconds(entering, out)
        return found

    def terms(self, rows: Mapping[str, float]) -> list[float]:
        """The time as a polynomial in a share that is kept of all streams: its coefficients, the constant one first.

        Tuples of a stream are linear in the share, and the pairs of a join have the degrees of both inputs together.

        >>> join = PlanStep("join", ("s", "t"), OperatorCost.given([5e-6, 5e-6], 0.2e-6), 1e-4, pairs=True)
        >>> [round(1e3 * term, 2) for term in PlanTime((join,), overhead=0.02).terms({"s": 4000, "t": 4000})]
        [20.0, 40.0, 0.32]
        """
        comes = {name: [0.0, count] for name, count in rows.items()}
        found = [self.overhead]
        for step in self.steps:
            entering = [comes[name] for name in step.inputs]
            together = reduce(_product if step.pairs else _sum, entering, [1.0] if step.pairs else [])
            out = comes[step.name] = [step.selectivity * term for term in together]
            for flow, each in zip((*entering, out), (*step.cost.per_row, step.cost.per_output), strict=True):
                found = _sum(found, [each * term for term in flow])
        return found

    def parts(
        self,
        rows: Mapping[str, float],
        kept: Mapping[str, float] | None = None,
        selectivities: Mapping[str, float] | None = None,
    ) -> dict[str, float]:
        """Seconds of each operator, by its name.

        Args:
            rows: Tuples of each stream.
            kept: Shares of them that are kept.
            selectivities: Replace those of the operators that are named.
        """
        shares, other = kept or {}, selectivities or {}
        comes = {name: count * shares.get(name, 1.0) for name, count in rows.items()}
        found = {}
        for step in self.steps:
            entering = [comes.get(name, 0.0) for name in step.inputs]
            comes[step.name] = step.output(entering, other.get(step.name))
            found[step.name] = step.cost.seconds(entering, comes[step.name])
        return found

    def flows(self, rows: Mapping[str, float]) -> dict[str, list[float]]:
        """Number of tuples that enter each operator, by port."""
        comes, found = dict(rows), {}
        for step in self.steps:
            found[step.name] = [comes.get(name, 0.0) for name in step.inputs]
            comes[step.name] = step.output(found[step.name])
        return found

    def slopes(self, rows: Mapping[str, float]) -> dict[str, float]:
        """By how much the time rises with the selectivity of each operator, dT/ds: the time is linear in it.

        >>> cost = lambda us: OperatorCost.given([us * 1e-6], 0.0)
        >>> plan = PlanTime((
        ...     PlanStep("select", ("s",), cost(0.2), 0.2), PlanStep("join", ("select",), cost(5.0), 0.2),
        ...     PlanStep("sum", ("join",), cost(0.4), 0.2),
        ... ))
        >>> {name: round(slope * 1e3, 4) for name, slope in plan.slopes({"s": 1000}).items()}
        {'select': 5.08, 'join': 0.08, 'sum': 0.0}
        """
        now = sum(self.parts(rows).values())
        return {
            step.name: sum(self.parts(rows, None, {step.name: step.selectivity + 1.0}).values()) - now
            for step in self.steps
        }


def _sum(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The sum of two polynomials."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0.0)]


def _product(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The product of two polynomials."""
    found = [0.0] * (len(one) + len(other) - 1)
    for place, a in enumerate(one):
        for shift, b in enumerate(other):
            found[place + shift] += a * b
    return found
