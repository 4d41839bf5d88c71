"""The parts of ``freshet bench periodic`` that need no Spark, and a small run that does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from freshet import App
from freshet.bench.periodic import periodic
from freshet.bench.periodic.answers import AnswerCheck
from freshet.bench.periodic.kills import killed_answers
from freshet.bench.periodic.managing import figures_of
from freshet.bench.periodic.rig import PeriodicRig, PeriodicRun
from freshet.bench.periodic.sides import SIDES
from freshet.bench.periodic.table2 import TABLE, Table2, dealt
from freshet.bench.stage import Stage
from freshet.kernels.in_parts import LITTLE
from freshet.model import InstanceView, View
from freshet.model.promises.keep import Timing
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel
from freshet.quality.periodic import InstanceFigures, LevelDemand, average_levels, balanced_levels, fair_levels
from freshet.testing import LocalRun
from freshet.testing.local_run import START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BED = Table2(400.0, streams=2)


class SomeKept:
    """Keeps other shares of every instance."""

    def __init__(self) -> None:
        self._draw = np.random.default_rng(5)

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Nothing to note."""

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        """Nothing to note."""

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[tuple[str, int], InstanceLevel]:
        return {
            each.key: InstanceLevel({part.reader: float(self._draw.uniform(0.3, 1.0)) for part in each.inputs})
            for each in view.instances
        }


@contextmanager
def played() -> Iterator[LocalRun]:
    """The workload in process, thinned."""
    app = App("p")
    app.table(TABLE, "known.csv", schema="id int")
    for name in BED.names:
        app.stream(name, "id int, value double, type string")
    for name, text in BED.texts.items():
        app.query(name, text, overload=["defer", "thin"])
    with LocalRun(app, tables={TABLE: BED.known.to_pylist()}) as run:
        run.engine._periodic.levels = SomeKept()
        for at, chunk in BED.arrivals(1.0, 8.0, 1):
            for stream, rows in chunk.items():
                run.push(stream, rows, at=START + at)
            run.turn()
        run.heartbeat("s0", START + 8.0)
        assert run.drain()
        yield run


def test_answers_are_right_and_a_wrong_one_is_found() -> None:
    with played() as run:
        instances, check = run.log.instances(), AnswerCheck(run.log, BED)
        found = check.all(instances)
        assert found.checked > 20
        assert found.wrong == 0
        assert found.thinned == found.checked
        for kind in ("pairs", "known", "types"):
            one = next(each for each in reversed(instances) if each.query.startswith(kind))
            [edge, *_] = sorted(one.kept)
            other = 0.1
            check._ledger.add((edge, other))
            assert not check.is_right(replace(one, kept={**one.kept, edge: other})), kind
            assert not check.is_right(replace(one, rows=0)), kind
        # What the record says and the ledger does not.
        assert not check.is_right(replace(one, kept={edge: 0.123456}))


def test_all_dealings_have_the_tables_of_the_paper() -> None:
    texts = [sorted(table.text() for table in dealt(seed)) for seed in range(10)]
    assert all(each == ["proportional"] * 10 + ["strict"] * 4 + ["tolerant"] * 10 for each in texts)


Levels = Callable[[Sequence[LevelDemand]], dict[str, float]]


def ideal(rule: Levels, load: float, fixed: float) -> tuple[float, float]:
    """The mean quality and its deviation, if costs are equal and known: of each two seconds 24 instances are due at
    once, and 8 more in the second where nothing else is. Of the work that is due at once, some seconds are ``fixed``:
    no level makes them shorter."""
    means, deviations = [], []
    for tables in map(dealt, range(10)):
        demands = [
            LevelDemand(
                str(number),
                1.0,
                lambda level, table=table: (fixed + (load - fixed) * table.kept(level)) / 24,  # type: ignore[misc]
            )
            for number, table in enumerate(tables)
        ]
        levels = [*rule(demands).values(), *[1.0] * 8]
        means.append(np.mean(levels))
        deviations.append(np.std(levels))
    return float(np.mean(means)), float(np.mean(deviations))


@pytest.mark.parametrize(
    ("rule", "load", "fixed", "over_best_effort", "deviation"),
    [
        (fair_levels, 1.2, 0.0, 1.066, 0.039),
        (fair_levels, 1.5, 0.0, 1.129, 0.088),
        (balanced_levels, 1.2, 0.0, 1.082, 0.040),
        (balanced_levels, 1.5, 0.0, 1.162, 0.093),
        (average_levels, 1.2, 0.0, 1.099, 0.057),
        (average_levels, 1.5, 0.0, 1.192, 0.157),
        (fair_levels, 1.2, 0.15, 1.053, 0.045),
        (fair_levels, 1.5, 0.15, 1.099, 0.101),
        (balanced_levels, 1.2, 0.15, 1.074, 0.048),
        (balanced_levels, 1.5, 0.15, 1.131, 0.105),
        (fair_levels, 1.2, 0.3, 1.036, 0.054),
        (fair_levels, 1.5, 0.3, 1.058, 0.119),
        (balanced_levels, 1.2, 0.3, 1.059, 0.057),
        (balanced_levels, 1.5, 0.3, 1.091, 0.123),
    ],
)
def test_how_much_better_than_best_effort_ideal_levels_are(
    rule: Levels, load: float, fixed: float, over_best_effort: float, deviation: float
) -> None:
    """Best effort has as many of the 24 in time as fit, at quality 1, and the others not at all."""
    mean, found = ideal(rule, load, fixed)
    best_effort = (24 / load + 8) / 32
    assert mean / best_effort == pytest.approx(over_best_effort, abs=0.002)
    assert found == pytest.approx(deviation, abs=0.002)


def run_of(quality: float, *, late: bool = False) -> PeriodicRun:
    one = InstanceFigures("q", 2.0, 3.0, 4.0 if late else 2.5, 0.0 if late else quality, predicted=0.55, took=0.5)
    return PeriodicRun((one, replace(one, sampling=0.1)))


def test_figures_compare_sides_at_both_loads() -> None:
    found = {
        (side, load): [run_of(0.9 if side == "dynamic" else 0.6, late=side == "best-effort" and load > 1.3)] * 2
        for side in SIDES
        for load in (1.2, 1.5)
    }
    found["best-effort", 1.5][1] = run_of(0.6)
    figures = figures_of(found)
    assert figures["quality_dynamic_vs_feedback_120"].middle == pytest.approx(1.5)  # type: ignore[union-attr]
    assert figures["quality_best_effort_150"].middle == pytest.approx(0.3)  # type: ignore[union-attr]
    assert figures["missed_dynamic_150"].middle == 0.0  # type: ignore[union-attr]
    assert figures["time_error_p50"].middle == pytest.approx(0.1)  # type: ignore[union-attr]
    assert figures["sampling_share_dynamic"].middle == pytest.approx(0.1 / 1.1)  # type: ignore[union-attr]


class NoTime(SomeKept):
    """Instances are to keep most of their windows, and have no time for more than the first part."""

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[tuple[str, int], InstanceLevel]:
        timing = Timing(expected=1.0, may=1e-9)
        return {key: replace(level, timing=timing) for key, level in super().assign(view, chosen).items()}


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_instances_in_parts_answer_what_they_have_read(spark: SparkSession, tmp_path: Path) -> None:
    with PeriodicRig(spark, tmp_path / "state", BED) as rig:
        rig._order.levels = NoTime()
        rig.play(BED.arrivals(1.0, 5.0, 1), time.time() + 0.3, 5.0)
        rig.engine.work_off()
        found, instances = rig.answers(), rig.log.instances()
    assert found.wrong == 0
    assert found.thinned == found.checked >= 6
    assert {share for one in instances for share in one.kept.values() if not 0.3 * LITTLE <= share <= LITTLE} == set()


@pytest.mark.spark
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.long)])
def test_answers_after_kills_are_those_of_log_minus_ledger(tmp_path: Path, kills: int) -> None:
    found, ended_early = killed_answers(Stage(tmp_path), kills=kills, rate=2_000.0)
    assert 0 <= ended_early <= found.checked
    assert found.wrong == 0
    assert 0 < found.thinned <= found.checked


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_panes_cost_less_than_windows(spark: object, tmp_path: Path) -> None:
    result = periodic(Stage(tmp_path), repetitions=0, kills=0, releases=5, window=10, rate=5_000)
    assert result.figures["answers_different"] == result.figures["answers_wrong"] == 0
    assert result.figures["pane_cost_vs_window"] > 0
