"""The decision table: the tables of MAV §4.8, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from freshet.model import UserError
from freshet.policies import create
from freshet.quality.optimizer import ROUND_ROBIN, SHIPPED, DecisionTable

STRATEGIES = (ROUND_ROBIN, "pcs", "segment", "simplified-segment")


def test_the_shipped_table_is_table_1() -> None:
    assert SHIPPED.strategies == STRATEGIES
    assert {measure: list(row.values()) for measure, row in SHIPPED.ranks.items()} == {
        "latency": [2, 4, 1, 3],
        "memory": [2, 1, 4, 3],
        "throughput": [2, 4, 1, 3],
    }


@pytest.mark.parametrize(
    ("weights", "scores"),
    [
        # Table 2: memory alone; Simplified Segment has 3/4, printed: 0.66.
        ({"memory": 1.0}, [0.5, 0.25, 1.0, 0.75]),
        # Table 3: all three.
        ({"latency": 1.0, "memory": 1.0, "throughput": 1.0}, [1.5, 2.25, 1.5, 2.25]),
        # Table 5: latency of 1 s where 2 s are expected counts 0.75.
        ({"latency": 0.75, "memory": 0.5}, [0.625, 0.875, 0.6875, 0.9375]),
    ],
)
def test_scores_of_the_published_tables(weights: dict[str, float], scores: list[float]) -> None:
    assert SHIPPED.scores(weights) == dict(zip(STRATEGIES, scores, strict=True))


def test_a_subset_is_not_ranked_anew() -> None:
    three = ("pcs", "segment", "simplified-segment")
    both = SHIPPED.scores({"latency": 1.0, "memory": 1.0}, among=three)
    assert both == {"pcs": 1.25, "segment": 1.25, "simplified-segment": 1.5}
    # Ranked anew, no strategy would stand out.
    anew = DecisionTable.parse(
        {
            "latency": {"pcs": 3, "segment": 1, "simplified-segment": 2},
            "memory": {"pcs": 1, "segment": 3, "simplified-segment": 2},
        }
    )
    assert set(anew.scores({"latency": 1.0, "memory": 1.0}).values()) == {4 / 3}


def test_any_policy_may_be_a_column() -> None:
    table = DecisionTable.parse({"latency": {"everything": 1, "slope-slack-push(1)": 2}}, create)
    assert table.strategies == ("everything", "slope-slack-push(1)")


REFUSED: list[tuple[Any, str]] = [
    ({}, 'a decision table has a row for each measure, such as {"latency": {"pcs": 2, "segment": 1}}'),
    ({"latency": {}}, 'a decision table has a row for each measure, such as {"latency": {"pcs": 2, "segment": 1}}'),
    ({"latency": 3}, "latency: must be a table of ranks by strategy, not 3"),
    ({"speed": {"fcfs": 1}}, "speed: there is no such measure (there are: latency, memory, throughput)"),
    ({"latency": {"fcfs": 2, "everything": 1}, "memory": {"fcfs": 1}}, "memory: the rank of everything is missing"),
    ({"memory": {"fcfs": 3, "everything": 1}},
     "memory: the rank of fcfs must be from 1 (the worst) to 2, the number of strategies, not 3"),
    ({"memory": {"fcfs": True, "everything": 1}},
     "memory: the rank of fcfs must be from 1 (the worst) to 2, the number of strategies, not True"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "line"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_table_is_refused_in_one_line(given: Any, line: str) -> None:
    with pytest.raises(UserError) as refused:
        DecisionTable.parse(given, create)
    assert str(refused.value) == line


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(UserError, match="there is no policy 'lifo'"):
        DecisionTable.parse({"latency": {"fcfs": 1, "lifo": 2}}, create)
