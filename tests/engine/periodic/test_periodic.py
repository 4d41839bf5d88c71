"""Periodic queries: an instance's answer is the batch answer over its windows, whatever the schedule."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from freshet import App
from freshet.kernels.keeping import kept_mask
from freshet.model import ARRIVAL, Instance, InstanceView, Train, UserError, View, parse_schema
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel
from freshet.testing import Faults, Killed, LocalRun
from freshet.testing.local_run import START

QUERIES = {
    "aggregate": "SELECT k, count(*) AS n, sum(v) AS total FROM {s} WHERE v <> 3 GROUP BY k",
    "plain": "SELECT k, v FROM {s} WHERE v > 1",
    "global": "SELECT count(*) AS n, min(v) AS low, max(v) AS high FROM {s}",
    "distinct": "SELECT DISTINCT k FROM {s}",
    "join": "SELECT s.k, v, w FROM {s} s JOIN {t} t ON s.k = t.k WHERE v <> w",
    "self join": "SELECT a.v AS one, b.w AS two FROM {s} a JOIN {t} b ON a.k = b.k",
    "left join": "SELECT s.k, v, w FROM {s} s LEFT JOIN {t} t ON s.k = t.k",
    "three": "SELECT s.k, v, w FROM {s} s JOIN {t} t ON s.k = t.k JOIN {u} u ON u.k = t.k",
    "joined, grouped": "SELECT s.k, count(*) AS n, sum(w) AS sum FROM {s} s JOIN {t} t ON s.k = t.k GROUP BY s.k",
    "except": "SELECT k FROM {s} EXCEPT SELECT k FROM {t}",
    "intersect": "SELECT k FROM {s} INTERSECT SELECT k FROM {t}",
    "union": "SELECT k FROM {s} UNION SELECT k FROM {t}",
    "partitions": "SELECT k, v FROM {s}",
    "twice": "SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n FROM {s} GROUP BY k) GROUP BY n",
}
COLUMNS = {"s": "k string, v int", "t": "k string, w int", "u": "k string"}
WINDOWS = ("[RANGE 1 s]", "[RANGE 2 s]", "[RANGE 5 s]", "[ROWS 1]", "[ROWS 4]", "[PARTITION BY k ROWS 2]")


@dataclass(frozen=True)
class Arrival:
    """A row of a stream, with its arrival in microseconds."""

    stream: str
    at: int
    row: dict[str, Any]


def drawn(seed: int) -> tuple[dict[str, str], dict[str, str], list[Arrival]]:
    """Windows by query and stream, texts by query, and a log of 20 seconds."""
    rng = random.Random(seed)
    names = rng.sample(sorted(QUERIES), 3)
    windows: dict[str, str] = {}
    texts: dict[str, str] = {}
    for number, name in enumerate(names):
        own = {stream: rng.choice(WINDOWS) for stream in COLUMNS}
        windows |= {f"q{number} {stream}": window for stream, window in own.items()}
        bound = {stream: f"{stream} {window}" for stream, window in own.items()}
        texts[f"q{number}"] = QUERIES[name].format(**bound) + f" PERIOD {rng.choice((1, 2, 3))} s"
    rows = []
    at = round(START * 1e6)
    for _ in range(rng.randint(5, 60)):
        at += rng.choice((0, 100_000, 250_000, 1_000_000, 2_500_000))
        stream = rng.choice(sorted(COLUMNS))
        row = {"k": rng.choice("abc"), "v": rng.randint(0, 5), "w": rng.randint(0, 5)}
        rows.append(
            Arrival(stream, at, {column.split()[0]: row[column.split()[0]] for column in COLUMNS[stream].split(", ")})
        )
    return windows, texts, rows


def batch(name: str, text: str, windows: dict[str, str], rows: list[Arrival], release: int) -> Counter[tuple[Any, ...]]:
    """What DuckDB answers over the windows at a release."""
    connection = _duck()
    for stream, columns in COLUMNS.items():
        window = windows[f"{name} {stream}"]
        seen = within(window, [row for row in rows if row.stream == stream and row.at < release], release)
        connection.register(stream, pa.Table.from_pylist([row.row for row in seen], parse_schema(columns)))
        text = text.replace(f"{stream} {window}", stream)
    return Counter(connection.execute(text.split(" PERIOD")[0]).fetchall())


@cache
def _duck() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": "1"})


def within(window: str, seen: list[Arrival], release: int) -> list[Arrival]:
    """What a window holds at a release, of what came before it."""
    number = int(re.findall(r"\d+", window)[0])
    if "PARTITION" in window:
        keys = {row.row["k"] for row in seen}
        return [row for key in keys for row in [each for each in seen if each.row["k"] == key][-number:]]
    return seen[-number:] if "ROWS" in window else [row for row in seen if row.at >= release - number * 1_000_000]


def answers(run: LocalRun, name: str) -> dict[int, Counter[tuple[Any, ...]]]:
    """The answers that there are, by release."""
    end = run.log.end(name)
    table = run.log.read(name, 0, end) if end else pa.table({ARRIVAL: pa.array([], pa.int64())})
    found = {}
    for each in run.instances(name):
        assert each.state == "answered"
        part = table.slice(each.first, each.rows)
        assert set(part.column(ARRIVAL).to_pylist()) <= {each.release}
        found[each.release] = Counter(tuple(row.values()) for row in part.drop_columns([ARRIVAL]).to_pylist())
    return found


def survived(run: LocalRun, act: Callable[[], object]) -> None:
    """Does something; if the process dies meanwhile, starts it again."""
    try:
        act()
    except Killed:
        run.crash()


def check(seed: int) -> int:
    """Runs a random case under a random schedule with crashes; returns the number of rows compared."""
    windows, texts, rows = drawn(seed)
    rng = random.Random(f"schedule {seed}")
    app = App("p", periodic=rng.choice(("edf", "edf-fused", "rm", "dm", "llf", "edf(shortest)")))
    for stream, columns in COLUMNS.items():
        app.stream(stream, columns)
    for name, text in texts.items():
        app.query(name, text, missed="catch-up")
    compared, faults = 0, Faults.at_random(seed, share=rng.choice((0.0, 0.05)))
    workers, resplits = rng.choice((1, 2, 3)), rng.choice((0.0, 0.5))
    with LocalRun(app, workers=workers, seed=seed, faults=faults, resplits=resplits) as run:
        for row in rows:
            run.push(row.stream, [row.row], at=row.at / 1e6)
            for _ in range(rng.choice((0, 0, 1, 3))):
                survived(run, run.turn)
            if rng.random() < 0.05:
                run.crash(seed=rng.randint(0, 99))
            if rng.random() < 0.1:
                run.tidy()
        faults.end()
        assert run.drain()
        assert not run.stopped
        for name, text in texts.items():
            period = int(text.split("PERIOD ")[1].split()[0]) * 1_000_000
            first, last = round(START * 1e6), rows[-1].at
            due = set(range((first // period + 1) * period, last + 1, period))
            found = answers(run, name)
            assert found.keys() == due
            for release, rows_found in found.items():
                expected = batch(name, text, windows, rows, release)
                if "count(*)" in text and "GROUP" not in text and not _has_rows(windows, name, rows, release):
                    expected = Counter()  # an empty window gives no row, as with a SLIDE
                assert rows_found == expected, (name, text, release)
                compared += rows_found.total()
    return compared


def _has_rows(windows: dict[str, str], name: str, rows: list[Arrival], release: int) -> bool:
    text = f"SELECT count(*) AS n FROM s {windows[f'{name} s']} PERIOD"
    ((count,),) = batch(name, text, windows, rows, release)
    return bool(count)


@pytest.mark.timeout(0)
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_answers_are_those_of_a_batch_over_the_windows(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.timeout(0)
@settings(max_examples=2_000, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_answers_are_those_of_a_batch_in_thousands_of_cases(seed: int) -> None:
    check(seed)


def simple(**more: Any) -> App:
    app = App("p")
    app.stream("s", "k string, v int")
    app.query("q", "SELECT k, count(*) AS n FROM s [RANGE 4 s] GROUP BY k PERIOD 2 s DEADLINE 1 s", **more)
    return app


def test_an_aggregate_equals_that_of_a_sliding_window() -> None:
    app = simple()
    app.query("slide", "SELECT k, count(*) AS n FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k")
    rng = random.Random(1)
    with LocalRun(app) as run:
        for number in range(60):
            run.push("s", [{"k": rng.choice("ab"), "v": number}], at=START + number * 0.37)
            run.turn()
        run.heartbeat("s", START + 24.0)
        assert run.drain()
        assert Counter(map(str, run.rows("q"))) == Counter(map(str, run.rows("slide")))
        assert len(run.rows("q")) > 15


def test_an_empty_answer_leaves_its_record() -> None:
    with LocalRun(simple()) as run:
        run.push("s", [{"k": "a", "v": 1}], at=START + 0.5)
        run.heartbeat("s", START + 10.0)
        run.drain()
        assert [each.rows for each in run.instances("q")] == [1, 1, 0, 0, 0]
        assert {each.state for each in run.instances("q")} == {"answered"}


@pytest.mark.parametrize(("missed", "states"), [("skip", 1), ("catch-up", 5)])
def test_missed_releases_are_skipped_or_caught_up_with(missed: Any, states: int) -> None:
    with LocalRun(simple(missed=missed)) as run:
        run.push("s", [{"k": "a", "v": 1}], at=START + 0.5)
        run.heartbeat("s", START + 2.0)
        run.drain()
        run.heartbeat("s", START + 10.0)
        run.crash()
        run.drain()
        assert len(run.instances("q")) == states
        skipped = [(entry.kind, entry.rows) for entry in run.missing("q")]
        assert skipped == ([("skipped", 4)] if missed == "skip" else [])
        run.push("s", [{"k": "b", "v": 1}], at=START + 11.0)
        run.heartbeat("s", START + 12.0)
        run.drain()
        assert run.rows("q")[-1] == {"k": "b", "n": 1}
        told = run.engine.snapshot()["queries"]["q"]["instances"]
        assert told is not None
        assert told["skipped"] == (4 if missed == "skip" else 0)


def test_late_instances_are_abandoned_if_the_query_says_so() -> None:
    with LocalRun(simple(late="abandon")) as run:
        run.push("s", [{"k": "a", "v": 1}], at=START + 1.5)
        run.engine.clock.wait(START + 9.0)
        run.heartbeat("s", START + 8.0)
        run.drain()
        found: list[Instance] = run.instances("q")
        assert [each.state for each in found] == ["abandoned", "abandoned", "abandoned", "answered"]
        assert [entry.kind for entry in run.missing("q")] == ["skipped"] * 3
        # What came since the last answer is in the panes all the same.
        assert run.rows("q") == []
        run.push("s", [{"k": "a", "v": 1}], at=START + 9.5)
        run.heartbeat("s", START + 10.0)
        run.drain()
        assert run.rows("q") == [{"k": "a", "n": 1}]


def test_what_is_held_for_windows_does_not_wait_and_is_let_go() -> None:
    app = App("p")
    app.stream("s", "k string, v int")
    app.query("q", "SELECT v FROM s [RANGE 4 s] PERIOD 2 s")
    with LocalRun(app) as run:
        for number in range(20):
            run.push("s", [{"k": "a", "v": number}], at=START + number)
            run.turn()
        run.drain()
        snapshot = run.engine.snapshot()["queries"]["q"]
        assert snapshot["waiting"] == 0
        assert snapshot["freshness"] is None
        reader = run.log.readers()["q.project"]
        # Released last at 18: the next window begins at 16.
        assert (reader.kind, reader.next) == ("window", 16)


class HalfKept:
    """Keeps the same share of every instance."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self.outcomes: list[InstanceOutcome] = []

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Nothing to note."""

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        self.outcomes.append(outcome)

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[tuple[str, int], InstanceLevel]:
        return {
            each.key: InstanceLevel({part.reader: self._ratio for part in each.inputs}, self._ratio)
            for each in view.instances
        }


@pytest.mark.parametrize("name", ["aggregate", "join"])
def test_answers_at_a_level_are_those_of_log_minus_ledger(name: str) -> None:
    windows = {f"q {stream}": "[RANGE 2 s]" for stream in COLUMNS}
    text = QUERIES[name].format(**{stream: f"{stream} [RANGE 2 s]" for stream in COLUMNS}) + " PERIOD 1 s"
    app = App("p")
    for stream, columns in COLUMNS.items():
        app.stream(stream, columns)
    app.query("q", text, overload=["defer", "thin"])
    rng = random.Random(3)
    rows: list[Arrival] = []
    with LocalRun(app) as run:
        levels = HalfKept(0.5)
        run.engine._periodic.levels = levels
        for number in range(120):
            stream, row = rng.choice("st"), {"k": rng.choice("ab"), "v": rng.randint(0, 5)}
            row = row if stream == "s" else {"k": row["k"], "w": row["v"]}
            rows.append(Arrival(stream, round(START * 1e6) + number * 100_000, row))
            run.push(stream, [row], at=rows[-1].at / 1e6)
            if number % 4 == 0:
                run.turn()
        run.drain()
        entries = [entry for entry in run.missing("q") if entry.kind == "thinned"]
        assert entries
        assert all(entry.ratio == 0.5 for entry in entries)
        gone: set[tuple[str, int]] = set()
        for entry in entries:
            kept = kept_mask(Train(entry.stream, entry.first, entry.end, keep=entry.keep))
            assert entry.rows == int((~kept).sum())
            gone |= {(entry.stream, entry.first + int(place)) for place in np.flatnonzero(~kept)}
        left = []
        for stream in COLUMNS:
            mine = [row for row in rows if row.stream == stream]
            left += [row for offset, row in enumerate(mine) if (stream, offset) not in gone]
        left.sort(key=lambda row: row.at)
        found = answers(run, "q")
        assert len(found) == 11
        for release, answer in found.items():
            assert answer == batch("q", text, windows, left, release)
        assert {each.quality for each in run.instances("q")} == {0.5}
        assert [one.instance.release for one in levels.outcomes] == sorted(found)


def test_an_instance_may_not_be_thinned_unless_its_query_allows_it() -> None:
    with LocalRun(simple()) as run:
        run.engine._periodic.levels = HalfKept(0.5)
        run.push("s", [{"k": "a", "v": 1}], at=START + 0.5)
        run.heartbeat("s", START + 2.0)
        with pytest.raises(UserError, match="query q may not be thinned"):
            run.drain()


def test_panes_and_whole_windows_give_the_same_answers() -> None:
    from freshet.sql import build_query

    text = "SELECT k, count(*) AS n FROM s [RANGE 4 s] GROUP BY k PERIOD 2 s"
    schemas = {"s": parse_schema("k string, v int")}
    panes, whole = (build_query("q", text, schemas, whole_windows=each) for each in (False, True))
    assert [window.passes for window in panes.windows.values()] == [True]
    assert [window.size for window in whole.windows.values()] == [4_000_000]


class Alternating(HalfKept):
    """Keeps everything and a quarter in turn, and says what the whole window kept."""

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[tuple[str, int], InstanceLevel]:
        found = {}
        for each in view.instances:
            ratio = 1.0 if round(each.release) % 2 == 0 else 0.25
            [window] = each.inputs
            found[each.key] = InstanceLevel({window.reader: ratio}, window.window_kept(ratio))
        return found


@pytest.mark.parametrize("crashes", [False, True])
def test_the_quality_of_an_answer_from_panes_is_the_mean_by_their_rows(crashes: bool) -> None:
    app = App("p")
    app.stream("s", "k string, v int")
    app.query("q", "SELECT k, count(*) AS n FROM s [RANGE 3 s] GROUP BY k PERIOD 1 s", overload=["defer", "thin"])
    rows = [3, 8, 1, 6, 4, 9]
    with LocalRun(app) as run:
        run.engine._periodic.levels = Alternating(1.0)
        for second, count in enumerate(rows):
            run.push("s", [{"k": "a", "v": 1}] * count, at=START + second + 0.5)
            run.heartbeat("s", START + second + 1.0)
            run.drain()
            if crashes:
                run.crash()
                run.engine._periodic.levels = Alternating(1.0)
        found = run.instances("q")
    shares = [1.0 if round(each.release / 1e6) % 2 == 0 else 0.25 for each in found]
    assert len(found) == len(rows)
    for place, each in enumerate(found):
        held = range(max(0, place - 2), place + 1)
        wanted = sum(rows[number] * shares[number] for number in held) / sum(rows[number] for number in held)
        # The first answer has no predecessor that says where its rows began, once it is read from the log again.
        if not crashes or place > 2:
            assert each.quality == pytest.approx(wanted), place
