"""The sampler in simulated time: what operators would do to some of the tuples of a window, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from freshet.engine import VirtualClock
from freshet.model import InstanceView, View
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel
from freshet.quality.periodic import ProfiledRun
from freshet.quality.periodic.managed import InstanceKey, ManagedLevels, Sampled
from freshet.quality.periodic.profiled import planned_operators
from freshet.simulation.executor import SimulatedExecutor, drawn
from freshet.simulation.pairs import Origins


class SimulatedSampler:
    """Draws random samples of windows without replacement, and lets them pass the operators of a query (RT §4.2).

    Args:
        executor: Knows what operators do.
        seed: Of the samples.
    """

    def __init__(self, executor: SimulatedExecutor, seed: int = 0) -> None:
        self._executor, self._random = executor, np.random.default_rng([seed, 42])

    def sample(self, view: View, instance: InstanceView, sizes: Mapping[str, int]) -> Sampled:
        """What operators do to these numbers of tuples."""
        comes = {each.reader: self._executor.origins(each.stream, each.first, each.end) for each in instance.inputs}
        runs, seconds = [], 0.0
        for operator in planned_operators(view, instance):
            if operator.name not in sizes:
                continue
            given = [comes[name] for name in operator.inputs if name in comes]
            rows = sum(map(len, given))
            share = min(1.0, sizes[operator.name] / rows) if rows else 0.0
            run, out = self._run(operator.name, [self._some(each, share) for each in given])
            comes[operator.name] = out
            runs.append(run)
            seconds += run.seconds
        return Sampled(tuple(runs), seconds)

    def _some(self, origins: Origins, share: float) -> Origins:
        size = round(share * len(origins))
        chosen: Origins = np.sort(self._random.choice(origins, size, replace=False)) if size < len(origins) else origins
        return chosen

    def _run(self, name: str, ports: Sequence[Origins]) -> tuple[ProfiledRun, Origins]:
        profile, draws = self._executor.work(int(name))
        entered = np.concatenate(ports)
        out = entered if draws is None else entered[drawn(draws, entered, ports)]
        seconds = profile.cost * len(entered) + profile.out_cost * len(out)
        return ProfiledRun(name, tuple(map(len, ports)), len(out), seconds), out


class PaidLevels:
    """A manager of levels whose samplers take time: the clock moves on while they run.

    Args:
        inner: The manager.
        clock: Of the simulation.
    """

    def __init__(self, inner: ManagedLevels, clock: VirtualClock) -> None:
        self.inner, self._clock = inner, clock

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Instances were released: their samplers run before anything else does."""
        self.inner.released(view, instances)
        charged, self.inner.charged = self.inner.charged, 0.0
        if charged:
            self._clock.wait(self._clock.now() + charged)

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        """An instance ended."""
        self.inner.answered(view, outcome)

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> Mapping[InstanceKey, InstanceLevel]:
        """The levels of the instances that are about to run."""
        return self.inner.assign(view, chosen)
