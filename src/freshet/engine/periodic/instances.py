"""The part of the engine that runs instances of periodic queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freshet.engine.admission import Admission
from freshet.engine.clock import Clock
from freshet.engine.events import Answered, Observer, Released
from freshet.engine.protocols import Executor, QueueLog
from freshet.engine.states import QueryState, WaitingInstance
from freshet.log.errors import LogFull
from freshet.model import Abandon, Chain, Commit, RunInstances, Unit, UnitResult, UserError
from freshet.policies import Policy
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.earliest_deadline import EarliestDeadline
from freshet.policies.periodic.first import PeriodicFirst
from freshet.quality.periodic.managed import ManagedLevels
from freshet.quality.snapshots import PeriodicSnapshot


def runs_units_whole(policy: Policy) -> Policy:
    """Refuses a policy that ends units early or leaves tuples behind: the engine does neither.

    Raises:
        UserError: It does.
    """
    if policy.preempts:
        raise UserError(
            f"policy {policy.name} ends units early and leaves tuples behind, which only "
            "freshet.simulation.fast.FastWorld does: use another policy here, such as slope-slack-push"
        )
    return policy


class InstanceKeeping(Admission):
    """Takes releases, and tells the policy and observers what becomes of instances."""

    def __init__(
        self,
        log: QueueLog,
        executor: Executor,
        clock: Clock,
        policy: Policy,
        observers: Iterable[Observer],
        periodic: PeriodicFirst | None,
    ) -> None:
        super().__init__(log, executor, clock, runs_units_whole(policy), observers)
        self._periodic = periodic or PeriodicFirst(EarliestDeadline(), policy)
        self._stop: str | None = None
        self._turned = 0.0
        """When the present turn of the loop began."""
        self._sampled = 0.0, 0.0
        """From when until when new instances were sampled last."""

    def _with_instances(self, policy: Policy) -> Policy:
        """What decides on instances, too, if there are periodic queries."""
        self._periodic.inner = runs_units_whole(policy)
        return self._periodic if self.releases.queries else policy

    def _start_releases(self, state: QueryState) -> None:
        super()._start_releases(state)
        if self.policy is not self._periodic:
            self._periodic.inner, self.policy = self.policy, self._periodic

    def _bind_instances(self, step: RunInstances, unit: str) -> Unit | None:
        bound = self.releases.bind(step, unit)
        for each in self.releases.running(unit):
            each.began = max(each.since, self._turned)
        return bound

    def _commit_of(self, result: UnitResult, chains: Sequence[Chain]) -> Commit:
        commit = self.time.commit_of(result, chains)
        return self.releases.commit_of(result, chains, commit, self.clock.now())

    def _take_releases(self) -> None:
        """Takes the releases that are due; while it drains, no new ones."""
        if self._stop is None and self.releases.queries:
            try:
                new = self.releases.take()
            except LogFull:
                return  # it is tried again with the next turn: an instance sees the same then
            if new:
                began = self.clock.now()
                self.policy.released(self.board, new)
                self._sampled = began, self.clock.now()
                self._tell(Released(self.clock.now(), tuple(each.record for each in new)))
                for each in new:
                    each.since = self.clock.now()

    def _answered(self, instance: WaitingInstance, result: UnitResult, now: float) -> None:
        record = self.releases.record_of(instance, result, now)
        own = self.board.queries[instance.query].operators
        chains = tuple(done for done in result.chains if done.chain.nodes[0] in own)
        together = sum(1 for chain in result.unit.chains if chain.arrival is not None)
        # Not only the worker's time: until the next instance can begin, the loop decides, sends and commits.
        began, ended = self._sampled
        # A result that came while others were sampled had to wait: that is charged to them.
        held = max(0.0, min(self._turned, ended) - max(result.finished, began))
        seconds, settling = self._turned - instance.began - held, now - self._turned
        outcome = InstanceOutcome(record, seconds, result.overhead, chains, max(1, together), settling)
        self.policy.answered(self.board, outcome)
        self._tell(Answered(now, record))

    def _instances_of(self, query: str) -> PeriodicSnapshot | None:
        levels = self._periodic.levels
        if not isinstance(levels, ManagedLevels):
            return None
        known = self.releases.queries.get(query)
        return levels.snapshot(query, known.skipped if known else 0)

    def _abandon(self, action: Abandon) -> None:
        instance = self.releases.abandon(action.key, action.reason)
        if instance is not None:
            self.policy.answered(self.board, InstanceOutcome(instance.record, 0.0, 0.0, (), 1))
            self._tell(Answered(self.clock.now(), instance.record))
