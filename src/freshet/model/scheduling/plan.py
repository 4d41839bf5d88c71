"""Decisions: what a policy asks for."""

from __future__ import annotations

from dataclasses import dataclass, field

from freshet.model.promises.keep import Timing


@dataclass(frozen=True, slots=True)
class Step:
    """Nodes, connected or not, that run as one unit over what waits at their in-edges, at most ``rows`` tuples of each.

    Edges between them are fused: tuples pass on without a queue. What a node outputs for a reader that is not in the
    step goes to that reader's queue.

    With ``holes`` it runs over what was left behind in front of its first node, instead of what waits there.
    """

    nodes: tuple[int, ...]
    rows: int | None = None
    holes: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class RunStep:
    """The action of running a step."""

    step: Step


@dataclass(frozen=True, slots=True)
class Shed:
    """The action of thinning what comes in for a query (MAV §4.3): from the next unit on, this share of the tuples at
    its own edges is kept. It takes effect at once, before the steps of the same decision are bound.

    Args:
        query: Name of the query; its promises must allow it.
        ratio: Share to keep, in (0, 1]; 1 keeps everything.
        reason: Why, in words: the ledger keeps it.
    """

    query: str
    ratio: float
    reason: str = "overload"


@dataclass(frozen=True, slots=True)
class InstanceRun:
    """An instance of a periodic query that is to run.

    Args:
        key: Name of the query, and the release in microseconds.
        kept: Share of the tuples to keep, by the name of the edge's cursor; other edges keep everything.
        quality: What the answer is worth at these shares.
        reason: Why tuples are left out, in words: the ledger keeps it.
        timing: How long it may take; None: nobody minds. Where it is too slow, it keeps less.
    """

    key: tuple[str, int]
    kept: tuple[tuple[str, float], ...] = ()
    quality: float = 1.0
    reason: str = "level"
    timing: Timing | None = None


@dataclass(frozen=True, slots=True)
class RunInstances:
    """The action of running instances of periodic queries, at most one of each query, together as one unit."""

    runs: tuple[InstanceRun, ...]


@dataclass(frozen=True, slots=True)
class Abandon:
    """The action of giving up an instance that waits: there will be no answer, and the ledger says so."""

    key: tuple[str, int]
    reason: str = "late"


@dataclass(frozen=True, slots=True)
class LeaveBehind:
    """The action of passing over tuples at the head of a node's queues: they become holes, and steps begin behind them.
    They are not lost; a step with ``holes`` runs them.

    Args:
        node: The node that they wait for.
        before: Tuples that expire before this time are passed over, up to the first that does not.
        reason: Why, in words.
    """

    node: int
    before: float
    reason: str = "late"


@dataclass(frozen=True, slots=True)
class Preempt:
    """The action of ending the unit that runs. Its current part ends (in simulated time: the tuple that it is at) and
    takes effect with the parts before. The rest of its train waits again."""


Action = RunStep | Shed | RunInstances | Abandon | LeaveBehind | Preempt
"""What a policy may ask for; other kinds of actions join this union."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions in the order in which they are to be carried out, and when to ask again.

    Args:
        actions: Empty: nothing is worth doing now.
        again: The time at which to ask again if nothing happens before; None: soon.

    >>> Decision.run(Step((0, 1)), Step((2,))).steps
    (Step(nodes=(0, 1), rows=None), Step(nodes=(2,), rows=None))
    """

    actions: tuple[Action, ...] = ()
    again: float | None = None

    @classmethod
    def run(cls, *steps: Step) -> Decision:
        """Runs steps, one after the other."""
        return cls(tuple(map(RunStep, steps)))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that it runs."""
        return tuple(action.step for action in self.actions if isinstance(action, RunStep))

    @property
    def sheds(self) -> tuple[Shed, ...]:
        """The queries that it thins."""
        return tuple(action for action in self.actions if isinstance(action, Shed))

    @property
    def abandoned(self) -> tuple[Abandon, ...]:
        """The instances that it gives up."""
        return tuple(action for action in self.actions if isinstance(action, Abandon))

    @property
    def left_behind(self) -> tuple[LeaveBehind, ...]:
        """What it passes over."""
        return tuple(action for action in self.actions if isinstance(action, LeaveBehind))

    @property
    def preempts(self) -> bool:
        """Whether it ends what runs."""
        return any(isinstance(action, Preempt) for action in self.actions)

    @property
    def work(self) -> tuple[Step | RunInstances, ...]:
        """What it runs, in order: steps, and instances of periodic queries."""
        kinds = ((action.step if isinstance(action, RunStep) else action) for action in self.actions)
        return tuple(each for each in kinds if isinstance(each, Step | RunInstances))


NOTHING = Decision()
"""Nothing is worth doing now."""
