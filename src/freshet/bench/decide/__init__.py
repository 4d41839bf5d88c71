"""``freshet bench decide``: what a decision costs, from a hundred to a hundred thousand queries."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from freshet.bench.decide.schedules import BOXES, schedule_figures
from freshet.bench.figures import Spread, quartiles
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.policies import Policy, create
from freshet.simulation.view import RecordView

POLICIES: Final = ("fas-mcq", "rb-mcq", "rr", "fcfs")
QUERIES: Final = (100, 1_000, 10_000, 100_000)
BATCHES: Final = 20


@bench("What a decision costs, from a hundred to a hundred thousand queries.", takes="a few minutes")
def decide(
    stage: Stage,
    policies: Annotated[str, typer.Option(help="Names of policies, separated by commas.")] = ",".join(POLICIES),
    queries: Annotated[str, typer.Option(help="Numbers of queries, with commas.")] = ",".join(map(str, QUERIES)),
    boxes: Annotated[str, typer.Option(help="Numbers of boxes, with commas.")] = ",".join(map(str, BOXES)),
    decisions: Annotated[int, typer.Option(min=100, help="Decisions to time for each figure.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of costs, selectivities and queue lengths.")] = 0,
) -> Result:
    """Half of the queries wait. One decision is `decide`, the notice that the chosen query ran, and the notice that
    another query received tuples, so that as many wait as before. The time is processor time of the policy alone,
    without the engine; a few dictionary operations of the loop are included. `decide_growth_POLICY` is the last figure
    over the first.

    Schedulers that plan many boxes at once run 4,000 tuples/s through simulated queries of ten boxes each:
    `decide_us_SCHEDULER_BOXES_boxes` per decision, `decide_us_per_tuple_...`, and `decide_share_bucketing_BOXES`, the
    share of the run time that bucketing with push-through spends deciding (the thesis has 0.04 for 10,000 boxes).
    """
    figures: dict[str, float | Spread] = {}
    counts = [int(count) for count in queries.split(",")]
    for name in policies.split(","):
        measured = []
        for count in counts:
            stage.say(f"{name}, {count:,} queries ...")
            measured.append(quartiles(_Board(create(name), count, seed).time(decisions)))
            figures[f"decide_us_{name}_{count}"] = measured[-1]
        figures[f"decide_growth_{name}"] = measured[-1].middle / measured[0].middle
    figures.update(schedule_figures(stage, [int(count) for count in boxes.split(",") if count], seed=seed))
    return Result.of(figures, {"waiting_share": 0.5, "operators_per_query": 3, "seed": seed})


class _Board:
    """Queries, half of which wait; whenever one is served, another receives tuples."""

    def __init__(self, policy: Policy, count: int, seed: int) -> None:
        self.policy, self.view = policy, RecordView()
        self.random = random.Random(seed)
        for number in range(count):
            cost, selectivity = self.random.choice((1e-6, 2e-6, 4e-6)), self.random.uniform(0.1, 1.0)
            self.view.add(f"q{number}", [(cost, selectivity), (cost, selectivity), (cost, 1.0)])
            policy.changed(self.view, number)
        firsts = [query.operators[0] for query in self.view.queries]
        self.random.shuffle(firsts)
        self.idle = firsts[count // 2 :]
        self._arrive(firsts[: count // 2])

    def _arrive(self, numbers: Sequence[int]) -> None:
        view = self.view
        for number in numbers:
            operator = view.operators[number]
            view.now += 1e-6
            operator.pending, operator.head_arrival = self.random.randint(1, 50), view.now
            view.ready[number] = None
        self.policy.arrived(view, numbers)

    def time(self, decisions: int) -> list[float]:
        """Microseconds of processor time per decision, batch by batch."""
        # Until most queries have been asked for their plan once, as in a run that has lasted for a while.
        self._serve(decisions // 10 + 2 * len(self.view.queries))
        size = decisions // BATCHES
        times = []
        for _ in range(BATCHES):
            started = time.process_time()
            self._serve(size)
            times.append((time.process_time() - started) / size * 1e6)
        return times

    def _serve(self, decisions: int) -> None:
        view, policy, idle = self.view, self.policy, self.idle
        for _ in range(decisions):
            nodes = policy.decide(view).steps[0].nodes
            number = nodes[0]
            del view.ready[number]
            view.operators[number].pending = 0
            policy.completed(view, nodes)
            place = self.random.randrange(len(idle))
            idle[place], other = number, idle[place]
            self._arrive((other,))
