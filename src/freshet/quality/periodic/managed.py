"""The manager of levels: what an engine asks at every release and completion (RT §3-4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from freshet.model import Instance, InstanceView, View
from freshet.model.promises.keep import Timing
from freshet.model.promises.quality_table import QualityTable
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel
from freshet.quality.periodic.answer_quality import answer_quality
from freshet.quality.periodic.instance_meter import InstanceFigures, InstanceMeter
from freshet.quality.periodic.level_rule import LEAST, LevelRule, PlannedLevel, ReadyInstance
from freshet.quality.periodic.plan_time import PlanTime
from freshet.quality.periodic.profiled import planned_operators, profiled_runs
from freshet.quality.periodic.query_model import ProfiledRun, QueryModel
from freshet.quality.periodic.refinement import latest_end
from freshet.quality.periodic.sample_sizes import BUDGET, Sampling, dynamic_sizes, fixed_sizes
from freshet.quality.smoothing import Smoothed
from freshet.quality.snapshots import PeriodicSnapshot

_REST: Final = 0.3
"""Share of the newest instance in what instances take besides their operators."""
_WARM: Final = 0.75
"""An instance that takes less than this share of that shows that those before it were cold."""
_FORGET: Final = 0.01
"""Share by which each instance makes earlier ones count less for what samplers may take."""
_RAN: Final = 500
"""Number of instances that are remembered, to say which of them blocked others."""

InstanceKey = tuple[str, int]
"""Name of the query, and the release in microseconds."""


class Sampled(NamedTuple):
    """What a sampler found: what each operator did to its sample, and the seconds that the sampler took."""

    runs: tuple[ProfiledRun, ...]
    seconds: float


class InstanceSampler(Protocol):
    """Runs a query's own operators over random samples of an instance's windows (RT §4.2)."""

    def sample(self, view: View, instance: InstanceView, sizes: Mapping[str, int]) -> Sampled | None:
        """What each operator does to its number of tuples, by operator; None: only Spark can evaluate them."""


@dataclass(slots=True)
class _Managed:
    """A waiting instance: its sample, what is known of its time, and what it was given last."""

    instance: InstanceView
    name: str
    selectivities: Mapping[str, float] | None = None
    sampled: frozenset[str] = frozenset()
    sampling: float = 0.0
    given: PlannedLevel = field(default_factory=PlannedLevel)
    predicted: float | None = None
    """Seconds that it was expected to take; None: nothing was known of its query."""
    ready: ReadyInstance | None = None
    stamp: tuple[object, ...] = ()
    """What ``ready`` was made from: it holds until something of that changes."""


class ManagedLevels:
    """Profiles operators, samples windows and asks a rule for levels. It has no clock: the view says when.

    Args:
        rule: Gives levels.
        sampling: How samples are sized.
        sampler: Takes them; None: selectivities are those of earlier instances.
        models: What is known of queries beforehand, by name.
        ahead: Whether releases that come before the last deadline count (RT §7).
        cold: Number of instances of a query until its costs are known; until then its instances read everything.
    """

    def __init__(
        self,
        rule: LevelRule,
        sampling: Sampling = "off",
        sampler: InstanceSampler | None = None,
        models: Mapping[str, QueryModel] | None = None,
        *,
        ahead: bool = False,
        cold: int = 1,
    ) -> None:
        self._cold = cold
        self.rule, self._sampling, self._sampler, self._ahead = rule, sampling, sampler, ahead
        self._models: dict[str, QueryModel] = dict(models or {})
        self._waiting: dict[InstanceKey, _Managed] = {}
        self._last: dict[str, InstanceView] = {}
        self.charged = 0.0
        """Seconds of samplers that are still to pass in simulated time."""
        self._since, self._spent = 0.0, 0.0
        """Time of the last view, and seconds that samplers have taken since."""
        self._sampled, self._took = 0.0, 0.0
        """Seconds of recent samplers, and of recent instances."""
        self._samples: dict[str, Smoothed] = {}
        """Seconds of a sample of each query."""
        self._rests: dict[str, Smoothed] = {}
        """Seconds of each query's instances besides their operators: reading windows takes some, too."""
        self._ran: deque[Instance] = deque(maxlen=_RAN)
        """Instances that ran last."""
        self._settling = Smoothed(_REST)
        """Seconds from when an instance has run until its answer is committed."""
        self._stale = True
        """Whether something has happened since levels were given."""
        self.meters: dict[str, InstanceMeter] = {}
        """What became of the instances of each query."""

    # What happens

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Samples the windows of new instances."""
        self._now(view)
        self._stale = True
        for instance in instances:
            managed = self._managed(instance)
            self._last[instance.key[0]] = instance
            model = self._known(view, instance)
            if self._sampler is not None and model.learned and self._may_sample(instance.key[0]):
                self._sample(view, managed, model, self._sampler)

    def _may_sample(self, query: str) -> bool:
        """Whether samples take no more than their share of the time with one more: the smallest one takes some, too."""
        if self._sampling != "dynamic":
            return self._sampling == "fixed"
        known = self._samples.get(query)
        sampled = self._sampled + (known.value if known else 0.0)
        return sampled <= BUDGET * (sampled + self._took)

    def _sample(self, view: View, managed: _Managed, model: QueryModel, sampler: InstanceSampler) -> None:
        rows = _rows(managed.instance)
        sizes = dynamic_sizes if self._sampling == "dynamic" else fixed_sizes
        found = sampler.sample(view, managed.instance, sizes(self._plan(view, managed.instance), rows))
        if found is not None:
            managed.selectivities = model.selectivities(found.runs)
            managed.sampled = frozenset(run.name for run in found.runs)
            managed.sampling = found.seconds
            self.charged += found.seconds
            self._spent += found.seconds
            self._sampled += found.seconds
            self._samples.setdefault(managed.instance.key[0], Smoothed(_REST)).observe(found.seconds)

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        """Learns from an instance that ended."""
        self._stale = True
        name = outcome.instance.query
        managed = self._waiting.pop(outcome.instance.key, None)
        if managed is None:
            return
        model = self._model(view, managed.instance)
        own = {each.name for each in model.operators}
        runs = [run for run in profiled_runs(outcome.chains) if run.name in own]
        figures = self._figures(view, outcome, managed, model, runs)
        if outcome.instance.started >= 0:
            self._ran.append(outcome.instance)
        model.observe(runs)
        self._settling.observe(outcome.settling)
        if runs and outcome.together == 1:
            self._learn_rest(name, max(0.0, outcome.seconds - sum(run.seconds for run in runs)))
        self._sampled *= 1.0 - _FORGET
        self._took = (1.0 - _FORGET) * self._took + figures.took
        self.meters.setdefault(name, InstanceMeter()).add(figures)
        self.rule.finished(figures)

    def _learn_rest(self, query: str, seconds: float) -> None:
        known = self._rests.get(query)
        if known is None or seconds < _WARM * known.value:  # the first instances compile, and say nothing
            known = self._rests[query] = Smoothed(_REST)
        known.observe(seconds)

    def _figures(
        self, view: View, outcome: InstanceOutcome, managed: _Managed, model: QueryModel, runs: Sequence[ProfiledRun]
    ) -> InstanceFigures:
        record, given = outcome.instance, managed.given
        finished = record.finished / 1e6 if record.state == "answered" else None
        due = record.deadline / 1e6
        in_time = finished is not None and finished <= due
        shares, actual = managed.selectivities, model.selectivities(runs)
        return InstanceFigures(
            query=record.query,
            release=record.release / 1e6,
            due=due,
            finished=finished,
            quality=record.quality if in_time else 0.0,
            level=given.level,
            predicted=self._predicted(managed, record),
            took=outcome.seconds / outcome.together,
            waited=max(0.0, (record.started if record.started >= 0 else record.finished) - record.release) / 1e6,
            sampling=managed.sampling,
            ended_early=_ended_early(record, given),
            dropped=1.0 - min(record.kept.values(), default=1.0),
            blocked_by=self._blocked(record),
            selectivity_error=None if shares is None else _error(shares, actual, managed.sampled),
        )

    def _predicted(self, managed: _Managed, record: Instance) -> float | None:
        """Seconds that an instance was expected to take for what it has read."""
        ready = managed.ready
        if managed.predicted is None or ready is None:
            return managed.predicted
        return ready.plan.seconds(ready.rows, record.kept) if _ended_early(record, managed.given) else managed.predicted

    def _blocked(self, record: Instance) -> dict[str, float]:
        """Seconds for which each other query ran while an instance waited; nothing if it was in time."""
        if record.state == "answered" and record.finished <= record.deadline:
            return {}
        until = record.started if record.started >= 0 else record.finished
        found: dict[str, float] = {}
        for other in self._ran:
            seconds = (min(until, other.finished) - max(record.release, other.started)) / 1e6
            if seconds > 0.0 and other.query != record.query:
                found[other.query] = found.get(other.query, 0.0) + seconds
        return found

    def snapshot(self, query: str, skipped: int = 0) -> PeriodicSnapshot | None:
        """What became of the instances of a query, of which so many releases had none; None: no instance has ended."""
        return self.meters[query].snapshot(skipped) if query in self.meters else None

    @property
    def besides(self) -> dict[str, float]:
        """Seconds that instances take besides their operators, by query: no level makes them shorter."""
        return {name: each.value for name, each in self._rests.items()}

    # Levels

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[InstanceKey, InstanceLevel]:
        """The levels of the instances that are about to run; those of all others that wait are decided with them."""
        if self._stale or not self.rule.predicts:
            # Who predicts nothing gives an instance its level whatever else waits, and there may be thousands.
            self._decide(view, view.instances if self.rule.predicts else chosen)
        return {each.key: self._level(view, each) for each in chosen}

    def _decide(self, view: View, instances: Sequence[InstanceView]) -> None:
        self._stale = False
        if len(self._waiting) > 2 * len(view.instances):  # those of queries that were dropped never end
            there = {each.key for each in view.instances}
            self._waiting = {key: managed for key, managed in self._waiting.items() if key in there}
        every = [self._managed(each) for each in instances if not each.back]
        now = self._now(view)
        ready = [self._left(now, each, self._ready(view, each)) for each in every]
        coming = self._coming(view, ready) if self._ahead else ()
        found = self.rule.assign(now, ready, coming, view.workers)
        for managed, each in zip(every, ready, strict=True):
            if not managed.instance.running:
                managed.given = given = found[each.key]
                known = self.rule.predicts and self._model(view, managed.instance).learned
                managed.predicted = _predicted(each, given) if known else None

    def _level(self, view: View, instance: InstanceView) -> InstanceLevel:
        managed = self._managed(instance)
        each, given = self._ready(view, managed), managed.given
        kept = given.kept if given.level > 0.0 else dict.fromkeys(each.rows, LEAST) if each.thin else {}
        shares = {one.reader: one.window_kept(kept.get(one.reader, 1.0)) for one in instance.inputs}
        quality, timing = answer_quality(each.table, shares), self._timing(view, each, given)
        return InstanceLevel(kept, quality, given.seconds or 0.0, timing)

    def _timing(self, view: View, instance: ReadyInstance, given: PlannedLevel) -> Timing | None:
        """How long an instance may take that is about to run; None: no part of it can be left out, or help."""
        if not self.rule.predicts or given.seconds is None or given.level <= 0.0 or not instance.thin:
            return None
        waiting = [each for each in view.instances if not (each.running or each.back)]
        behind = [managed for managed in map(self._managed, waiting) if managed.name != instance.key]
        others = [(each.instance.deadline - self._settling.value, each.given.seconds or 0.0) for each in behind]
        overhead = instance.plan.overhead
        found = Timing(given.seconds - overhead, latest_end(instance.due, others) - self._now(view) - overhead)
        return found if min(found) > 0.0 else None

    def _managed(self, instance: InstanceView) -> _Managed:
        """What is known of an instance; nothing, if it was released before a restart."""
        found = self._waiting.get(instance.key)
        if found is None:
            query, release = instance.key
            found = self._waiting[instance.key] = _Managed(instance, f"{query} {release}")
        return found

    def _left(self, now: float, managed: _Managed, ready: ReadyInstance) -> ReadyInstance:
        """The same instance, with what is left of it if it has begun."""
        instance = managed.instance
        if not instance.running:
            return ready
        took = ready.seconds(1.0) if managed.predicted is None else managed.predicted
        return replace(ready, left=max(0.0, took - (now - instance.began)))

    def _ready(self, view: View, managed: _Managed) -> ReadyInstance:
        instance, promises = managed.instance, view.queries[managed.instance.query].promises
        model, overhead = self._model(view, instance), self._overhead(view, instance)
        stamp = (model, model.version, overhead, promises, instance.running, managed.selectivities)
        if managed.ready is None or stamp != managed.stamp:
            plan = model.plan(managed.selectivities, overhead)
            thin = "thin" in promises.overload and not instance.running and (model.learned or not self.rule.predicts)
            due, table = instance.deadline - self._settling.value, _table_of(view, instance)
            ready = ReadyInstance(managed.name, due, _rows(instance), plan, table, thin, weight=promises.weight)
            managed.stamp, managed.ready = stamp, ready
        return managed.ready

    def _coming(self, view: View, ready: Sequence[ReadyInstance]) -> list[ReadyInstance]:
        """Instances whose release comes before the last deadline of those that wait, as large as the last ones."""
        last = max((each.due for each in ready), default=view.now)
        found = []
        for name, instance in self._last.items():
            promises = view.queries[instance.query].promises
            period, within = promises.period or 0.0, instance.deadline - instance.release
            release = instance.release + period
            while period and release < last:
                plan, thin = self._plan(view, instance), "thin" in promises.overload
                rows, table = _rows(instance), _table_of(view, instance)
                found.append(ReadyInstance(f"{name} {release}", release + within, rows, plan, table, thin))
                release += period
        return found

    # What is known

    def _now(self, view: View) -> float:
        """The time: samplers take some of it after the view was made."""
        if view.now != self._since:
            self._since, self._spent = view.now, 0.0
        return view.now + self._spent

    def _known(self, view: View, instance: InstanceView) -> QueryModel:
        """What is known of a query; nothing, if its operators are other ones than before."""
        name, operators = instance.key[0], tuple(planned_operators(view, instance))
        if name not in self._models or self._models[name].operators != operators:
            self._models[name] = QueryModel(operators, cold=self._cold)
        return self._models[name]

    def _model(self, view: View, instance: InstanceView) -> QueryModel:
        return self._models.get(instance.key[0]) or self._known(view, instance)

    def _plan(self, view: View, instance: InstanceView) -> PlanTime:
        """What an instance takes by all that earlier ones taught."""
        return self._model(view, instance).plan(None, self._overhead(view, instance))

    def _overhead(self, view: View, instance: InstanceView) -> float:
        rest = self._rests.get(instance.key[0])
        return view.overhead(view.queries[instance.query].operators) if rest is None else rest.value


def _predicted(instance: ReadyInstance, given: PlannedLevel) -> float | None:
    """Seconds that an instance is expected to take; one that cannot be in time reads the least that it may."""
    return given.seconds if given.level > 0.0 or given.seconds is None else instance.seconds(0.0)


def _ended_early(record: Instance, given: PlannedLevel) -> bool:
    """Whether an instance has kept less than it was given, because its time was over."""
    return given.level > 0.0 and any(share < given.kept.get(reader, 1.0) for reader, share in record.kept.items())


def _rows(instance: InstanceView) -> dict[str, float]:
    return {each.reader: float(each.rows) for each in instance.inputs}


def _table_of(view: View, instance: InstanceView) -> QualityTable:
    """The quality table of a query, by the edges of an instance."""
    table = view.queries[instance.query].promises.quality
    if not table.inputs:
        return table
    return QualityTable(inputs=tuple((each.reader, table.of(each.stream)) for each in instance.inputs))


def _error(estimated: Mapping[str, float], actual: Mapping[str, float], sampled: Iterable[str]) -> float | None:
    """Mean relative error of the selectivities that were sampled."""
    errors = [abs(estimated[name] / actual[name] - 1.0) for name in sampled if actual[name] > 0.0]
    return sum(errors) / len(errors) if errors else None
