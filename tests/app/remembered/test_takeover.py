"""State folders of earlier versions, without Spark: which readers and queues become which."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.app.remembered.forms import inputs_of
from freshet.app.remembered.restart import compare, fingerprint, out, remember, remembered
from freshet.app.remembered.takeover import as_it_ran, old_fingerprint, old_queries, take_over
from freshet.engine.queues import QUEUE
from freshet.log import Log
from freshet.model import ARRIVAL, Query, parse_schema
from freshet.sql import build_query

STREAMS = {"s": parse_schema("k bigint, v bigint"), "t": parse_schema("k bigint, w bigint")}
JOIN = (
    "SELECT s.k, v + w AS x FROM s [RANGE 5 SECONDS] JOIN t [RANGE 5 SECONDS] ON s.k = t.k WHERE s.v > 1 AND v + w > 3"
)
THREE = (
    "SELECT a.v FROM s [RANGE 5 SECONDS] a, t [RANGE 5 SECONDS] b, s [RANGE 5 SECONDS] c WHERE a.k = b.k AND b.k = c.k"
)
STRAIGHT = "SELECT k FROM s WHERE v > 1 AND k > 2 AND v > 3"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path) as one:
        for name in ("s", "t"):
            one.declare(name)
            one.append(name, pa.table({"k": [1, 2, 3], "v": [1, 2, 3], ARRIVAL: [1, 2, 3]}))
        yield one


def query(sql: str) -> Query:
    return build_query("q", sql, STREAMS)


def reader(log: Log, name: str, stream: str, at: int, one: Query | None = None, **state: object) -> None:
    """A reader as the version before left it."""
    owner = name.partition(".")[0]
    log.start_reader(name, stream, at, owner=owner)
    told = {"fingerprint": old_fingerprint(one)} if one is not None else {}
    log.advance(name, stream, at, told | state)


def queue(log: Log, name: str, keys: list[int], at: int = 0, mark: int | None = None) -> None:
    """An intermediate queue as the version before left it."""
    log.declare(name, QUEUE, kind="queue")
    log.append(name, pa.table({"k": keys, ARRIVAL: [1] * len(keys)}), watermark=mark)
    reader(log, name, name, at)


def waiting(log: Log, name: str) -> list[int]:
    keys: list[int] = log.read(name, log.cursor(name) or 0, log.end(name))["k"].to_pylist()
    return keys


def cursors(log: Log) -> dict[str, tuple[str, int]]:
    return {name: (each.stream, each.next) for name, each in log.readers().items()}


def test_the_sides_of_a_join_and_what_waits_behind_it(log: Log) -> None:
    one = query(JOIN)
    reader(log, "q.filter_1@1", "s", 2, one)
    queue(log, "q.join_1.left@1", [4, 5], at=1)
    queue(log, "q.project@1", [6, 7], at=1, mark=50)
    reader(log, "q.join_1.right.input@2", "t", 1, one)
    queue(log, "q.project@2", [8], mark=40)
    assert compare(log, one) == "changed", "nothing is known of it in the present form"
    take_over(log, one, fingerprint(one))
    assert compare(log, one) == "unchanged"
    names = {each.reader for each in inputs_of(one.graph)}
    assert {"q.filter_1", "q.join_1:0", "q.join_1.right.input"} <= names
    assert cursors(log) == {
        "q.filter_1": ("s", 2), "q.join_1.right.input": ("t", 1), "q.join_1:0": ("q.join_1:0", 0),
        "q.project": ("q.project", 0),
    }  # fmt: skip
    assert (waiting(log, "q.join_1:0"), waiting(log, "q.project")) == ([5], [7, 8])
    assert set(log.streams()) == {"s", "t", "q.join_1:0", "q.project"}
    assert old_queries(log) == {}


def test_the_watermark_of_queues_that_come_together_is_the_least(log: Log) -> None:
    one = query(JOIN)
    reader(log, "q.filter_1@1", "s", 2, one)
    reader(log, "q.join_1.right.input@2", "t", 1, one)
    behind = next(name for name, inputs in one.graph.inputs.items() if inputs == ("q.join_1",))
    for number, marks in ((1, (30, 50)), (2, (20, 40))):
        queue(log, f"{behind}@{number}", [1], mark=marks[0])
        log.append(f"{behind}@{number}", pa.table({"k": [2], ARRIVAL: [1]}), watermark=marks[1])
        log.advance(f"{behind}@{number}", f"{behind}@{number}", 1)
    take_over(log, one, fingerprint(one))
    assert waiting(log, behind) == [2, 2]
    assert log.watermark(behind, 0) == 20, "of what waits"


def test_shared_work_becomes_operators_of_its_queries(log: Log) -> None:
    one = query(STRAIGHT)
    log.declare("__shared_1", QUEUE, kind="queue")
    log.declare("__shared_2", QUEUE, kind="queue")
    reader(log, "__shared_1.1", "s", 3, skips=0)
    log.append("__shared_1", pa.table({"k": [4, 5], ARRIVAL: [1, 1]}))
    reader(log, "__shared_2.1", "__shared_1", 1, skips=1)
    log.append("__shared_2", pa.table({"k": [6, 7], ARRIVAL: [1, 1]}))
    reader(log, "q.filter_3", "__shared_2", 1, one, home="q.filter_1")
    reader(log, "r.project", "__shared_1", 2)
    queue(log, "q.project", [8])
    take_over(log, one, fingerprint(one))
    own = {name: at for name, at in cursors(log).items() if name.startswith("q.")}
    assert own == {
        "q.filter_1": ("s", 3), "q.filter_2": ("q.filter_2", 0), "q.filter_3": ("q.filter_3", 0),
        "q.project": ("q.project", 0),
    }  # fmt: skip
    assert [waiting(log, f"q.{name}") for name in ("filter_2", "filter_3", "project")] == [[5], [7], [8]]
    assert "__shared_2" not in log.streams()
    assert "__shared_1" in log.streams(), "a query that is out still stands there"
    assert not log.readers()["__shared_1.1"].needed
    assert list(old_queries(log)) == ["r"]


def test_a_query_that_was_out_stays_out_until_it_is_put_back(log: Log) -> None:
    one = query(JOIN)
    reader(log, "q.filter_1@1", "s", 2, one)
    reader(log, "q.join_1.right.input@2", "t", 1, one)
    queue(log, "q.join_1.left@1", [4])
    log.set_need("q.join_1.left@1", False)
    log.park(["q.filter_1@1", "q.join_1.right.input@2"])
    assert out(log) == {"q": True}
    take_over(log, one, fingerprint(one))
    assert compare(log, one) == "back"
    assert waiting(log, "q.join_1:0") == [4]


def test_a_query_that_has_changed_is_left_as_it_is(log: Log) -> None:
    reader(log, "q.filter_1@1", "s", 2, query(JOIN))
    before = cursors(log)
    other = query(JOIN.replace("> 3", "> 4"))
    take_over(log, other, fingerprint(other))
    assert (cursors(log), remembered(log)) == (before, {})
    assert compare(log, other) == "changed"


def in_its_form(log: Log, sql: str = THREE) -> Query:
    return as_it_ran(log, query(sql), lambda: build_query("q", sql, STREAMS, in_pairs=True), fingerprint)


def test_streams_that_were_joined_two_at_a_time_go_on_so(log: Log) -> None:
    paired = build_query("q", THREE, STREAMS, in_pairs=True)
    remember(log, paired, paired.graph)
    assert in_its_form(log) == paired
    other = THREE.replace("a.v", "a.v + 1")
    assert in_its_form(log, other) == query(other), "it has changed, and begins in its present form"


def test_they_go_on_so_from_paths_too(log: Log) -> None:
    paired = build_query("q", THREE, STREAMS, in_pairs=True)
    for number, (side, stream) in enumerate((("1.left", "s"), ("1.right", "t"), ("2.right", "s")), start=1):
        reader(log, f"q.join_{side}.input@{number}", stream, number, paired)
    found = in_its_form(log)
    assert found == paired
    take_over(log, found, fingerprint(found))
    assert compare(log, found) == "unchanged"
    assert [cursors(log)[f"q.join_{side}.input"][1] for side in ("1.left", "1.right", "2.right")] == [1, 2, 3]


def test_what_is_new_or_was_joined_at_once_is_joined_at_once(log: Log) -> None:
    one = query(THREE)
    assert in_its_form(log) == one
    remember(log, one, one.graph)
    assert in_its_form(log) == one
