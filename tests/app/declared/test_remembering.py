"""Operators of one's own that remember, by the test kit: the real kernels over a real log, under random schedules."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from freshet.app import App, InvalidApp
from freshet.app.remembered.restart import fingerprint
from freshet.model import UserError
from freshet.sql import describe
from freshet.testing import Heartbeat, LocalRun, Push, answers, assert_same, check_invariant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Given = tuple[pa.Table, list[pa.Table], list[int]]
SESSION = pa.schema(
    {"person": pa.string(), "clicks": pa.int64(), "over": pa.timestamp("us", tz="UTC"), "_arrival": pa.int64()}
)


class Sessions:
    """Clicks of a person with less than a gap between them, when they are over."""

    states = ("ts timestamp, person string",)
    any_order = True

    def run(
        self, tuples: pa.Table, states: Sequence[pa.Table], before: int | None, after: int | None, gap: int = 60
    ) -> Given:
        """Remembers the clicks of sessions that may go on."""
        clicks = pa.concat_tables([*states, tuples]).sort_by([("person", "ascending"), ("ts", "ascending")])
        width, rows, kept = gap * 1_000_000, [], [0] * 0
        times, people = clicks["ts"].cast(pa.int64()).to_pylist(), clicks["person"].to_pylist()
        arrivals, first = clicks["_arrival"].to_pylist(), 0
        for place in range(1, len(times) + 1):
            last = place - 1
            goes_on = place < len(times) and people[place] == people[last] and times[place] - times[last] < width
            if goes_on:
                continue
            over = times[last] + width
            if after is not None and over <= after:
                rows.append((people[last], place - first, over, max(arrivals[first:place])))
            else:
                kept += range(first, place)
            first = place
        columns = list(zip(*rows, strict=True)) or [()] * 4
        made = pa.Table.from_arrays([pa.array(each, kind) for each, kind in zip(columns, SESSION.types, strict=True)],
                                    schema=SESSION)  # fmt: skip
        return made, [clicks.take(pa.array(kept, pa.int64()))], [states[0].num_rows]


class Changes:
    """The tuples in which a value differs from the one before of the same person."""

    states = ("person string, page string",)

    def run(self, tuples: pa.Table, states: Sequence[pa.Table], before: None, after: None) -> Given:
        """Remembers the last page of each person."""
        known = {row["person"]: row for row in states[0].to_pylist()}
        changed = []
        for place, row in enumerate(tuples.to_pylist()):
            if row["page"] != known.get(row["person"], {}).get("page"):
                changed.append(place)
            known[row["person"]] = {name: row[name] for name in ("person", "page", "_arrival")}
        kept = pa.Table.from_pylist(list(known.values()), states[0].schema)
        return tuples.take(pa.array(changed, pa.int64())), [kept], [states[0].num_rows]


def app_with(*sql: str, **given: Any) -> App:
    app = App("a")
    app.stream("clicks", "ts timestamp, person string, page string", event_time="ts", lateness="5 s")
    sessions: dict[str, Any] = {
        "what": Sessions,
        "takes": "ts timestamp, person string",
        "returns": "person string, clicks bigint, over timestamp",
        "time": "column:over",
    }
    app.operator("sessions", **sessions | given)
    pages = "person string, page string"
    app.operator("page_changes", Changes, takes=pages, returns=pages, time="none")
    for number, text in enumerate(sql):
        app.query("qrs"[number], text)
    return app


def rows(seed: int = 0, count: int = 60) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    moments = sorted(rng.uniform(0, 1500) for _ in range(count))
    clicks = [{"ts": at, "person": rng.choice("ab"), "page": rng.choice("xyz")} for at in moments]
    return sorted(clicks, key=lambda row: row["ts"] + rng.uniform(0, 4))


def sessions_of(clicks: list[dict[str, Any]], gap: int = 60) -> list[dict[str, Any]]:
    found = []
    for person in ("a", "b"):
        times = sorted(row["ts"] for row in clicks if row["person"] == person)
        starts = [place for place, at in enumerate(times) if place == 0 or at - times[place - 1] >= gap]
        ends = [*starts[1:], len(times)] if times else []
        found += [{"person": person, "clicks": end - first} for first, end in zip(starts, ends, strict=True)]
    return found


SESSIONS = "SELECT person, clicks FROM sessions(clicks)"
COUNTS = "SELECT window_end, count(*) AS n FROM sessions(clicks, 30) [RANGE 5 MINUTES SLIDE 5 MINUTES]"
CHANGES = "SELECT person, page FROM page_changes(clicks) WHERE page <> 'z'"


def test_time_brings_rows_out_and_windows_go_by_the_time_that_they_have() -> None:
    found = answers(app_with(SESSIONS, COUNTS, CHANGES), {"clicks": rows()})
    assert_same(found["q"], sessions_of(rows()))
    assert sum(row["n"] for row in found["r"]) == len(sessions_of(rows(), 30))
    last: dict[str, str] = {}
    changed = []
    for row in rows():
        if last.get(row["person"]) != row["page"] and row["page"] != "z":
            changed.append({"person": row["person"], "page": row["page"]})
        last[row["person"]] = row["page"]
    assert found["s"] == changed


def test_answers_do_not_depend_on_the_schedule() -> None:
    check_invariant(app_with(SESSIONS, COUNTS, CHANGES), {"clicks": rows(1, 40)}, cases=8)


def test_a_session_is_told_when_time_has_passed_and_nothing_came() -> None:
    with LocalRun(app_with(SESSIONS)) as run:
        run.push("clicks", [{"ts": 100, "person": "a", "page": "x"}])
        run.drain()
        assert run.rows("q") == []
        run.heartbeat("clicks", 164.9)  # a click may still come that is 5 s late
        run.drain()
        assert run.rows("q") == []
        run.heartbeat("clicks", 165.0)
        run.drain()
        assert run.rows("q") == [{"person": "a", "clicks": 1}]


def test_what_it_remembers_is_there_after_a_crash() -> None:
    with LocalRun(app_with(SESSIONS, CHANGES)) as run:
        run.push("clicks", [{"ts": 100, "person": "a", "page": "x"}])
        run.drain()
        run.crash()
        run.push("clicks", [{"ts": 120, "person": "a", "page": "x"}, {"ts": 500, "person": "a", "page": "y"}])
        run.drain()
        assert run.rows("q") == [{"person": "a", "clicks": 2}]
        assert [row["page"] for row in run.rows("r")] == ["x", "y"]


def test_over_a_stream_without_event_time_it_goes_by_the_arrival() -> None:
    app = app_with()
    app.stream("bare", "person string")
    app.query("q", "WITH c AS (SELECT now() AS ts, person FROM bare) SELECT person, clicks FROM sessions(c)")
    happens = [
        Push("bare", [{"person": "a"}], at=1000),
        Push("bare", [{"person": "a"}], at=1030),
        Heartbeat("bare", 1200),
    ]
    assert answers(app, [*happens, Push("bare", [{"person": "a"}], at=1300)])["q"] == [
        {"person": "a", "clicks": 2}, {"person": "a", "clicks": 1},
    ]  # fmt: skip


def test_it_stands_on_a_join_only_where_the_order_does_not_matter() -> None:
    joined = (
        "SELECT a.ts, a.person, a.page FROM clicks [RANGE 9 SECONDS] a, clicks [RANGE 9 SECONDS] b "
        "WHERE a.ts = b.ts AND a.person = b.person"
    )
    check_invariant(app_with(joined, "SELECT person, clicks FROM sessions(q)"), {"clicks": rows(2, 30)}, cases=4)
    with pytest.raises(InvalidApp, match="come in no order that is the same in every run"):
        app_with(joined, "SELECT person FROM page_changes(q)").check()


def test_explain_says_what_it_remembers() -> None:
    [text] = [describe(query.graph) for query in app_with(SESSIONS).checked().queries.values()]
    assert "sessions(ts, person) AS (person, clicks, over)" in text
    assert "(remembers rows of (ts, person))" in text


class WithoutRun:
    states = ("n int",)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"time": None}, "a stateful operator must say what becomes of event time: time = 'column:X'"),
        ({"time": "column:person"}, "returns has no column person of type timestamp"),
        ({"what": WithoutRun}, "what has states must have a method run"),
        ({"what": type("Bad", (), {"states": "n int"})}, "states must be columns, as in"),
        ({"what": type("Bad", (), {"states": ("n inn",)}), "time": "none"}, "must have a method run"),
        ({"what": type("Bad", (Sessions,), {"states": ("n inn",)})}, "operator other: states: schema 'n inn' is not"),
        ({"returns": None}, "declare it with @freshet.operator(takes=..., returns=...)"),
        (
            {"what": type("Short", (Sessions,), {"run": lambda self, tuples: None})},
            "its code must take tuples, states, ",
        ),
        (
            {"what": type("Made", (Sessions,), {"__init__": lambda self, gap: None})},
            "give an object of the class, which",
        ),
        ({"what": 5}, "it must be a Python function, or have states and a run, not 5"),
    ],
)
def test_a_wrong_declaration_is_refused(given: dict[str, Any], told: str) -> None:
    declared = {"what": Sessions, "takes": "ts timestamp", "returns": "person string, over timestamp"}
    with pytest.raises(UserError) as error:
        app_with().operator("other", **{**declared, "time": "column:over", **given})
    assert told in str(error.value)


def test_the_time_of_tuples_must_be_known() -> None:
    app = app_with("SELECT person FROM sessions(counts)")
    app.query("counts", "SELECT ts AS at, ts + INTERVAL 1 SECOND AS ts, person FROM sessions_less(clicks)")
    less = {"takes": "ts timestamp, person string", "returns": "ts timestamp, person string", "time": "none"}
    app.operator("sessions_less", type("Less", (Sessions,), {}), **less)
    with pytest.raises(InvalidApp, match=r"sessions\(\) goes by the time of its tuples, and they have none"):
        app.check()


def test_a_window_over_a_stream_without_lateness_is_refused_and_changes_are_not() -> None:
    app = app_with("SELECT person FROM page_changes(late)")
    app.stream("late", "ts timestamp, person string, page string", event_time="ts")
    assert app.check() == ["streams.clicks: no query reads it"]
    app.query("r", "SELECT person FROM sessions(late)")
    with pytest.raises(InvalidApp, match="declare its lateness"):
        app.check()


class Forgetful(Changes):
    """Does not remember, so that its rows depend on how tuples are cut."""

    def run(self, tuples: pa.Table, states: Sequence[pa.Table], before: None, after: None) -> Given:
        made, kept, dropped = super().run(tuples, states, before, after)
        return made, [kept[0].slice(0, 0)], dropped


class InThePast(Sessions):
    """Says that a session was over long ago."""

    def run(self, *given: Any) -> Given:
        made, kept, dropped = super().run(*given)
        over = pa.array([at.value - 100_000_000 for at in made["over"]], SESSION.field("over").type)
        return made.set_column(2, SESSION.field("over"), over), kept, dropped


def altered(**changes: Any) -> type[Changes]:
    def run(self: Any, *given: Any) -> Any:
        made, kept, dropped = Changes.run(self, *given)
        return changes["rows"](made) if "rows" in changes else made, kept, changes.get("dropped", dropped)

    return type("Altered", (Changes,), {"run": run})


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (Forgetful, "operator other gives other rows when its tuples come in two runs"),
        (altered(dropped=[9]), "operator other forgets 9 rows of a state that has 0"),
        (altered(dropped=[]), "operator other must return three things"),
        (altered(dropped=1), "operator other must return three things"),
        (
            altered(rows=lambda made: made.drop_columns(["_arrival"])),
            "operator other gave rows of (person string, page",
        ),
        (
            altered(rows=lambda made: made["page"]),
            "operator other returned a value of the type ChunkedArray as rows, not a table of (person string, page",
        ),
        (
            type("Raises", (Changes,), {"run": lambda *given: 1 // 0}),
            "operator other raised ZeroDivisionError: integer division or modulo by zero (test_remembering.py, line ",
        ),
        (altered(dropped=[1.0]), "operator other must say as a whole number how many rows a state forgets, not 1.0"),
        (altered(dropped=[None]), "operator other must say as a whole number how many rows a state forgets, not None"),
        (altered(rows=lambda made: None), "operator other returned None as rows, not a table of (person string, page"),
    ],
)
def test_what_is_not_as_declared_fails_its_query_and_no_other(what: Any, told: str) -> None:
    app = app_with("SELECT person FROM other(clicks)", CHANGES, SESSIONS)
    app.operator("other", what, takes="person string, page string", returns="person string, page string", time="none")
    with LocalRun(app) as run:
        run.push("clicks", rows())
        run.drain()
        run.close_windows()
        run.drain()
        assert told in run.stopped["q"]
        assert list(run.stopped) == ["q"]
        assert_same(run.rows("s"), sessions_of(rows()))
        assert len(run.rows("r")) > 1


def test_a_row_in_the_past_fails_its_query() -> None:
    with LocalRun(app_with(SESSIONS, what=InThePast)) as run:
        for at in (100, 120, 300):
            run.push("clicks", [{"ts": at, "person": "a", "page": "x"}])
            run.drain()
        assert "whose over is" in run.stopped["q"]


def test_another_version_is_another_query() -> None:
    def print_of(**given: Any) -> str:
        return fingerprint(app_with(SESSIONS, **given).checked().queries["q"])

    assert print_of() == print_of()
    changed = [print_of(), print_of(what=InThePast), print_of(version="1"), print_of(version="2")]
    states = type("States", (Sessions,), {"states": ("ts timestamp, person string, more int",)})
    changed += [print_of(version="1", what=states)]
    objects = [Sessions() for _ in range(3)]
    for number, each in enumerate(objects):
        vars(each)["limit"] = max(1, number)
    first, same, other = (print_of(what=each) for each in objects)
    assert first == same != other
    assert len({*changed, first, other}) == 7


@pytest.mark.spark
def test_it_runs_on_workers_of_spark_and_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    clicks = [*rows(3), {"ts": 9000, "person": "c", "page": "x"}]
    for part in (clicks[:25], clicks[25:]):
        app = app_with(SESSIONS, CHANGES)
        app = _on(spark, app, tmp_path / "state")
        with app.start() as run:
            run.push("clicks", part)
            run.drain()
            found = {name: run.read(name).to_pylist() for name in ("q", "r")}
    expected = answers(app_with(SESSIONS, CHANGES), {"clicks": clicks})
    assert_same([{"person": row["person"], "clicks": row["clicks"]} for row in found["q"]], sessions_of(rows(3)))
    assert [row["page"] for row in found["r"]] == [row["page"] for row in expected["r"]]


def _on(spark: SparkSession, app: App, state: Path) -> App:
    """The application on a Spark that is there."""
    app.session, app.state = spark, state
    return app
