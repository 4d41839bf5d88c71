"""Looks and what is remembered of them survive as JSON."""

from __future__ import annotations

import json

import pytest

from freshet.model import Expectations, UserError
from freshet.quality.optimizer import DecisionMaker, IntervalFigures, Look, LookSettings, StrategyState


def test_looks_and_states_come_back_from_json() -> None:
    wishes = Expectations.parse({"latency": {"class": "must", "points": "2 s"}, "memory": "1 MB", "throughput": 5})
    figures = IntervalFigures(3.0, {"latency": 3.0, "memory": 5e5, "throughput": None}, {"s": 20.0})
    look = DecisionMaker().look(wishes, figures, StrategyState("segment"), time=1e9, age=12.0)
    assert Look.read(json.loads(json.dumps(look.record()))) == look
    assert (look.switches, look.arrivals, look.worst_class) == (True, {"s": 20.0}, 1.0)
    state = StrategyState("segment").after(look)
    assert StrategyState.read(json.loads(json.dumps(state.record()))) == state
    assert (state.strategy, state.since, state.switches[0].violated) == ("pcs", 12.0, frozenset({"latency"}))


def test_a_look_that_stays_changes_nothing() -> None:
    look = Look(1.0, 1.0, "pcs", "pcs", "satisfied")
    state = StrategyState("pcs", since=0.5)
    assert state.after(look) is state


def test_a_look_ahead_must_be_shorter_than_the_time_between_looks() -> None:
    short = LookSettings(every=3.0, ahead=2.0)
    with pytest.raises(UserError, match=r"^a look-ahead of 2 s is too long: use less than the 1 s between looks$"):
        short.of_query(Expectations.parse({"latency": 1, "every": 1}))
    assert short.of_query(Expectations.parse({"latency": 1})) is short


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ((0.0,), "the time between looks must be above 0, not 0"),
        ((float("nan"),), "the time between looks must be above 0, not nan"),
        ((1.0, -1.0), "a look-ahead is a duration such as '1 s', not -1"),
    ],
)
def test_times_that_mean_nothing_are_refused(settings: tuple[float, ...], line: str) -> None:
    with pytest.raises(UserError) as refused:
        LookSettings(*settings)
    assert str(refused.value) == line
