"""What a restart means for each query, on a real log and without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.app.remembered.forms import inputs_of, readers_of
from freshet.app.remembered.restart import (
    age,
    check_output,
    check_owner,
    check_stream,
    claim,
    compare,
    fingerprint,
    forget_query,
    make_ready,
    missed,
    out,
    remember,
    remembered,
)
from freshet.engine import LogQueues
from freshet.log import Intake, Log, Retention
from freshet.model import ARRIVAL, Expectations, KeyOrder, Promises, Query, Stream, UserError, parse_schema
from freshet.model.join_budget import JoinBudget, RowCost
from freshet.sql import build_query

SCHEMA = parse_schema("k int, v int")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "state") as one:
        one.declare("s")
        yield one


def query(sql: str, **options: object) -> Query:
    return build_query("q", sql, {"s": SCHEMA}, **options)  # type: ignore[arg-type]


def start(log: Log, one: Query, now: float | None = None) -> str:
    """What the installer does, without an engine."""
    change = compare(log, one)
    make_ready(log, one, change)
    for each in inputs_of(one.graph):
        if not each.is_queue:
            log.start_reader(each.reader, each.stream, one.start)
    remember(log, one, one.graph, now=now)
    return change


def park(log: Log) -> None:
    LogQueues(log).park([reader.name for reader in readers_of(log, remembered(log)["q"].form)])


def is_out(log: Log) -> bool:
    return out(log)["q"]


def append(log: Log, stream: str, **columns: list[int]) -> None:
    rows = len(next(iter(columns.values())))
    log.append(stream, pa.table({**columns, ARRIVAL: [1] * rows}))


def test_fingerprints_see_answers_and_nothing_else() -> None:
    plain = query("SELECT k FROM s WHERE v > 1")
    assert fingerprint(plain) == fingerprint(
        query("select  k\nfrom s -- words\nwhere v > 1", promises=Promises(weight=0.1), start="latest")
    )
    expecting = Promises(expect=Expectations.parse({"latency": "1 s"}))
    assert fingerprint(plain) == fingerprint(query("SELECT k FROM s WHERE v > 1", promises=expecting))
    assert fingerprint(plain) != fingerprint(query("SELECT k FROM s WHERE v > 2"))
    assert fingerprint(plain) != fingerprint(query("SELECT v AS k FROM s WHERE v > 1"))
    assert fingerprint(plain) != fingerprint(query("SELECT k FROM s WHERE v > 1", on_error="fail"))


def test_an_unchanged_query_keeps_its_cursor_and_gets_another_try(log: Log) -> None:
    one = query("SELECT k FROM s WHERE v > 1")
    assert start(log, one) == "new"
    append(log, "s", k=[1, 2], v=[1, 2])
    log.advance("q.filter_1", "s", 1, log.reader_state("q.filter_1"))
    log.set_need("q.filter_1", False)
    assert start(log, query("SELECT k FROM s WHERE v > 1", promises=Promises(weight=0.5))) == "unchanged"
    assert log.cursor("q.filter_1") == 1
    assert log.readers()["q.filter_1"].needed


def test_a_changed_query_starts_anew_without_its_intermediate_queues(log: Log) -> None:
    start(log, query("SELECT k FROM s WHERE v > 1 AND k > 1"))
    append(log, "s", k=[1, 2], v=[1, 2])
    log.declare("q.filter_2", kind="queue")
    log.start_reader("q.filter_2", "q.filter_2")
    append(log, "q.filter_2", k=[7], v=[7])
    assert start(log, query("SELECT k FROM s WHERE v > 2 AND k > 1", start="latest")) == "changed"
    assert log.cursor("q.filter_1") == 2
    assert "q.filter_2" not in log.streams()


def test_what_came_while_a_join_was_out_is_reckoned_when_it_is_back(log: Log) -> None:
    log.declare("o", clock="__arrival", ordered="k")
    intake = Intake(log, Stream("o", SCHEMA, order=KeyOrder("k", rows=1)))
    sql, budget = (
        "SELECT x.v FROM o x, o y WHERE x.k = y.k",
        JoinBudget("q.join_1", ("o", "o"), (RowCost(100),) * 2, 800),
    )
    one = build_query("q", sql, {"o": SCHEMA}, ordered={"o": "k"})
    start(log, one)
    log.give_memory(budget, {"o": 0})
    for change in ("unchanged", "back"):
        if change == "back":
            park(log)
            log.take_memory("q.join_1")
            intake.append([{"k": key, "v": 0} for key in (1, 9, 2, 3, 4, 5)], 1)
        assert start(log, one) == change
        log.give_memory(budget, {"o": 0})
        assert [at for at, _ in log.levels("o", "q.join_1")] == ([5] if change == "back" else [])


def test_a_query_that_was_out_goes_on_where_it_was(log: Log) -> None:
    one = query("SELECT k FROM s WHERE v > 1 AND k > 1")
    start(log, one)
    append(log, "s", k=[1, 2], v=[1, 2])
    log.advance("q.filter_1", "s", 1, log.reader_state("q.filter_1"))
    log.declare("q.filter_2", Retention(0, 0), kind="queue")
    log.start_reader("q.filter_2", "q.filter_2")
    append(log, "q.filter_2", k=[7], v=[7])
    park(log)
    assert is_out(log)
    append(log, "s", k=[3], v=[3])
    log.declare("s", Retention(0, 0))
    log.collect()
    before = log.readers()
    assert start(log, one) == "back"
    assert not is_out(log)
    assert (log.cursor("q.filter_1"), missed(log, before)) == (3, 2)
    assert log.read("q.filter_2", log.cursor("q.filter_2") or 0, 1)["k"].to_pylist() == [7]
    assert log.readers()["q.filter_2"].needed
    assert start(log, one) == "unchanged"


def test_a_query_that_was_out_and_has_changed_starts_anew(log: Log) -> None:
    start(log, query("SELECT k FROM s WHERE v > 1"))
    append(log, "s", k=[1, 2], v=[1, 2])
    log.advance("q.filter_1", "s", 1, log.reader_state("q.filter_1"))
    park(log)
    assert start(log, query("SELECT k FROM s WHERE v > 2")) == "changed"
    assert log.cursor("q.filter_1") == 0


def test_a_start_that_was_cut_short_counts_as_new(log: Log) -> None:
    append(log, "s", k=[1], v=[1])
    one = query("SELECT k FROM s WHERE v > 1")
    remember(log, one, one.graph, fresh=True)
    log.start_reader("q.filter_1", "s")
    other = query("SELECT k FROM s WHERE v > 2", start="latest")
    assert start(log, other) == "new"
    assert log.cursor("q.filter_1") == 1, "where this one is to begin"
    assert start(log, other) == "unchanged"


def test_of_a_forgotten_query_the_readers_of_its_output_stay(log: Log) -> None:
    start(log, query("SELECT k FROM s"))
    log.declare("q")
    log.start_reader("q/file.jsonl", "q", kind="sink", owner="q")
    assert list(remembered(log)) == ["q"]
    forget_query(log, "q")
    assert list(log.readers()) == ["q/file.jsonl"]
    assert remembered(log) == {}


def test_a_stream_with_tuples_keeps_its_schema(log: Log) -> None:
    check_stream(log, "s", parse_schema("other string"))
    append(log, "s", k=[1], v=[1])
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    check_stream(log, "s", schema)
    with pytest.raises(UserError, match=r"stream s: its log holds tuples with the schema \(k bigint, v bigint\)"):
        check_stream(log, "s", schema.append(pa.field("w", pa.int64())))


def test_an_output_with_other_columns_makes_way_once_it_is_read(log: Log) -> None:
    log.declare("q")
    log.start_reader("q/file", "q")
    append(log, "q", k=[1, 2, 3])
    assert check_output(log, "q", pa.schema([("k", pa.int64())])) == 0
    with pytest.raises(UserError, match="tuples of the old form still wait for q/file"):
        check_output(log, "q", pa.schema([("v", pa.int64())]))
    log.advance("q/file", "q", 3)
    assert check_output(log, "q", pa.schema([("v", pa.int64())])) == 3
    # Offsets go on, so that nobody's cursor is ahead of the log.
    append(log, "q", v=[4])
    assert log.read("q", 3, 4).column("v").to_pylist() == [4]


def test_a_state_folder_belongs_to_one_application(tmp_path: Path) -> None:
    check_owner(tmp_path, "market")
    claim(tmp_path, "shop")
    check_owner(tmp_path, "shop")
    with pytest.raises(UserError, match=r"belongs to the application shop, and this one is market.*name = \"shop\""):
        check_owner(tmp_path, "market")


def test_the_life_of_a_query_counts_from_its_first_start_stops_included(tmp_path: Path) -> None:
    one = query("SELECT k FROM s WHERE v > 1")
    with Log.open(tmp_path / "state") as log:
        log.declare("s")
        assert age(log, "q", 100.0) == 0.0
        start(log, one, now=100.0)
        park(log)
    with Log.open(tmp_path / "state") as log:
        assert start(log, one, now=160.0) == "back"
        assert (age(log, "q", 170.0), age(log, "q", 90.0)) == (70.0, 0.0)
        assert start(log, query("SELECT v FROM s WHERE v > 1"), now=200.0) == "changed"
        assert age(log, "q", 205.0) == 5.0


def test_a_life_that_an_earlier_version_did_not_count_begins_with_the_next_start(log: Log) -> None:
    one = query("SELECT k FROM s WHERE v > 1")
    start(log, one)
    assert age(log, "q", 50.0) == 0.0
    start(log, one, now=60.0)
    assert age(log, "q", 65.0) == 5.0
