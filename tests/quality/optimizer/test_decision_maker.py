"""Which strategy a query is given: the published examples, and what was corrected in them."""

from __future__ import annotations

from typing import Any

import pytest

from freshet.model import Expectations, UserError, priority_classes
from freshet.quality.optimizer import (
    ROUND_ROBIN,
    DecisionMaker,
    DecisionTable,
    IntervalFigures,
    Look,
    LookSettings,
    StrategyState,
    Tally,
)

SS = "simplified-segment"
THREE = ("pcs", "segment", SS)
"""The strategies of MAV §5."""
AT_ONCE = LookSettings(least_stay=0.0)


def expect(**wishes: Any) -> Expectations:
    """Expectations by measure: (class, value or points)."""
    return Expectations.parse({name: {"class": known, "points": value} for name, (known, value) in wishes.items()})


def look(
    wishes: Expectations,
    strategy: str | StrategyState,
    *,
    age: float = 100.0,
    maker: DecisionMaker | None = None,
    round_s: float = 0.0,
    **observed: float | None,
) -> Look:
    state = StrategyState(strategy) if isinstance(strategy, str) else strategy
    figures = IntervalFigures(3.0, observed)
    return (maker or DecisionMaker(settings=AT_ONCE)).look(wishes, figures, state, time=age, age=age, round_s=round_s)


def weights(one: Look) -> dict[str, float | None]:
    return {each.measure: each.weight for each in one.measures}


MUSTS = expect(latency=("must", 2.0), memory=("must", 10**6), throughput=("must", 100.0))


def test_memory_alone_violated_leads_to_segment() -> None:
    """Table 2. Latency and throughput are met in the same class; if they counted, Segment could never win."""
    one = look(MUSTS, "pcs", latency=1.0, memory=2e6, throughput=200.0)
    assert (one.to, one.rule) == ("segment", "best")
    assert one.scores == {ROUND_ROBIN: 0.5, "pcs": 0.25, "segment": 1.0, SS: 0.75}
    assert weights(one) == {"latency": None, "memory": 1.0, "throughput": None}


@pytest.mark.parametrize("met", [0.5, 0.75, 1.0])
def test_as_printed_segment_would_never_win(met: float) -> None:
    """The weight of a measure that is met in the class must is in [0.5, 1]: with it, Simplified Segment is as good."""
    table = DecisionMaker().table
    scores = table.scores({"latency": met, "memory": 1.0})
    assert scores["segment"] <= scores[SS]


@pytest.mark.parametrize(
    ("strategy", "worst", "to"),
    [
        (ROUND_ROBIN, {"latency": 20.0}, "pcs"),
        (ROUND_ROBIN, {"memory": 10**8}, SS),
        (ROUND_ROBIN, {"throughput": 1.0}, "pcs"),
        ("segment", {"memory": 10**8}, SS),
        ("pcs", {"memory": 10**8}, "pcs"),
        (SS, {"latency": 20.0}, SS),
    ],
)
def test_all_violated_ties_by_what_is_violated_most_or_stays(strategy: str, worst: dict[str, float], to: str) -> None:
    """Table 3: PCS and Simplified Segment tie at 2.25."""
    observed: dict[str, Any] = {"latency": 3.0, "memory": 2e6, "throughput": 50.0, **worst}
    one = look(MUSTS, strategy, **observed)
    assert one.scores == {ROUND_ROBIN: 1.5, "pcs": 2.25, "segment": 1.5, SS: 2.25}
    assert one.to == to


def test_equal_ranks_go_by_the_order_of_the_table() -> None:
    table = DecisionTable.parse({"latency": {"fcfs": 1, "rr": 3, "everything": 3}})
    maker = DecisionMaker(table, settings=AT_ONCE)
    assert look(expect(latency=("must", 1.0)), "fcfs", latency=2.0, maker=maker).to == "rr"


CLASSES = expect(latency=("must", 2.0), memory=("best-effort", 10**6))


@pytest.mark.parametrize(("strategy", "to"), [("pcs", SS), (ROUND_ROBIN, SS), (SS, SS), ("segment", "segment")])
def test_a_higher_class_counts_with_its_reduced_weight(strategy: str, to: str) -> None:
    """Tables 4-5. From Segment, the best for memory, nothing is better for what is violated: it stays."""
    one = look(CLASSES, strategy, latency=1.0, memory=2e6)
    assert one.scores == {ROUND_ROBIN: 0.625, "pcs": 0.875, "segment": 0.6875, SS: 0.9375}
    assert weights(one) == {"latency": 0.75, "memory": 0.5}
    assert one.to == to


def test_lower_classes_wait_until_higher_ones_are_satisfied() -> None:
    one = look(CLASSES, SS, latency=3.0, memory=2e6)
    assert (one.to, weights(one)) == ("pcs", {"latency": 1.0, "memory": None})


def test_throughput_is_reduced_by_what_was_expected_of_what_was_seen() -> None:
    """100 wanted and 200 seen count 0.75; as printed, 1.5."""
    wishes = expect(throughput=("must", 100.0), memory=("best-effort", 10**6))
    assert weights(look(wishes, "pcs", throughput=200.0, memory=2e6))["throughput"] == 0.75


def test_a_measure_that_is_met_only_ahead_keeps_its_weight() -> None:
    """The expectation loosens from 1 s to 2 s: 1.95 s is met ahead, not now, and as printed counts more than 1."""
    wishes = expect(latency=("must", [(0, 1.0), (10, 2.0)]), memory=("best-effort", 10**6))
    maker = DecisionMaker(settings=LookSettings(ahead=1.0, least_stay=0.0))
    one = look(wishes, "pcs", age=9.0, latency=1.95, memory=2e6, maker=maker)
    assert (one.violated, weights(one)["latency"]) == (("memory",), 1.0)


def test_an_interval_is_missed_by_what_was_expected_in_its_own_time() -> None:
    """Less memory is expected from 500 s on. The look then decides by that, but the seconds before were as expected."""
    at_change, later, half = (look(FIG_10, "pcs", age=age, latency=0.4, memory=5e6) for age in (500.0, 503.0, 501.6))
    assert [one.to for one in (at_change, later, half)] == ["segment"] * 3
    assert [[each.missed for each in one.measures] for one in (at_change, later, half)] == [
        [False, False], [False, True], [False, True],
    ]  # fmt: skip
    tally = Tally()
    for one in (at_change, later):
        tally.add(one, 3.0)
    told = tally.snapshot("pcs", pinned=False)
    assert (told["standing"], told["measures"]["memory"]["violated_s"]) == ("broken", 3.0)


def test_a_look_ahead_finds_what_is_about_to_be_violated() -> None:
    wishes = expect(latency=("must", [(0, 2.0), (10, 2.0), (11, 1.0)]))
    maker = DecisionMaker(settings=LookSettings(ahead=2.0, least_stay=0.0))
    assert look(wishes, "segment", age=9.0, latency=1.5, maker=maker).to == "pcs"
    assert look(wishes, "segment", age=9.0, latency=1.5).to == "segment"


def test_a_look_ahead_shorter_than_a_round_of_all_operators_is_refused() -> None:
    wishes = expect(latency=("must", [(0, 2.0), (10, 2.0), (11, 1.0)]))
    maker = DecisionMaker(settings=LookSettings(ahead=2.0, least_stay=0.0))
    one = look(wishes, "segment", age=9.0, latency=1.5, maker=maker, round_s=2.5)
    assert (one.to, one.note) == (
        "segment",
        "a look-ahead of 2 s is too short: running all operators once takes 2.5 s",
    )


def test_a_single_measure_gets_its_best_strategy_and_keeps_it() -> None:
    """Fig. 5-6: best effort for a latency of 1 s, from Segment."""
    wishes, maker = expect(latency=("best-effort", 1.0)), DecisionMaker(strategies=THREE)
    state, gone = StrategyState("segment"), []
    for number, latency in enumerate([9.0, 7.0, 1.5, 0.8, 1.2, 0.9], start=1):
        one = look(wishes, state, age=3.0 * number, latency=latency, maker=maker)
        gone += [one.to] if one.switches else []
        state = state.after(one)
    assert gone == ["pcs"]
    assert one.scores == {"pcs": 0.0, "segment": 0.0, SS: 0.0}


@pytest.mark.parametrize("strategy", THREE)
@pytest.mark.parametrize("latency", [0.0, 0.1, 0.49, 0.51, 5.0])
def test_a_measure_that_one_does_not_care_about_changes_no_decision(strategy: str, latency: float) -> None:
    """Fig. 7-8: latency must be within 500 ms, memory is of no concern. Its violation leads neither from Segment to
    PCS, the worst for memory, nor away from PCS."""
    with_memory = expect(latency=("must", 0.5), memory=("dont-care", 10**6))
    maker = DecisionMaker(strategies=THREE, settings=AT_ONCE)
    one = look(with_memory, strategy, latency=latency, memory=5e6, maker=maker)
    plain = look(expect(latency=("must", 0.5)), strategy, latency=latency, maker=maker)
    assert one.to == plain.to


FIG_10 = expect(latency=("must", 0.5), memory=("must", [(0, 10**7), (500, 10**7), (500, 10**6)]))


def switched(wishes: Expectations, age: float) -> StrategyState:
    """Segment was left for PCS, for latency."""
    one = look(wishes, "segment", age=age, latency=2.0, memory=5e5)
    assert one.to == "pcs"
    return StrategyState("segment").after(one)


def test_both_violated_leads_to_simplified_segment() -> None:
    """Fig. 9-10, of three strategies that are not ranked anew."""
    maker = DecisionMaker(strategies=THREE, settings=AT_ONCE)
    one = look(FIG_10, switched(FIG_10, 90.0), age=539.0, latency=0.7, memory=5e6, maker=maker)
    assert (one.to, one.scores) == (SS, {"pcs": 1.25, "segment": 1.25, SS: 1.5})


def test_memory_alone_leads_back_to_segment_if_less_is_expected_by_now() -> None:
    """Fig. 10: the expectation fell at 500 s, so this is no cycle."""
    one = look(FIG_10, switched(FIG_10, 90.0), age=539.0, latency=0.4, memory=5e6)
    assert (one.to, one.rule) == ("segment", "best")


def test_memory_alone_does_not_lead_back_to_segment_if_the_same_is_expected() -> None:
    one = look(FIG_10, switched(FIG_10, 90.0), age=400.0, latency=0.4, memory=2e7)
    assert (one.to, one.rule, one.scores[SS]) == (SS, "cycle", 1.5)
    state = switched(FIG_10, 90.0).after(one)
    # The strategy that a cycle led to is remembered, too: it does not go back to PCS, either.
    again = look(FIG_10, state, age=450.0, latency=0.7, memory=5e5)
    assert (again.to, again.rule, len(state.switches)) == (SS, "cycle", 2)
    assert again.exhausted


def test_an_expectation_that_moves_slowly_stays_the_same() -> None:
    slope = expect(latency=("must", 0.5), memory=("must", [(0, 10**7), (10_000, 5 * 10**6)]))
    state = switched(slope, 0.0)
    assert look(slope, state, age=100.0, latency=0.4, memory=2e7).rule == "cycle"
    assert look(slope, state, age=5000.0, latency=0.4, memory=2e7).rule == "best"


def test_another_class_is_another_expectation() -> None:
    state = switched(FIG_10, 90.0)
    other = expect(latency=("best-effort", 0.5), memory=("must", 10**7))
    assert look(other, state, latency=0.4, memory=2e7).to == "segment"


CIRCLE = DecisionTable.parse(
    {
        "latency": {"fcfs": 1, "rr": 3, "everything": 2},
        "memory": {"fcfs": 2, "rr": 1, "everything": 3},
        "throughput": {"fcfs": 3, "rr": 2, "everything": 1},
    }
)


def test_a_cycle_of_three_is_seen() -> None:
    maker, state = DecisionMaker(CIRCLE, settings=AT_ONCE), StrategyState("fcfs")
    fine = {"latency": 1.0, "memory": 1e5, "throughput": 200.0}
    for wrong, to in [({"latency": 3.0}, "rr"), ({"memory": 2e6}, "everything")]:
        one = look(MUSTS, state, maker=maker, **fine | wrong)
        assert (one.to, one.rule) == (to, "best")
        state = state.after(one)
    last = look(MUSTS, state, maker=maker, **fine | {"throughput": 50.0})
    assert (last.to, last.rule, set(last.scores.values())) == ("everything", "cycle", {2.0})


def test_a_cycle_whose_violations_overlap_is_gone_around_once_at_most() -> None:
    """Latency is violated under both strategies, so violated and satisfied are never exchanged, and by the printed rule
    the two would take turns for ever."""
    table = DecisionTable.parse(
        {
            "latency": {"fcfs": 1, "rr": 2, "rb-mcq": 3, "everything": 4},
            "memory": {"fcfs": 4, "rr": 1, "rb-mcq": 2, "everything": 3},
        }
    )
    wishes = expect(latency=("must", 2.0), memory=("must", 10**6))
    maker, state, gone = DecisionMaker(table, ("fcfs", "rr"), AT_ONCE), StrategyState("fcfs"), []
    for number in range(20):
        memory = 1e5 if state.strategy == "fcfs" else 3e6
        one = look(wishes, state, age=float(number), latency=3.0, memory=memory, maker=maker)
        gone += [one.to] if one.switches else []
        state = state.after(one)
    assert gone == ["rr", "fcfs"]
    assert (one.rule, one.exhausted) == ("cycle", True)


def test_what_is_violated_all_the_time_does_not_lead_back() -> None:
    """Under overload, latency is violated whatever the strategy. PCS was left for latency and memory; that memory is as
    expected now is what the other strategy is worth."""
    wishes = expect(latency=("must", 0.5), memory=("must", 10**6))
    left = look(wishes, "pcs", age=39.0, latency=6.0, memory=2e6)
    assert left.to == SS
    one = look(wishes, StrategyState("pcs").after(left), age=45.0, latency=6.0, memory=8e5)
    assert (one.to, one.rule, one.exhausted) == (SS, "cycle", True)


def test_what_one_does_not_care_about_takes_the_first_better_strategy() -> None:
    one = look(expect(memory=("dont-care", 10**6)), "pcs", memory=2e6)
    assert (one.to, one.rule) == (ROUND_ROBIN, "any-better")
    assert look(expect(memory=("best-effort", 10**6)), "pcs", memory=2e6).to == "segment"


def test_a_query_stays_for_a_while_after_a_switch() -> None:
    maker = DecisionMaker(settings=LookSettings(every=3.0))
    state = StrategyState("segment").after(look(MUSTS, "segment", age=9.0, latency=3.0, memory=1e5, throughput=200.0))
    early = look(MUSTS, state, age=12.0, latency=3.0, memory=2e6, throughput=200.0, maker=maker)
    assert (early.to, early.rule, early.exhausted) == ("pcs", "least-stay", False)
    later = look(MUSTS, state, age=15.0, latency=3.0, memory=2e6, throughput=200.0, maker=maker)
    assert (later.to, later.rule) == (SS, "best")


@pytest.mark.parametrize(
    ("known", "strategies", "exhausted"),
    [("must", None, True), ("best-effort", None, False), ("must", ("pcs",), True), ({"vital": 2.0}, None, False)],
)
def test_only_what_must_be_satisfied_may_be_thinned_for(
    known: Any, strategies: tuple[str, ...] | None, exhausted: bool
) -> None:
    maker = DecisionMaker(strategies=strategies, settings=AT_ONCE)
    one = look(expect(latency=(known, 2.0)), "pcs", latency=3.0, maker=maker)
    assert (one.to, one.rule, one.exhausted) == ("pcs", "none-better", exhausted)


def test_while_another_strategy_may_help_nothing_is_thinned() -> None:
    assert not look(expect(latency=("must", 2.0)), "segment", latency=3.0).exhausted


def test_any_number_of_classes() -> None:
    classes = priority_classes({"gold": 0.8, "silver": 0.7})
    wishes = Expectations.parse(
        {
            "latency": {"class": "gold", "points": 2.0},
            "throughput": {"class": "silver", "points": 100.0},
            "memory": {"class": "dont-care", "points": 10**6},
        },
        classes,
    )
    one = look(wishes, "pcs", latency=1.0, throughput=200.0, memory=2e6)
    assert weights(one) == {"latency": pytest.approx(0.75), "throughput": pytest.approx(0.6), "memory": 0.01}


def test_a_strategy_that_the_table_does_not_know_is_left_for_the_best_one() -> None:
    assert look(expect(latency=("must", 2.0)), "everything", latency=3.0).to == "pcs"


def test_nothing_observed_is_nothing_violated() -> None:
    one = look(MUSTS, "pcs", latency=None, memory=0.0, throughput=None)
    assert (one.to, one.rule, one.worst_class) == ("pcs", "satisfied", 0.0)


def test_unknown_columns_and_rows_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"^the decision table has no column 'lifo' \(it has: wrr\(0.02, 1, 1\), pcs, segment, "
    ):
        DecisionMaker(strategies=("pcs", "lifo"))
    maker = DecisionMaker(DecisionTable.parse({"latency": {"pcs": 2, "segment": 1}}))
    with pytest.raises(UserError, match=r"^the decision table has no ranks for memory: add a row for it$"):
        look(expect(memory=("must", 1)), "pcs", memory=1.0, maker=maker)
