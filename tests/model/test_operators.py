"""What operators answer for themselves."""

from __future__ import annotations

import pyarrow as pa
import pytest

from freshet.model import Filter, Join, Lifetime, Moving, Operator, Panes, Project, UserError
from freshet.model.operators import Union
from freshet.sql import SqlTyper

MINUTE = Lifetime("ts", 60)
PANES = Panes("p", MINUTE, 60)
OPERATORS: list[Operator] = [
    Filter("f", "v > 1"),
    Project("r", (("a", "v"), ("b", "v + 1"))),
    Union("u"),
    PANES,
    Moving("m", "ts", 60),
    Moving("w", "ts", rows=5),
    Join("j", "inner", (MINUTE, MINUTE), ((), ()), ()),
]


def test_expressions_say_all_that_plain_operators_do() -> None:
    assert [each.name for each in OPERATORS if each.plain] == ["f", "r"]
    assert [each.expressions for each in OPERATORS[:3]] == [("v > 1",), ("v", "v + 1"), ()]
    assert Project("r", ()).plain


def test_rewriting_changes_expressions_only() -> None:
    twice = [each.rewritten(lambda text: f"({text})") for each in OPERATORS]
    assert [each.expressions for each in twice[:2]] == [("(v > 1)",), ("(v)", "(v + 1)")]
    assert [name for name, _ in twice[1].makes or ()] == ["a", "b"]
    assert twice[2:] == OPERATORS[2:]


def test_windows_of_rows_do_not_go_by_time() -> None:
    assert [each.name for each in OPERATORS if each.goes_by_time] == ["p", "m", "j"]


def test_only_what_holds_rows_back_can_tell_changes() -> None:
    changing = {each.name: each.with_changes() for each in OPERATORS}
    assert {name for name, each in changing.items() if each is not None} == {"p"}
    assert changing["p"] == Panes("p", MINUTE, 60, emit="changes")


def test_the_next_window_closes_at_the_next_boundary() -> None:
    assert [PANES.next_close(time) for time in (0, 59, 60, None)] == [60, 60, 120, None]
    assert Panes("p", MINUTE, 60, emit="changes").next_close(0) is None
    assert Moving("m", "ts", 60).next_close(0) is None


def test_time_alone_brings_out_windows_and_lonely_left_tuples() -> None:
    left = Join("j", "left", (MINUTE, MINUTE), ((), ()), ())
    assert left.is_due([5, 0], [5, 15])
    assert not left.is_due([5, 15], [9, 15])
    assert not Join("j", "inner", (MINUTE, MINUTE), ((), ()), ()).is_due([5, 0], [5, 15])
    assert PANES.is_due([59], [60])
    assert not PANES.is_due([60], [119])


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.date32(), pa.timestamp("us", tz="UTC"), pa.timestamp("us", tz="UTC")),
        (pa.decimal128(5, 2), pa.decimal128(5, 2), pa.decimal128(5, 2)),
        (pa.null(), pa.int32(), pa.null()),
        (pa.string(), pa.int32(), None),
        (pa.decimal128(5, 2), pa.int32(), None),
    ],
)
def test_the_parts_of_a_union_have_a_common_type(one: pa.DataType, other: pa.DataType, common: pa.DataType) -> None:
    for kinds in ((one, other), (other, one)):
        inputs = [pa.schema([("v", kind)]) for kind in kinds]
        if common is None:
            with pytest.raises(UserError, match="CAST one of them"):
                Union("u").output(inputs, SqlTyper())
        else:
            assert Union("u").output(inputs, SqlTyper()).field("v").type == common
