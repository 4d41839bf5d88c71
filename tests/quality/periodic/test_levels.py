"""Levels by every deadline in order (RT §4.3, Fig. 6-7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model.promises.quality_table import QualityTable
from freshet.quality.periodic import (
    InstanceFigures,
    LevelDemand,
    OperatorCost,
    PlanStep,
    PlanTime,
    PredictedLevels,
    ReadyInstance,
    average_levels,
    balanced_levels,
    fair_levels,
    pseudo_deadlines,
)

LINES = {"tolerant": [[0.25, 0.7], [1, 1]], "proportional": [[0.7, 0.7], [1, 1]], "strict": [[0.97, 0.7], [1, 1]]}
"""Straight lines through (0, 0), the points of RT Fig. 6 and (1, 1)."""


def linear(seconds: float) -> Callable[[float], float]:
    return lambda level: seconds * level


def with_overhead(seconds: float) -> Callable[[float], float]:
    return lambda level: seconds + level


def by_table(table: QualityTable, seconds: float) -> Callable[[float], float]:
    return lambda level: seconds * table.kept(level)


def stepped(demands: Sequence[LevelDemand], available: float, delta: float = 1e-3) -> float:
    """RT Fig. 7 as corrected: the level falls while the estimate is above the time available."""
    level = 1.0
    while sum(demand.seconds(level) for demand in demands) > available:
        level -= delta
    return level


def dealt(load: float, tables: dict[str, QualityTable]) -> list[LevelDemand]:
    """Table 2's 10, 10 and 4 queries of equal cost, all due in a second."""
    counts = {"tolerant": 10, "proportional": 10, "strict": 4}
    names = [name for name, count in counts.items() for _ in range(count)]
    return [LevelDemand(f"q{i}", 1.0, by_table(tables[name], load / 24)) for i, name in enumerate(names)]


PRESETS = {name: QualityTable.parse(name) for name in LINES}


def test_every_deadline_counts_in_order() -> None:
    found = fair_levels([LevelDemand("a", 0.5, linear(0.8)), LevelDemand("b", 2.0, linear(0.2))])
    assert found == pytest.approx({"a": 0.625, "b": 1.0}, abs=1e-4)
    # With one time available for all, both would have level 1, and the first would be late.
    assert stepped([LevelDemand("a", 0.5, linear(0.8)), LevelDemand("b", 2.0, linear(0.2))], 2.0) == 1.0


def test_fair_or_average() -> None:
    demands = [LevelDemand("a", 5.0, linear(1.0)), LevelDemand("b", 5.0, linear(9.0))]
    assert fair_levels(demands) == pytest.approx({"a": 0.5, "b": 0.5}, abs=1e-4)
    assert average_levels(demands) == pytest.approx({"a": 1.0, "b": 4 / 9}, abs=1e-4)
    # Losses by their cube: those of the last second are equal, (1 - a)^2 / 1 = (1 - b)^2 / 9, but for a piece of 1/48.
    assert balanced_levels(demands) == pytest.approx({"a": 0.8214, "b": 0.4643}, abs=1 / 48)


@pytest.mark.parametrize(("load", "level"), [(1.2, 0.910), (1.5, 0.796)])
def test_the_common_level_of_the_presets(load: float, level: float) -> None:
    assert list(fair_levels(dealt(load, PRESETS)).values()) == pytest.approx([level] * 24, abs=1e-3)


@pytest.mark.parametrize(("load", "quality"), [(1.2, 0.765), (1.5, 0.655)])
def test_a_uniform_drop_is_worth_less(load: float, quality: float) -> None:
    """What an ideal feedback controller reaches: the same share of everything."""
    worths = [PRESETS[name].worth(1.0 / load) for name in ("tolerant", "proportional", "strict")]
    assert (10 * worths[0] + 10 * worths[1] + 4 * worths[2]) / 24 == pytest.approx(quality, abs=1e-3)


def test_straight_lines_through_the_points_of_fig_6() -> None:
    tables = {name: QualityTable.parse(points) for name, points in LINES.items()}
    assert fair_levels(dealt(1.5, tables))["q0"] == pytest.approx(137 / 177, abs=1e-4)


@given(
    st.lists(
        st.tuples(st.floats(0.01, 3.0), st.sampled_from(sorted(PRESETS))),
        min_size=1,
        max_size=12,
    ),
    st.floats(0.05, 10.0),
)
def test_bisection_finds_what_stepping_finds(instances: list[tuple[float, str]], available: float) -> None:
    demands = [
        LevelDemand(str(number), available, by_table(PRESETS[name], seconds))
        for number, (seconds, name) in enumerate(instances)
    ]
    wanted = stepped(demands, available)
    assert all(wanted - 1e-5 <= level <= wanted + 1.1e-3 for level in fair_levels(demands).values())


demand_lists = st.lists(st.tuples(st.floats(0.2, 2.0), st.floats(0.05, 3.0)), min_size=1, max_size=8)


@given(demand_lists)
def test_everybody_is_in_time_and_nobody_can_rise_alone(given_: list[tuple[float, float]]) -> None:
    demands = [LevelDemand(str(i), due, linear(seconds)) for i, (seconds, due) in enumerate(given_)]
    found = fair_levels(demands)

    def in_time(levels: dict[str, float]) -> bool:
        taken = 0.0
        for demand in sorted(demands, key=lambda each: each.due):
            taken += demand.seconds(levels[demand.key])
            if taken > demand.due + 1e-6:
                return False
        return True

    assert in_time(found)
    for key, level in found.items():
        others = {other: min(value, level) for other, value in found.items()}
        assert level > 0.99 or not in_time(others | {key: level + 0.002})


@given(demand_lists)
def test_the_average_is_at_least_that_of_fair_levels(given_: list[tuple[float, float]]) -> None:
    demands = [LevelDemand(str(i), due, linear(seconds)) for i, (seconds, due) in enumerate(given_)]
    assert sum(average_levels(demands).values()) >= sum(fair_levels(demands).values()) - 1e-3 * len(demands)


@pytest.mark.parametrize("load", [1.2, 1.5])
def test_balanced_levels_are_better_on_average_than_fair_ones_and_more_even_than_the_best_average(load: float) -> None:
    demands = dealt(load, PRESETS)
    fair, balanced, average = (
        np.array(list(rule(demands).values())) for rule in (fair_levels, balanced_levels, average_levels)
    )
    assert fair.mean() + 0.01 < balanced.mean() < average.mean()
    assert fair.std() < balanced.std() < 0.7 * average.std()
    assert sum(demand.seconds(balanced[number]) for number, demand in enumerate(demands)) <= 1.0 + 1e-4


def test_what_cannot_be_in_time_gives_way_to_the_others() -> None:
    """Their overheads alone do not fit: the longest is left out."""
    demands = [LevelDemand(str(number), 1.0, with_overhead(0.3 + 0.1 * number)) for number in range(3)]
    found = fair_levels(demands)
    assert found["2"] == 0.0
    assert found["0"] == pytest.approx(0.15, abs=1e-3)


def test_pseudo_deadlines_add_up() -> None:
    assert pseudo_deadlines([1.0, 2.0, 3.0], [6.0] * 3) == [1.0, 3.0, 6.0]
    assert pseudo_deadlines([0.5, 0.2], [0.5, 2.0]) == [0.5, 0.7]


def ready(key: str, seconds: float, due: float, **more: object) -> ReadyInstance:
    plan = PlanTime((PlanStep("sum", ("s",), OperatorCost.given([seconds / 1000], 0.0)),))
    return ReadyInstance(key, due, {"s": 1000}, plan, **more)  # type: ignore[arg-type]


def test_releases_ahead_take_part_of_the_time() -> None:
    rule = PredictedLevels()
    now, later = ready("now", 1.0, 2.0), ready("later", 1.0, 1.5)
    assert rule.assign(0.0, [now])["now"].level == 1.0
    found = rule.assign(0.0, [now], [ready("later", 1.5, 1.9)])
    assert found.keys() == {"now"}
    assert found["now"].level == pytest.approx(0.8, abs=1e-3)
    assert rule.assign(0.0, [now], [later])["now"].level == pytest.approx(1.0)


def test_what_may_not_be_thinned_takes_its_time_from_the_others() -> None:
    found = PredictedLevels().assign(0.0, [ready("firm", 0.5, 1.0, thin=False), ready("soft", 1.0, 1.0)])
    assert found["firm"].level == 1.0
    assert found["soft"].level == pytest.approx(0.5, abs=1e-3)
    assert found["soft"].kept["s"] == pytest.approx(0.5, abs=1e-3)


def test_what_has_begun_goes_first() -> None:
    running = ready("running", 0.4, 5.0, left=0.4, thin=False)
    found = PredictedLevels().assign(0.0, [ready("soft", 1.0, 1.0), running])
    assert found["soft"].level == pytest.approx(0.6, abs=1e-3)


def told(rule: PredictedLevels, *times: tuple[float, float]) -> PredictedLevels:
    """A rule that has seen instances with these predicted and actual times."""
    for predicted, took in times:
        rule.finished(InstanceFigures("q", 0.0, 1.0, 0.5, 1.0, predicted=predicted, took=took))
    return rule


def test_what_has_begun_counts_with_what_is_left_of_it() -> None:
    for left, level in ((0.0, 1.0), (0.4, 0.6), (5.0, 0.0)):
        running = ready("running", 0.8, 5.0, left=left, thin=False)
        found = PredictedLevels().assign(0.0, [ready("soft", 1.0, 1.0), running])
        assert found["soft"].level == pytest.approx(level, abs=1e-3)


def test_several_workers_do_as_much_more_but_none_is_faster() -> None:
    both = [ready("one", 0.8, 1.0), ready("two", 0.8, 1.0)]
    assert {each.level for each in PredictedLevels().assign(0.0, both, workers=2).values()} == {1.0}
    assert PredictedLevels().assign(0.0, both)["one"].level == pytest.approx(0.625, abs=1e-3)
    alone = PredictedLevels().assign(0.0, [ready("long", 0.8, 0.5)], workers=4)["long"]
    assert alone.level == pytest.approx(0.625, abs=1e-3)


def test_times_that_were_too_short_are_stretched() -> None:
    rule = told(PredictedLevels(), *[(0.1, 0.12)] * 20)
    assert [rule.margin, rule.free] == pytest.approx([0.2, 0.0])
    assert rule.assign(0.0, [ready("q", 1.0, 0.6)])["q"].level == pytest.approx(0.5, abs=1e-3)


def test_the_error_of_one_long_instance_is_kept_free_before_a_deadline() -> None:
    short, long = [(0.01, 0.01)] * 8, [(0.1, 0.09), (0.1, 0.11)] * 8
    rule = told(PredictedLevels(), *short, *long)
    assert [rule.margin, rule.free] == pytest.approx([0.0, 0.03], rel=0.05)
    rule.free = 0.03
    many = [ready(str(number), 0.1, 0.53) for number in range(10)]
    assert {round(each.level, 3) for each in rule.assign(0.0, many).values()} == {0.5}
    assert told(rule, (0.1, 0.8)).free < 0.15  # it was disturbed


def test_levels_stay_where_they_are_while_they_still_fit() -> None:
    rule = PredictedLevels()
    rule.free = 0.015
    many = [ready(str(number), 0.1, 0.515) for number in range(10)]
    assert rule.assign(0.0, many)["9"].level == pytest.approx(0.5, abs=1e-3)
    # The first took 0.005 s longer than planned: that is what some time is kept free for.
    assert rule.assign(0.055, many[1:])["9"].level == pytest.approx(0.5, abs=1e-3)
    assert rule.assign(0.15, many[2:])["9"].level == pytest.approx((0.365 - 0.015) / 0.8, abs=1e-3)
    # The next ones take nothing.
    assert rule.assign(0.15, many[6:])["9"].level == pytest.approx((0.365 - 0.03) / 0.4, abs=1e-3)
