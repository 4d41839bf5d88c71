"""What holds for every sequence of looks: no switch without a reason, and no cycle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from freshet.model import MEASURES, Expectations
from freshet.quality.optimizer import DecisionMaker, DecisionTable, IntervalFigures, Look, LookSettings, StrategyState

NAMES = ("pcs", "segment", "simplified-segment", "rr", "fcfs")
CLASSES = st.sampled_from(["must", "best-effort", "dont-care"])


@dataclass(frozen=True)
class Life:
    """A table, expectations that never change, and figures at each look."""

    table: DecisionTable
    wishes: Expectations
    figures: list[IntervalFigures]
    stay: float

    def looks(self) -> list[Look]:
        maker, found = DecisionMaker(self.table, settings=LookSettings(every=1.0, least_stay=self.stay)), []
        state = StrategyState(self.table.strategies[0])
        for number, figures in enumerate(self.figures):
            one = maker.look(self.wishes, figures, state, time=0.0, age=float(number))
            found.append(one)
            state = StrategyState.read(state.after(one).record())
        return found


@st.composite
def lives(draw: st.DrawFn) -> Life:
    strategies = NAMES[: draw(st.integers(2, len(NAMES)))]
    ranks = st.integers(1, len(strategies))
    table = DecisionTable.parse({measure: {name: draw(ranks) for name in strategies} for measure in MEASURES})
    watched = draw(st.lists(st.sampled_from(sorted(MEASURES)), unique=True, min_size=1))
    wishes = Expectations.parse({measure: {"class": draw(CLASSES), "points": 100} for measure in watched})
    observed = st.sampled_from([None, 1.0, 50.0, 100.0, 101.0, 400.0])
    figures = st.lists(st.fixed_dictionaries(dict.fromkeys(MEASURES, observed)), max_size=25)
    return Life(
        table, wishes, [IntervalFigures(1.0, each) for each in draw(figures)], draw(st.sampled_from([0.0, 2.0]))
    )


def decided_for(one: Look) -> set[str]:
    return {each.measure for each in one.measures if each.violated and each.class_weight == one.worst_class}


@given(lives())
def test_no_switch_without_a_violation_and_a_better_rank(life: Life) -> None:
    for one in life.looks():
        if one.switches:
            assert any(
                life.table.ranks[name][one.to] > life.table.ranks[name][one.strategy] for name in decided_for(one)
            )
            assert one.scores[one.to] > one.scores[one.strategy]
        else:
            assert one.rule in ("satisfied", "none-better", "cycle", "least-stay")
        assert (one.rule == "satisfied") == (not one.violated)


@given(lives())
def test_the_same_figures_lead_to_the_same_decisions(life: Life) -> None:
    assert life.looks() == life.looks()


@given(lives())
def test_no_cycle_is_begun_that_is_remembered(life: Life) -> None:
    """While expectations stay the same, no strategy is taken again whose reasons for leaving are gone, and no switch is
    made again, as far back as decisions are remembered. So no cycle of any length is gone around a second time."""
    memory = len(life.table.strategies)
    switches = [one for one in life.looks() if one.switches]
    for number, one in enumerate(switches):
        for before in switches[max(0, number - memory) : number]:
            assert (before.strategy, before.to) != (one.strategy, one.to)
            assert before.strategy != one.to or decided_for(before) & decided_for(one)


@given(lives())
def test_a_query_stays_for_the_least_time(life: Life) -> None:
    ages = [one.age for one in life.looks() if one.switches]
    assert all(later - earlier >= life.stay for earlier, later in pairwise(ages))
