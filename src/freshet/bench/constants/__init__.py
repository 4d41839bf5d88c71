"""``freshet bench constants``: where the constants come from that decide how the work of a step is divided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import typer

from freshet.bench.figures import Spread, ratio
from freshet.bench.interleave import interleave
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.model import Stream, parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from freshet.spark.session.residency import ResidentSetting

WAYS: Final[Mapping[str, ResidentSetting]] = {"resident": 2, "job": "off"}
_SCHEMA: Final = "ts timestamp, k bigint, v double"
_GROUPS: Final = 1000
_EPOCH: Final = 1_699_999_200_000_000
"""A boundary of the windows."""
_NEVER: Final = 1e9
"""More tuples, and more seconds, than any train has or takes."""
_WARM: Final = 3
"""Trains of a trial that are not measured."""


class DividedWork(NamedTuple):
    """Work that one task can do, or two.

    Args:
        queries: What runs over each train, by name.
        sizes: Rows of a train.
    """

    queries: Mapping[str, str]
    sizes: tuple[int, ...]


KINDS: Final[Mapping[str, DividedWork]] = {
    "split": DividedWork(
        {f"q{number}": f"SELECT k, v * {number + 2} AS w FROM a WHERE (k + {number}) % 10 = 3" for number in range(10)},
        (10_000, 25_000, 50_000, 100_000, 200_000),
    ),
    "parts": DividedWork(
        {"q": "SELECT k, count(*) AS n, avg(v) AS mean, window_end FROM a [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY k"},
        (100_000, 500_000, 1_500_000),
    ),
}
"""``split``: the tuples of ten queries between two tasks. ``parts``: those of an aggregate with a thousand groups; a
second job puts them together."""
REMEMBERED: Final = (500_000, 4_000_000)
"""Rows that joins remember."""
_JOIN_TRAIN: Final = 50_000
_MOST_JOIN_ROUNDS: Final = 2
_QUERIES: Final = 250
"""Queries whose tuples wait while the engine looks again."""


@bench("Where the constants that decide how work is divided come from.", takes="about a quarter of an hour")
def constants(
    stage: Stage,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; each runs every size undivided and divided.")] = 5,
    trains: Annotated[int, typer.Option(min=1, help="Measured trains of a trial.")] = 8,
    share: Annotated[float, typer.Option(min=0.001, max=1.0, help="Share of the sizes that is used.")] = 1.0,
    master: Annotated[str, typer.Option(help="Spark master; it needs two cores.")] = "local[2]",
) -> Result:
    """Trains of several sizes run in one task and in two, by residents and as Spark jobs. `split_gain_WAY_ROWS` is how
    many times as fast steps of ten queries are in two tasks, `parts_gain_WAY_ROWS` the same of an aggregate of a
    thousand groups with a second job. `..._pays_from_WAY` is the least of the sizes from which on two are faster, 0 if
    that is none.

    `join_s_kept_ROWS`, `join_s_again_ROWS` and `join_s_shuffled_ROWS` are seconds of a step of a join over so many
    remembered rows: in one task that has kept them, in one that reads them again, and shuffled. `shuffle_gain_...` is
    how many times as fast the shuffle is. `look_again_share_QUERIES` is the share of a core that looking again costs
    while a policy runs nothing. The constants themselves are among the conditions.
    """
    from freshet.bench.constants.joins import JoinTrials
    from freshet.bench.constants.looks import look_figures

    figures: dict[str, float | Spread] = {}
    with stage.spark("constants", master) as session:
        trials = DivisionTrials(stage, session, rounds, trains)
        for kind, work in KINDS.items():
            sizes = [max(100, round(size * share)) for size in work.sizes]
            for way in WAYS:
                with stage.steps(f"{kind}, {way}", rounds * len(sizes)) as advance:
                    gains = {size: trials.gain(kind, way, size, advance) for size in sizes}
                figures |= {f"{kind}_gain_{way}_{size}": gain for size, gain in gains.items()}
                figures[f"{kind}_pays_from_{way}"] = pays_from({size: gain.middle for size, gain in gains.items()})
        joins = JoinTrials(stage, session, min(rounds, _MOST_JOIN_ROUNDS), trains, max(100, round(_JOIN_TRAIN * share)))
        for remembered in (max(1000, round(rows * share)) for rows in REMEMBERED):
            with stage.steps(f"join of {remembered:,} rows", min(rounds, _MOST_JOIN_ROUNDS)) as advance:
                figures |= joins.figures(remembered, advance)
        stage.say("looking again ...")
        figures |= look_figures(stage, session, _QUERIES)
    return Result.of(figures, _conditions())


def pays_from(gains: Mapping[int, float]) -> int:
    """The least size from which on all gains are above 1; 0: there is none.

    >>> pays_from({10: 1.1, 20: 0.9, 40: 1.2, 80: 1.5}), pays_from({10: 1.1, 20: 0.9})
    (40, 0)
    """
    least = 0
    for size in sorted(gains, reverse=True):
        if gains[size] <= 1.0:
            break
        least = size
    return least


@dataclass(frozen=True, slots=True)
class DivisionTrials:
    """Runs the same trains in one task and in two.

    Args:
        stage: The stage of the benchmark.
        session: Where it runs.
        rounds: How often each side runs.
        trains: Number of trains that are measured in each.
    """

    stage: Stage
    session: SparkSession
    rounds: int
    trains: int
    _numbers: Iterator[int] = field(default_factory=count)

    def gain(self, kind: str, way: str, size: int, advance: Callable[[], None]) -> Spread:
        """How many times as fast two tasks are as one."""
        sides = {str(tasks): partial(self._seconds, kind, way, size, tasks) for tasks in (1, 2)}
        found = interleave(sides, self.rounds, advance)
        return ratio(found["1"], found["2"])

    def _seconds(self, kind: str, way: str, size: int, tasks: int) -> list[float]:
        """Seconds of each of the measured steps."""
        from freshet.bench.rig.engine import EngineRig

        stream = Stream("a", parse_schema(_SCHEMA), event_time="ts")
        state, overhead = self.stage.folder / f"constants-{next(self._numbers)}", _NEVER if tasks == 1 else 0.0
        rig = EngineRig(self.session, state, [stream], most_rows=size, resident=WAYS[way], part_overhead=overhead)
        with rig:
            jobs = rig.executor.jobs
            jobs.split_tuples = jobs.split_effort = int(_NEVER) if tasks == 1 else 0
            rig.add_queries(KINDS[kind].queries)
            for number in range(_WARM + self.trains):
                rig.append({"a": _rows(number, size)})
            # A unit that only writes a state anew has no rows.
            steps = [step for step in rig.work_off() if any(run.rows_in for _, run in step.runs)]
            ways = set(rig.engine.board.calls_by_way)
        if len(steps) != _WARM + self.trains or (way == "resident") != (ways == {"resident"}):
            raise RuntimeError(f"{len(steps)} steps for {_WARM + self.trains} trains by {ways}: this means nothing")
        return [step.seconds for step in steps[_WARM:]]


def _rows(number: int, rows: int) -> pa.Table:
    draw = np.random.default_rng(number)
    stamps = pa.array(np.full(rows, _EPOCH + number)).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"ts": stamps, "k": draw.integers(0, _GROUPS, rows), "v": draw.random(rows)})


def _conditions() -> dict[str, Any]:
    from freshet.bench.constants.joins import JOIN
    from freshet.engine.admission import LOOK_AGAIN
    from freshet.kernels import shuffling, task_split
    from freshet.spark.driver import jobs

    queries: Sequence[str] = [text for work in KINDS.values() for text in work.queries.values()]
    return {
        "constants": {
            "split_tuples": jobs.SPLIT_TUPLES,
            "split_effort": jobs.SPLIT_EFFORT,
            "dealt_chains": jobs.DEALT_CHAINS,
            "second_job_s": task_split.OVERHEAD,
            "second_job_resident_s": task_split.RESIDENT_OVERHEAD,
            "parts_pay_from": task_split.rows_for_parts(2),
            "parts_pay_from_resident": task_split.rows_for_parts(2, task_split.RESIDENT_OVERHEAD),
            "keyed_rows": task_split.KEYED_ROWS,
            "keyed_state": task_split.KEYED_STATE,
            "shuffled_join_bytes": shuffling.MOST_BYTES,
            "join_train_s_per_row": shuffling.TRAIN_SECONDS,
            "join_state_s_per_row": shuffling.STATE_SECONDS,
            "shuffle_s_per_row": shuffling.SHUFFLE_SECONDS,
            "shuffle_s": shuffling.SHUFFLE_OVERHEAD,
            "look_again_s": LOOK_AGAIN,
        },
        "elsewhere": "bench state measures states that lie in parts by key, bench overhead what a step costs by way; "
        "the price of a set is what a step costs by way, learned while an application runs",
        "join": JOIN,
        "join_train": f"{_JOIN_TRAIN} rows of one input, of which each meets about one row; nothing expires",
        "queries": queries,
        "trains": f"a backlog; the first {_WARM} trains of a trial are not measured; sides take turns",
        "spread": "least and greatest of a round; figures are ratios of medians",
    }
