"""What the fast loop sees of the network: the view of its policy, and steps cut into chains."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from freshet.engine.board import Board
from freshet.model import InstanceView, QueryView
from freshet.quality import OperatorStatistics, OverheadStatistics
from freshet.simulation.chains import FastChain
from freshet.simulation.executor import Profile, way_of
from freshet.simulation.fast_queues import FastEdge, FastOperator
from freshet.simulation.world import SimulatedQuery


@dataclass(slots=True)
class FastView:
    """What the policy sees."""

    operators: list[FastOperator]
    queries: Sequence[QueryView]
    board: Board
    ready: dict[int, None] = field(default_factory=dict)
    now: float = 0.0
    deciding: float = 0.0
    workers: int = 1
    idle_workers: int = 1
    instances: Sequence[InstanceView] = ()

    def overhead(self, nodes: Collection[int] = ()) -> float:
        return self.board.overhead(nodes)


@dataclass(frozen=True, slots=True)
class FastShape:
    """Operators that run together, cut into chains as the engine cuts them."""

    nodes: tuple[int, ...]
    chains: tuple[FastChain, ...]
    fused: tuple[FastEdge, ...]

    def fits(self) -> bool:
        """Whether all of them would run now, in exactly this way."""
        for edge in self.fused:
            if edge.end != edge.next:
                return False
        for chain in self.chains:  # noqa: SIM110 (faster)
            # Chains that others feed run together with those.
            if not chain.first.pending and not chain.fed:
                return False
        return True


def board_of(queries: Sequence[SimulatedQuery], profiles: Mapping[str, Profile], overhead: float, call: float) -> Board:
    """The engine's record of the network and of overheads, without what waits."""
    calls = OverheadStatistics.given(overhead + call)
    board = Board(lambda stream, first, end: 0, partial(way_of, call), calls=calls)
    for query in queries:
        board.add(query.query())
    for operator in board.operators:
        profile = profiles[operator.node.name]
        operator.statistics = OperatorStatistics.given(profile.cost, profile.selectivity)
    board.learn()
    return board
