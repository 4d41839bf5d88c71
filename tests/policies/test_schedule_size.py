"""Schedules whose size is chosen by itself: what deciding takes, and as good as the best fixed size (CAR §4.4.1)."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import UserError
from freshet.policies import SlopeSlack, SlopeSlackPush, create
from freshet.policies.aurora.schedule_size import LEAST, SHARE, ScheduleSize
from freshet.reproduce.aurora.runs import (
    LARGE_RATES,
    PRICES,
    RATES,
    deep,
    fluctuating,
    large,
    overloaded,
    small,
    unbranched,
)
from freshet.reproduce.aurora.schedules import TOPOLOGY_RATES
from freshet.reproduce.trial import Trial
from freshet.simulation.fast import FastWorld
from freshet.simulation.outcome import SimulationOutcome
from freshet.simulation.view import RecordView
from freshet.simulation.workloads.aurora import AuroraWorkload

PUSHED = ("fixed-priority-push", "slope-slack-push", "bucketing-push")


def ran(bed: AuroraWorkload, policy: str) -> SimulationOutcome:
    world = FastWorld(
        bed.streams_of(), bed.queries_of(), create(policy), call=PRICES.call, operation=PRICES.operation, departs="box"
    )
    world.run()
    return world.outcome()


def loss(bed: AuroraWorkload, policy: str, sizes: tuple[int, ...]) -> float:
    """The average QoS of the best of some sizes minus that of the size that is chosen by itself."""
    best = max(ran(bed, f"{policy}({size})").qos.average for size in sizes)
    return best - ran(bed, f"{policy}(auto)").qos.average


def chosen(decision: float, steps: list[float], *, workers: int = 1) -> int:
    """N, when the latest decision took as long as this one is going to take."""
    view, size = RecordView(deciding=decision, workers=workers), ScheduleSize()
    assert size.after(view, 1, steps) == 1
    view.now += decision + steps[0]
    size.ran(view)
    return size.after(view, 1, steps)


def beforehand(decision: float, step: float, idle: float, *, schedules: int = 60) -> tuple[int, float]:
    """N after some schedules of a policy that asks beforehand, and the share of the time that deciding then takes."""
    view, size = RecordView(deciding=decision), ScheduleSize()
    count = 1
    for _ in range(schedules):
        view.now += idle * (decision + count * step)  # nothing came for a while
        count = size.before(view)
        view.now += decision
        for _ in range(count):
            view.now += step
            size.ran(view)
    return count, decision / ((1.0 + idle) * (decision + count * step))


@given(st.floats(1e-4, 0.1), st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=200))
def test_it_is_the_least_with_which_deciding_takes_its_share_of_the_time(decision: float, steps: list[float]) -> None:
    count = chosen(decision, steps)
    shares = [decision / (decision + total) for total in accumulate(steps)]
    assert count == len(steps) or shares[count - 1] <= SHARE + 1e-9
    assert count == 1 or shares[count - 2] > SHARE - 1e-9


def test_long_queues_make_short_schedules() -> None:
    assert chosen(0.001, [0.001] * 50) == 19
    assert chosen(0.001, [0.004] * 50) == 5
    assert chosen(0.001, [0.001] * 9 + [0.5] * 50) == 10


def test_all_workers_wait_for_a_decision() -> None:
    assert chosen(0.001, [0.001] * 50, workers=2) == 38


def test_a_decision_over_more_operators_is_expected_to_take_longer() -> None:
    view, size = RecordView(deciding=0.001), ScheduleSize()
    size.after(view, 100, [0.001])
    view.now += 0.002
    size.ran(view)
    assert size.after(view, 300, [0.001] * 99) == 57


def test_what_is_chosen_beforehand_takes_no_more_time_than_is_idle() -> None:
    decision, step = 0.001, 0.002
    few, much = beforehand(decision, step, idle=1.0)
    more, some = beforehand(decision, step, idle=0.03)
    most, least = beforehand(decision, step, idle=0.0)
    assert few < more < most
    assert much == pytest.approx(SHARE / 2, rel=0.05)
    assert some == pytest.approx(0.03, rel=0.1)
    assert least == pytest.approx(LEAST, rel=0.05)


def test_idle_time_is_not_the_time_of_a_step() -> None:
    view, size = RecordView(deciding=0.001), ScheduleSize()
    for _ in range(200):
        view.now += 10.0  # nothing came for a while
        size.before(view)
        view.now += 0.001 + 0.002
        size.ran(view)
    assert size.before(view) == round(0.001 * (1 - SHARE) / (SHARE * 0.002))


def test_bucketing_measures_its_steps_too() -> None:
    """It once did not, and always looked before each step."""
    outcome = ran(replace(large(Trial(), 3750.0), tuples=4000), "bucketing-push(auto)")
    assert outcome.work.decisions < outcome.work.units / 10


def test_a_dear_decision_makes_long_schedules_and_a_cheap_one_short_ones() -> None:
    dear, cheap = large(Trial(), 3500.0), small(Trial(), 1200.0, tuples=800, applications=5)
    outcome = ran(replace(dear, tuples=4000), "slope-slack-push(auto)")
    assert outcome.work.decisions < outcome.work.units / 100
    outcome = ran(cheap, "slope-slack-push(auto)")
    assert outcome.work.decisions > 0.9 * outcome.work.units
    assert outcome.qos.average == 1.0


def test_it_is_as_good_as_the_best_size_on_a_small_network() -> None:
    assert loss(small(Trial(), 1500.0, tuples=2000), "slope-slack-push", (1, 5, 20)) <= 0.02


FEW, MANY = (1, 2, 5, 10, 20), (100, 300, 1000)
CELLS: dict[str, tuple[AuroraWorkload, tuple[int, ...]]] = {
    **{f"Fig. 4.14a at {rate:g}/s": (small(Trial(), rate), FEW) for rate in RATES},
    **{f"Fig. 4.14b at {rate:g}/s": (deep(Trial(), rate), FEW) for rate in RATES},
    **{f"Fig. 4.25 at {rate:g}/s": (unbranched(Trial(), rate), FEW) for rate in (*TOPOLOGY_RATES, 2000.0, 2400.0)},
    **{f"Fig. 4.15 at {rate:g}/s": (large(Trial(), rate), MANY) for rate in LARGE_RATES},
    "Table 4.6": (overloaded(Trial()), FEW),
    "Fig. 4.18": (fluctuating(Trial()), FEW),
}
"""The cells of the claims with push-through, each with the sizes to compare with."""
APART = {
    ("Table 4.6", "fixed-priority-push"): 0.11,
    ("Fig. 4.14b at 1800/s", "bucketing-push"): 0.05,
    ("Fig. 4.15 at 4000/s", "bucketing-push"): 0.03,
    ("Fig. 4.15 at 4250/s", "slope-slack-push"): 0.04,
    ("Fig. 4.15 at 5000/s", "slope-slack-push"): 0.12,
    ("Fig. 4.15 at 5000/s", "bucketing-push"): 0.08,
}
"""Cells beyond the capacity where more is lost, and how much at most. In the first, fixed priorities always serve the
overloaded application first, so the best schedule is one of all that is ready: it has no priorities, and neither costs
nor load tell that."""


@pytest.mark.long
@pytest.mark.parametrize("policy", PUSHED)
@pytest.mark.parametrize("cell", CELLS)
def test_it_is_as_good_as_the_best_size_in_every_cell_of_the_claims(cell: str, policy: str) -> None:
    bed, sizes = CELLS[cell]
    assert loss(bed, policy, sizes) <= APART.get((cell, policy), 0.02)


@pytest.mark.long
def test_beyond_the_capacity_the_best_size_of_one_rate_is_luck() -> None:
    bed, sizes = CELLS["Fig. 4.14b at 1800/s"]
    near = [replace(bed, rate=bed.rate * (1.0 + change / 1000.0)) for change in (-10, -7, -4, -1, 0, 1, 4, 7, 10)]
    found = {size: [ran(each, f"bucketing-push({size})").qos.average for each in near] for size in (*sizes, "auto")}
    chosen = fmean(found.pop("auto"))
    best = max(found, key=lambda size: found[size][4])
    # Within 1 % of the rate it differs from itself by far more than from what is chosen.
    assert max(found[best]) - min(found[best]) > 0.1
    assert max(map(fmean, found.values())) - chosen <= 0.02


def test_only_push_through_chooses_by_itself() -> None:
    assert create("slope-slack-push(size=auto)").name == "slope-slack-push"
    assert SlopeSlackPush("auto").size == 1
    for name in ("slope-slack(auto)", "fixed-priority-fused(auto)"):
        with pytest.raises(UserError, match="size must be a whole number of at least 1, not 'auto'"):
            create(name)
    with pytest.raises(UserError, match="only policies that end in -push choose"):
        SlopeSlack("auto")
    with pytest.raises(UserError, match="size must be a whole number of at least 1 or auto, not 'some'"):
        create("bucketing-push(some)")
    with pytest.raises(UserError, match="rows must be a whole number of at least 1, not 'auto'"):
        create("rr(auto)")
