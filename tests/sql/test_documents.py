"""The queries that the source documents give as text, as given or with the change of syntax that is noted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from freshet.model import Moving, Panes, Side
from freshet.sql import build_query

RT_2_2 = """
Select avg(Speed.value)
From Speed [range 1 minute slide 10 seconds], Lanes [range 1 day slide 10 seconds]
Where Speed.lane = Lanes.ID
   and Speed.type = 'Truck'
"""
"""Without PERIOD, whose 10 seconds are the SLIDE; the relation is a stream whose tuples count for a day; quotes."""
RT_5_2_1 = [
    "select * from S0 [range 4 second], S1 [range 4 second] "
    "where S0.type = S1.type and S0.ID = S1.ID and S0.value <> S1.value",
    "select avg(S0.value), min (S0.value), max (S0.value) "
    "from S0 [range 2 second slide 2 second], R0 [range 1 day slide 2 second] where S0.ID = R0.ID",
    "select S0.type, Count(*) from S0 [range 1 second] group by S0.type",
]
"""Without PERIOD; in the second its 2 seconds are the SLIDE."""
WU_1_1 = "SELECT AVG(T.temp_val) FROM TEMPERATURE[Range 60 minute] AS T"
WU_3_1 = """
SELECT * FROM    Sensor1 [RANGE 10 SECONDS] S1, Sensor2 [RANGE 10 SECONDS] S2,
                  Sensor3 [RANGE 10 SECONDS] S3, Sensor4 [RANGE 10 SECONDS] S4
WHERE   S1.epoch = S2.epoch
AND     S2.epoch = S3.epoch
AND     S3.epoch = S4.epoch
"""
"""With windows, which bound what is remembered."""
MAV_5 = """
SELECT S0.value, S1.value AS other
FROM S0 [RANGE 1 SECOND], S1 [RANGE 1 SECOND], Speed [RANGE 1 SECOND]
WHERE S0.ID = S1.ID AND S1.ID = Speed.lane AND S0.value > 1 AND S1.value > 2 AND Speed.value > 3 AND S0.type <> S1.type
"""
"""The paper gives no text: eight operators (three windows, three selections, two joins) over three streams. Windows of
time stand for those of 500 tuples, with which the answer would depend on the order in which streams came."""
DOCUMENTS: list[tuple[str, list[str], list[str]]] = [
    (RT_2_2, ["Speed", "Lanes"], ["q.join_1", "q.aggregate"]),
    (RT_5_2_1[0], ["S0", "S1"], ["q.join_1"]),
    (RT_5_2_1[1], ["S0", "R0"], ["q.join_1", "q.aggregate"]),
    (RT_5_2_1[2], ["S0"], ["q.aggregate"]),
    (WU_1_1, ["TEMPERATURE"], ["q.aggregate"]),
    (WU_3_1, ["Sensor1", "Sensor2", "Sensor3", "Sensor4"], ["q.join_1", "q.join_2", "q.join_3"]),
    (MAV_5, ["S0", "S1", "Speed"], ["q.join_1", "q.join_2"]),
]


@pytest.mark.parametrize(("text", "reads", "folds"), DOCUMENTS)
def test_queries_of_the_documents(text: str, reads: list[str], folds: list[str], streams: dict[str, pa.Schema]) -> None:
    paths = build_query("q", text, streams).paths
    assert [path.stream for path in paths] == reads
    assert [fold.fold for fold in paths[0].folds] == folds
    for path in paths:
        assert all(isinstance(fold, Panes | Moving | Side) for fold in path.folds)


def test_mav_selects_before_it_joins(streams: dict[str, pa.Schema]) -> None:
    first = build_query("q", MAV_5, streams).paths[0]
    assert [operator.name for operator in first.operators] == [
        "q.filter_1",
        "q.join_1.left.input",
        "q.join_1.left",
        "q.join_1.on_2",
        "q.join_2.left.input",
        "q.join_2.left",
        "q.project",
    ]


def test_rt_with_its_period_is_checked(streams: dict[str, pa.Schema]) -> None:
    given = (
        "Select avg(Speed.value) From Speed[range 1 minute], Lanes Where Speed.lane = Lanes.ID "
        "and Speed.type = 'Truck' Period 10 seconds Deadline 5 seconds;"
    )
    query = build_query("q", given, streams)
    assert (query.period, query.deadline, query.lowered) == (10.0, 5.0, None)
