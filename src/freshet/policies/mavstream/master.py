"""The master scheduler: several strategies at once, each for the queries that are assigned to it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from freshet.model import Decision, Step, UserError, View
from freshet.policies.base import Policy
from freshet.policies.mavstream.strategy_view import StrategyView
from freshet.policies.reason import Reason
from freshet.policies.registry import create

QUANTUM: Final = 0.01
"""Seconds of a turn for each ready operator, unless others are given."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """What the master scheduler knows of a query.

    Args:
        strategy: The policy that schedules it; None: the one for queries without a strategy.
        weight: The weight of its most important class. Work that queries share goes by the greatest.
        urgency: The weight of the worst class that is violated now; 0 if none is.
    """

    strategy: str | None = None
    weight: float = 0.0
    urgency: float = 0.0


@dataclass(slots=True, eq=False)
class LiveStrategy:
    """A strategy that has queries.

    Args:
        text: As it was assigned; of the policy for queries without a strategy, its name.
        policy: The policy that decides.
        view: What it sees.
    """

    text: str
    policy: Policy
    view: StrategyView
    steps: deque[Step] = field(default_factory=deque)
    """What it decided to run and has not run yet."""
    seconds: float = 0.0
    """Time that it has left in its turn; below 0, what it ran beyond it."""
    urgency: float = 0.0


class MasterScheduler(Policy):
    """Gives live strategies time in turn, by the number of their ready operators (MAV §4.14, Alg. 3).

    A turn has ``quantum`` seconds for each ready operator, times 1 + the weight of the worst violated class of the
    strategy's queries (which Alg. 3 forgets). Operators count, not paths or segments: a query that is cut finer must
    not get more. A strategy pays for its steps with their predicted time: overhead, and cost times tuples. Predictions
    are pure, and right on average, because costs are measured. A step is never interrupted, so a strategy may run
    beyond its turn. If another strategy waits meanwhile, it owes that time in its next turns.

    A strategy sees the whole graph, but only its own operators are ready, and notices tell of these alone. An operator
    that several queries need belongs to the strategy of the query with the greatest class weight. (Among equals, one
    that has a strategy comes first, then the one that was added first.) If a strategy asks for operators of another
    one, they are taken out of the step: their tuples wait in their queues. So a query runs by its own strategy from
    where it leaves shared work.

    Args:
        policy: Schedules the queries without a strategy.
        make: Makes a strategy's policy from its name; by default any policy of the registry.
        quantum: Seconds for each ready operator.

    >>> from freshet.policies import FirstComeFirstServed
    >>> from freshet.simulation.view import RecordView
    >>> view, master = RecordView(), MasterScheduler(FirstComeFirstServed())
    >>> for name in ("plain", "quick"):
    ...     (number,) = view.add(name, [(0.1, 1.0)])
    ...     view.operators[number].pending, view.ready[number] = 1, None
    >>> master.assign("quick", "pcs(10)")
    >>> master.decide(view).steps, master.decide(view).steps
    ((Step(nodes=(0,), rows=None),), (Step(nodes=(1,), rows=10),))
    """

    name: ClassVar[str] = "master"
    rule = "strategies in turn"

    def __init__(self, policy: Policy, *, make: Callable[[str], Policy] = create, quantum: float = QUANTUM) -> None:
        if not quantum > 0.0:
            raise UserError(f"a quantum of {quantum} s is empty: use more than 0")
        self._make, self._quantum = make, quantum
        self._first = policy
        self._assigned: dict[str, Assigned] = {}
        self._news: dict[str, Assigned | None] = {}
        """What was assigned since the last decision."""
        self._live: dict[str | None, LiveStrategy] = {}
        self._owners: dict[int, LiveStrategy] = {}
        """The strategies of operators that were looked up."""
        self._current: LiveStrategy | None = None

    # What others assign

    def assign(self, query: str, strategy: str | None, weight: float = 0.0) -> None:
        """Schedules a query by a strategy from the next decision on; None: by the policy for queries without one.

        Args:
            query: Its name; it may be added later, and keeps its strategy if it is dropped and added again.
            strategy: A policy as users write it, for example ``"pcs"`` or ``"segment(5000)"``.
            weight: The weight of its most important class, for work that it shares.

        Raises:
            UserError: There is no such policy.
        """
        if strategy is not None and strategy not in self._live:
            self._make(strategy)  # refuses what is wrong here rather than in the loop
        self._news[query] = replace(self.assigned(query), strategy=strategy, weight=weight)

    def urge(self, query: str, weight: float) -> None:
        """Says which class of a query's expectations is violated now: its weight, the greatest of several; 0: none."""
        self._news[query] = replace(self.assigned(query), urgency=weight)

    def forget(self, query: str) -> None:
        """Forgets a query that will not come back."""
        self._news[query] = None

    def assigned(self, query: str) -> Assigned:
        """What is assigned to a query, also if it takes effect only with the next decision."""
        if query in self._news:
            return self._news[query] or Assigned()
        return self._assigned.get(query, Assigned())

    def strategies(self) -> Mapping[str, str]:
        """The strategy of each query that has one."""
        known = {**dict.fromkeys(self._assigned), **dict.fromkeys(self._news)}
        return {query: text for query in known if (text := self.assigned(query).strategy) is not None}

    # Notices

    def arrived(self, view: View, operators: Iterable[int]) -> None:
        """Tells each strategy of its own operators."""
        for live, numbers in self._by_owner(view, operators):
            for number in numbers:
                live.view.own.add(number)
            live.policy.arrived(live.view.of(view), numbers)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """Tells each strategy of its own operators; those that still have tuples are ready again, behind the others."""
        for live, numbers in self._by_owner(view, operators):
            for number in numbers:
                live.view.own.discard(number)
                if number in view.ready:
                    live.view.own.add(number)
            live.policy.completed(live.view.of(view), numbers)

    def changed(self, view: View, query: int) -> None:
        """Tells all strategies: a query may share operators with those of any other."""
        self._hand_over(view, (query,))

    def _by_owner(self, view: View, operators: Iterable[int]) -> Iterator[tuple[LiveStrategy, Sequence[int]]]:
        owned: dict[LiveStrategy, list[int]] = {}
        for number in operators:
            owned.setdefault(self._owner(view, number), []).append(number)
        return ((live, tuple(numbers)) for live, numbers in owned.items())

    # Who owns what

    def _owner(self, view: View, number: int) -> LiveStrategy:
        owner = self._owners.get(number)
        if owner is None:
            names = (view.queries[query].name for query in view.operators[number].queries)
            each = [self._assigned.get(name, _UNASSIGNED) for name in names]
            strategy = max(each, key=lambda one: (one.weight, one.strategy is not None)).strategy if each else None
            owner = self._owners[number] = self._strategy(view, strategy)
        return owner

    def _strategy(self, view: View, text: str | None) -> LiveStrategy:
        live = self._live.get(text)
        if live is None:
            policy = self._first if text is None else self._make(text)
            live = self._live[text] = LiveStrategy(text or policy.name, policy, StrategyView(view))
        return live

    def _hand_over(self, view: View, queries: Iterable[int]) -> None:
        """Finds out anew which strategies the operators of queries belong to, and tells all strategies."""
        queries = tuple(queries)
        numbers = tuple(dict.fromkeys(number for query in queries for number in view.queries[query].operators))
        gone = frozenset(numbers)
        for number in numbers:
            self._owners.pop(number, None)
            for live in self._live.values():
                live.view.own.discard(number)
        for number in numbers:
            if number in view.ready:
                self._owner(view, number).view.own.add(number)
        for live in list(self._live.values()):
            live.steps = deque(step for step in live.steps if gone.isdisjoint(step.nodes))
            for query in queries:
                live.policy.changed(live.view.of(view), query)
            own = [number for number in numbers if number in live.view.ready]
            if own:
                live.policy.arrived(live.view, own)

    def _take_news(self, view: View) -> None:
        """Strategies change between steps (Alg. 3, line 2)."""
        news, self._news = self._news, {}
        moved = {name for name, each in news.items() if _moves(self._assigned.get(name), each)}
        for name, each in news.items():
            if each is None:
                self._assigned.pop(name, None)
            else:
                self._assigned[name] = each
        if moved:
            self._hand_over(view, (number for number, query in enumerate(view.queries) if query.name in moved))
        self._settle_strategies()

    def _settle_strategies(self) -> None:
        """Lets go of strategies without queries, and finds the worst violated class of the others."""
        worst: dict[str | None, float] = {}
        for each in self._assigned.values():
            worst[each.strategy] = max(worst.get(each.strategy, 0.0), each.urgency)
        for text, live in list(self._live.items()):
            live.urgency = worst.get(text, 0.0)
            if text is not None and text not in worst:
                del self._live[text]

    # Decisions

    def decide(self, view: View) -> Decision:
        """The next step of the strategy whose turn it is."""
        if not self._live:
            # No notice told of what is ready: the master scheduler was not there when it came.
            self.arrived(view, list(view.ready))
        if self._news:
            self._take_news(view)
        waiting = [live for live in self._live.values() if live.view.of(view).ready]
        again: list[float] = []
        while waiting:
            live = self._turn(waiting)
            step = self._step(view, live, again)
            if step is not None:
                if len(waiting) > 1:
                    live.seconds -= predicted(view, step)
                return Decision.run(step)
            # It wants to run nothing now: its turn ends.
            live.seconds = min(live.seconds, 0.0)
            waiting.remove(live)
        return Decision((), min(again, default=None))

    def _turn(self, waiting: Sequence[LiveStrategy]) -> LiveStrategy:
        """The strategy whose turn it is, or to which it passes on."""
        current = self._current
        if current in waiting and current is not None and current.seconds > 0.0:
            return current
        order = list(self._live.values())
        place = order.index(current) + 1 if current in order else 0
        if current is not None and current not in waiting:
            current.seconds = min(current.seconds, 0.0)
        ring = [live for live in (*order[place:], *order[:place]) if live in waiting]
        turns = {live: self._quantum * len(live.view.ready) * (1.0 + live.urgency) for live in ring}
        # Whole rounds in which everybody only pays off what it owes are passed over at once.
        rounds = min(max(0, math.floor(-live.seconds / turns[live])) for live in ring)
        for live in ring:
            live.seconds += rounds * turns[live]
        while True:
            for live in ring:
                live.seconds += turns[live]
                if live.seconds > 0.0:
                    self._current = live
                    return live

    def _step(self, view: View, live: LiveStrategy, again: list[float]) -> Step | None:
        """The next step of a strategy with an operator that is ready; None if it wants to run nothing now."""
        ready = live.view.ready
        for fresh in (False, True):
            if fresh:
                decision = live.policy.decide(live.view)
                again += [] if decision.again is None else [decision.again]
                live.steps.extend(decision.steps)
            while live.steps:
                step = self._own(view, live, live.steps.popleft())
                if not ready.keys().isdisjoint(step.nodes):
                    return step
        return None

    def _own(self, view: View, live: LiveStrategy, step: Step) -> Step:
        """A step without the operators of other strategies."""
        if len(self._live) == 1:
            return step
        nodes = tuple(number for number in step.nodes if self._owner(view, number) is live)
        return step if len(nodes) == len(step.nodes) else Step(nodes, step.rows)

    # Reasons

    def why(self, view: View, decision: Decision) -> Reason:
        """The reason of the strategy that decided, under its name; of the policy for other queries, its own."""
        live = self._current
        if live is None or not decision.actions:
            return super().why(view, decision)
        reason = live.policy.why(live.view.of(view), decision)
        turn = {"strategies": len(self._live), "turn_s": live.seconds}
        policy = reason.policy if live is self._live.get(None) else live.text
        return replace(reason, policy=policy, figures={**reason.figures, **turn})


_UNASSIGNED: Final = Assigned()


def _moves(before: Assigned | None, after: Assigned | None) -> bool:
    """Whether operators may go to another strategy."""
    old, new = before or _UNASSIGNED, after or _UNASSIGNED
    return (old.strategy, old.weight) != (new.strategy, new.weight)


def predicted(view: View, step: Step) -> float:
    """Expected seconds of a step: its overhead, and the cost of the tuples that each of its operators gets.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(seconds_per_step=1.0); path = view.add("q", [(0.1, 0.5), (0.2, 1.0)])
    >>> view.operators[0].pending = 100
    >>> predicted(view, Step(path)), predicted(view, Step(path, rows=10))
    (21.0, 3.0)
    """
    operators = view.operators
    seconds = view.overhead(step.nodes)
    rows: dict[int, float] = {}
    # An operator has a greater number than those that it reads.
    for number in sorted(step.nodes):
        each = operators[number]
        waiting = each.pending if step.rows is None else min(each.pending, step.rows * each.ports)
        rows[number] = waiting + sum(rows.get(source, 0.0) * operators[source].selectivity for source in each.inputs)
        seconds += rows[number] * each.cost
    return seconds
