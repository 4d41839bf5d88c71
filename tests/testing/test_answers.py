"""Answers of an application in process, and the check that they depend on the rows alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshet import App, InvalidApp, UserError
from freshet.log import read_train
from freshet.testing import Heartbeat, Push, Put, Schedule, answers, check_invariant, executor

ORDERS = [{"ts": n, "shop": "abc"[n % 3], "amount": 10.0 * n} for n in range(20)]


def shop(tmp_path: Path | None = None) -> App:
    """An application with a window, a join, a table, and a query over another one."""
    app = App("shop")
    app.stream("orders", "ts timestamp, shop string, amount double", event_time="ts", lateness="2 s")
    app.stream("visits", "ts timestamp, shop string", event_time="ts", lateness="0 s")
    app.table("owners", (tmp_path or Path("nowhere")) / "owners.csv", schema="shop string, owner string")
    app.query("large", "SELECT ts, shop, amount FROM orders WHERE amount > 100")
    app.query("owned", "SELECT owner, amount FROM large JOIN owners ON large.shop = owners.shop")
    app.query("sums", "SELECT shop, sum(amount) AS total FROM orders [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY shop")
    app.query("seen", "SELECT o.amount AS amount FROM orders [RANGE 3 SECONDS] o JOIN visits [RANGE 3 SECONDS] v "
                      "ON o.shop = v.shop")  # fmt: skip
    return app


GIVEN: dict[str, Any] = {
    "orders": ORDERS,
    "visits": [{"ts": 4, "shop": "a"}, {"ts": 9, "shop": "c"}],
    "owners": [{"shop": "a", "owner": "Ann"}, {"shop": "b", "owner": "Bob"}],
}


def test_all_queries_answer_and_all_windows_close() -> None:
    found = answers(shop(), GIVEN)
    assert list(found) == ["large", "owned", "sums", "seen"]
    assert [row["amount"] for row in found["large"]] == [10.0 * n for n in range(11, 20)]
    assert found["large"][0] == {"ts": datetime(1970, 1, 1, 0, 0, 11, tzinfo=UTC), "shop": "c", "amount": 110.0}
    assert found["owned"] == [
        {"owner": "Ann" if n % 3 == 0 else "Bob", "amount": 10.0 * n} for n in range(11, 20) if n % 3 < 2
    ]
    assert sum(row["total"] for row in found["sums"]) == 1900.0
    assert sorted(row["amount"] for row in found["seen"]) == [30.0, 60.0, 80.0, 110.0]


def test_answers_depend_on_the_rows_alone() -> None:
    check_invariant(shop(), GIVEN, cases=12, seed=100)


def test_rows_may_be_a_table_of_arrow() -> None:
    rows = pa.table({"shop": ["a", "b"], "amount": [200.0, 1.0], "ts": [1, 2]})
    assert len(answers(shop(), GIVEN | {"orders": rows})["large"]) == 1


def test_a_schedule_can_be_given() -> None:
    app = shop()
    plain, other = answers(app, GIVEN), answers(app, GIVEN, schedule=Schedule.drawn(3))
    assert other["large"] == plain["large"]


def test_events_come_one_after_the_other() -> None:
    app = App("clock")
    app.stream("ticks", "v int")
    app.table("names", "names.csv", schema="v int, name string")
    app.query("recent", "SELECT count(*) AS n FROM ticks [RANGE 5 SECONDS]")
    app.query("named", "SELECT name FROM ticks JOIN names ON ticks.v = names.v")
    given = [
        Put("names", [{"v": 1, "name": "one"}]),
        Push("ticks", [{"v": 1}], at=1_000_000_000.0),
        Push("ticks", [{"v": 1}], at=datetime.fromtimestamp(1_000_000_003, UTC)),
        Put("names", [{"v": 1, "name": "uno"}]),
        Heartbeat("ticks", 1_000_000_020.0),
        Push("ticks", [{"v": 1}], at=1_000_000_030.0),
    ]
    found = answers(app, given)
    assert [row["n"] for row in found["recent"]] == [1, 2, 1]
    assert [row["name"] for row in found["named"]] == ["one", "one", "uno"]
    check_invariant(app, given, cases=5)


def test_a_table_that_is_not_given_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "owners.csv").write_text("shop,owner\nb,Bea\n")
    given = {name: rows for name, rows in GIVEN.items() if name != "owners"}
    assert {row["owner"] for row in answers(shop(tmp_path), given)["owned"]} == {"Bea"}
    with pytest.raises(
        UserError, match=r"table owners: there is no file .*; or give its rows: \{'owners': \[\.\.\.\]\}"
    ):
        answers(shop(), given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"oders": []}, r"there is no stream 'oders' \(did you mean 'orders'\?\) \(streams: orders, visits\)"),
        ({"large": []}, "large is a query: give rows to the streams that it reads"),
        ({"orders": [{"ts": 1, "amount": "much"}]}, "orders: a row does not fit, column amount: 'much' is not of"),
        ({"orders": [{"ts": 1, "amont": 1}]}, "a row does not fit, the stream has no column amont"),
        ({"orders": [{"amount": 1}]}, "column ts: the event time is NULL"),
        ({"orders": {"ts": 1}}, "push a list of rows"),
        ([Put("owner", [])], r"there is no table 'owner' \(did you mean 'owners'\?\)"),
        ([Put("owners", [{"name": "Ann"}])], "table owners has no column name: it has shop, owner"),
        ([("orders", [])], "give events: Push, Heartbeat or Put, not"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(given: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        answers(shop(), {"owners": []} | given if isinstance(given, dict) else [Put("owners", []), *given])


def test_a_text_that_is_wrong_is_told_as_the_check_tells_it() -> None:
    app = App("shop")
    app.stream("orders", "amount double")
    app.query("large", "SELECT amont FROM orders")
    with pytest.raises(InvalidApp, match=r"queries\.large\.sql: .*amont"):
        answers(app, {})


@pytest.mark.parametrize(
    "text", ["SELECT id, soundex(name) AS s FROM s", "SELECT id FROM s WHERE soundex(name) = 'A1'"]
)
def test_a_query_that_only_spark_can_run_is_told_with_its_expression(text: str) -> None:
    app = App("shop")
    app.stream("s", "id int, name string")
    app.query("sounds", text)
    with pytest.raises(UserError, match=r"query sounds: only Spark can compute .*SOUNDEX\(name\).*local\[2\]"):
        answers(app, {})


def test_a_query_that_fails_is_told() -> None:
    app = App("shop")
    app.stream("s", "v int")
    app.query("strict", "SELECT 1 / v AS w FROM s", on_error="fail")
    with pytest.raises(
        AssertionError, match=r"query strict failed: 1 evaluation error in 1 tuple \(on_error = fail\) in 1 / v$"
    ):
        answers(app, {"s": [{"v": 0}]})


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"cases": 0}, "cases is the number of schedules, at least 1: it cannot be 0"),
        ({"cases": -1}, "it cannot be -1"),
        ({"policies": []}, "policies must name at least one policy"),
    ],
)
def test_a_check_that_would_check_nothing_is_refused(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        check_invariant(shop(), {}, **asked)


@pytest.mark.parametrize("name", ["crashes", "faults", "resplits"])
def test_a_schedule_has_shares_from_0_to_1(name: str) -> None:
    wrong: dict[str, Any] = {name: 1.5}
    with pytest.raises(UserError, match=f"{name} must be from 0 to 1, not 1.5"):
        Schedule(**wrong)


def test_a_schedule_that_changes_answers_is_found_and_can_be_seen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # An engine that loses all but two tuples of a train.
    monkeypatch.setattr(executor, "read_train", lambda *given: read_train(*given).slice(0, 2))
    app = App("shop")
    app.stream("s", "v int")
    app.query("q", "SELECT v FROM s")
    rows = [{"v": n} for n in range(9)]
    with pytest.raises(AssertionError) as raised:
        check_invariant(app, {"s": rows}, cases=20, seed=5)
    told = str(raised.value)
    assert "query q gives other answers under another schedule: " in told
    assert "unexpected: {'v': 2}" in told
    assert "the schedule:  Schedule(policies=(" in told
    seed = int(told.rpartition("seed=")[2].rstrip(")"))
    with pytest.raises(AssertionError) as again:
        check_invariant(app, {"s": rows}, cases=1, seed=seed)
    assert str(again.value) == told
