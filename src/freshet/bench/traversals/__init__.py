"""``freshet bench traversals``: jobs, latency and memory of the three traversals of a superbox, on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow as pa
import typer

from freshet.bench.figures import Spread, extremes, ratio
from freshet.bench.freshness.queries import make_rows
from freshet.bench.interleave import measure
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.model import ARRIVAL
from freshet.policies import Policy, create

if TYPE_CHECKING:
    from freshet.bench.traversals.rig import TraversalRig, Worked

TRAVERSALS: Final = ("min_cost", "min_latency", "min_memory")


@bench("Jobs, latency and memory of the traversals of a superbox that two queries share.", takes="about two minutes")
def traversals(
    stage: Stage,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a train.")] = 400_000,
    links: Annotated[int, typer.Option(min=1, help="Length of the arithmetic in the shared filter.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="Measured rounds; each has every traversal.")] = 5,
    trains: Annotated[int, typer.Option(min=1, help="Trains that a traversal works off in a round.")] = 3,
    warm_up: Annotated[int, typer.Option(min=1, help="Rounds before: Java compiles, and costs are learned.")] = 3,
    master: Annotated[str, typer.Option(help="Spark master; one core is one worker.")] = "local[1]",
) -> Result:
    """Two queries begin with the same expensive filter and share it (`share = "always"`). Each continues with
    arithmetic of its own that is more expensive, twice as expensive for one as for the other. Trains are worked off one
    after the other under `aaat-min-cost`, `aaat-min-latency` and `aaat-min-memory` in turn. A latency below 1 says that
    answers leave earlier, jobs below 1 that there are fewer, memory below 1 that fewer bytes wait.
    """
    from freshet.bench.traversals.rig import TraversalRig

    with (
        stage.spark("traversals", master) as session,
        TraversalRig(session, stage.folder / "state", links) as rig,
    ):
        tables = [make_rows(rows, seed=number) for number in range(trains)]
        sides = {name: _side(rig, create(f"aaat-{name.replace('_', '-')}"), tables) for name in TRAVERSALS}
        found = measure(stage, sides, rounds, warm_up)
    return Result.of(figures_of(found), _conditions(rows, links))


def _side(rig: TraversalRig, policy: Policy, tables: Sequence[pa.Table]) -> Callable[[], list[Worked]]:
    return lambda: [rig.train(policy, table) for table in tables]


def figures_of(found: Mapping[str, Sequence[Sequence[Worked]]]) -> dict[str, float | Spread]:
    """Computes figures from what each traversal did, by round and train.

    Raises:
        RuntimeError: Answers differ.
    """
    _check_answers(found)
    latency, jobs, memory = (
        {name: [[getattr(each, part) for each in trains] for trains in rounds] for name, rounds in found.items()}
        for part in ("latency", "jobs", "byte_seconds")
    )
    figures: dict[str, float | Spread] = {
        "latency_min_latency_vs_min_cost": ratio(latency["min_latency"], latency["min_cost"]),
        "jobs_min_cost_vs_min_latency": ratio(jobs["min_cost"], jobs["min_latency"]),
        "memory_min_memory_vs_min_latency": ratio(memory["min_memory"], memory["min_latency"]),
        "answers_equal": 1,
    }
    # Over the same time for all: bytes that no longer wait count as nothing.
    longest = max(each.seconds for rounds in found.values() for trains in rounds for each in trains)
    for name in found:
        figures[f"latency_ms_{name}"] = _by_round(latency[name]).times(1e3)
        figures[f"jobs_per_train_{name}"] = _by_round(jobs[name])
        figures[f"mean_kilobytes_waiting_{name}"] = _by_round(memory[name]).times(1e-3 / longest)
    return figures


def _by_round(values: Sequence[Sequence[float]]) -> Spread:
    return extremes([sum(each) / len(each) for each in values])


def _check_answers(found: Mapping[str, Sequence[Sequence[Worked]]]) -> None:
    first, *others = ([each for trains in rounds for each in trains] for rounds in found.values())
    for other in others:
        for one, two in zip(first, other, strict=True):
            for query, rows in one.answers.items():
                if not _sorted(rows).equals(_sorted(two.answers[query])):
                    raise RuntimeError(f"query {query}: answers depend on the traversal: the comparison means nothing")


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([ARRIVAL]).sort_by("id").combine_chunks()


def _conditions(rows: int, links: int) -> dict[str, Any]:
    from freshet.bench.traversals.rig import SHARE_KEPT, texts

    return {
        "queries": f"the shared filter keeps {SHARE_KEPT:g} of the rows; {len(texts(links)['slow'])} characters of SQL",
        "trains": f"{rows} rows, one train at a time, worked off before the next one comes",
        "latency": "from the append of a train to the commit of an answer, mean over the answers of both queries",
        "memory": (
            "bytes of streams and queues that some operator has not committed yet, by the time that they wait; as a "
            "mean over as long as the slowest train took"
        ),
        "answers": "all rows of both queries, train by train",
        "spread": "least and greatest of a round",
    }
