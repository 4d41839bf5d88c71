"""Reading a log as a person does: what is printed, and what is said where there is nothing."""

from __future__ import annotations

import csv
import io
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from freshet.app import App
from freshet.app.remembered.restart import remember
from freshet.cli.main import app as command
from freshet.log import Log, SegmentWriter
from freshet.model import ARRIVAL, Commit, FreshetError, Panes, state_stream
from freshet.policies.sharing import share

APP = """
[streams.packets]
schema = "ts timestamp, host string, size int"
event_time = "ts"
lateness = "5 s"

[queries.hot]
sql = "SELECT host, size FROM packets WHERE size > 50"

[queries.sums]
sql = "SELECT host, sum(size) AS bytes FROM packets [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY host"

[queries.early]
sql = "SELECT host, sum(size) AS b FROM packets [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY host EMIT CHANGES"
"""
NOON = int(datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp() * 1e6)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.toml"
    path.write_text(APP)
    return path


@pytest.fixture
def hot(file: Path) -> Path:
    """An output of five tuples; the last two came in a minute and a second ago."""
    now = int(time.time() * 1e6)
    ages = (3600, 1800, 600, 60, 1)
    with Log.open(file.parent / "state") as log:
        for name in ("packets", "hot", "sums", "early"):
            log.declare(name)
        for number, age in enumerate(ages):
            log.append("hot", pa.table({"k": [number], "name": [f"n{number}"], ARRIVAL: [now - age * 10**6]}))
    return file


def read(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["read", str(file), *arguments])


def keys(file: Path, *arguments: str) -> list[int]:
    lines = list(csv.reader(io.StringIO(read(file, "hot", "--as", "csv", *arguments).stdout)))
    return [int(line[0]) for line in lines[1:]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), [0, 1, 2, 3, 4]),
        (("--last", "2"), [3, 4]),
        (("--last", "99"), [0, 1, 2, 3, 4]),
        (("--last", "0"), []),
        (("--since", "5 min"), [3, 4]),
        (("--since", "20 minutes"), [2, 3, 4]),
        (("--since", "2020-01-01"), [0, 1, 2, 3, 4]),
        (("--since", "2020-01-01T12:00:00+05:00"), [0, 1, 2, 3, 4]),
        (("--since", "2h", "--limit", "3"), [0, 1, 2]),
        (("--since", "20m", "--limit", "1"), [2]),
        (("--last", "3", "--limit", "2"), [2, 3]),
        (("--from", "1", "--limit", "2"), [1, 2]),
        (("--last", "3", "--follow", "--limit", "2"), [2, 3]),
        (("--since", "5 min", "--follow", "--limit", "2"), [3, 4]),
    ],
)
def test_where_to_begin_and_how_many(hot: Path, arguments: tuple[str, ...], expected: list[int]) -> None:
    assert keys(hot, *arguments) == expected


def test_since_looks_at_every_tuple_although_answers_are_not_in_the_order_of_their_arrivals(hot: Path) -> None:
    now = int(time.time() * 1e6)
    with Log.open(hot.parent / "state") as log:
        arrivals = [now - 30 * 10**6, now - 7200 * 10**6, now]
        with SegmentWriter(log.folder, "step.arrows") as writer:
            writer.add("hot", pa.table({"k": [5, 6, 7], "name": ["a", "b", "c"], ARRIVAL: arrivals}))
            log.commit([Commit(files=(writer.finish(),))])
    assert keys(hot, "--since", "5 min") == [3, 4, 5, 7]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--last", "1", "--from", "2"), "--from and --last each say where to begin: give only one of them"),
        (("--last", "1", "--since", "5 s"), "--last and --since each say where to begin: give only one of them"),
        (("--since", "tomorrow"), "--since 'tomorrow' is neither a duration, such as '5 min', nor a time"),
        (("--since", "300"), "--since '300' is neither a duration, such as '5 min', nor a time"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(hot: Path, arguments: tuple[str, ...], text: str) -> None:
    done = read(hot, "hot", *arguments)
    assert isinstance(done.exception, FreshetError)
    assert str(done.exception).startswith(text)
    assert "\n" not in str(done.exception)


def test_since_that_finds_nothing_says_what_is_the_newest(hot: Path) -> None:
    done = read(hot, "hot", "--since", "2999-01-01")
    assert done.stdout == ""
    assert "hot has no rows that came in since then; the newest came in at 20" in done.stderr
    assert read(hot, "hot", "--since", "2999-01-01", "--as", "csv").stdout == "k,name\n"


def test_csv_is_what_a_program_reads(file: Path) -> None:
    nested = pa.array([[1, None], None, []], pa.list_(pa.int32()))
    rows = {
        "text": ['a,"b"\nc', None, ""],
        "flag": [True, False, None],
        "number": [1.5, float("nan"), None],
        "ts": pa.array([NOON, None, NOON + 1], pa.timestamp("us", "UTC")),
        "nested": nested,
        ARRIVAL: [1, 2, 3],
    }
    with Log.open(file.parent / "state") as log:
        log.declare("hot")
        log.append("hot", pa.table(rows))
    head, *lines = csv.reader(io.StringIO(read(file, "hot", "--as", "csv").stdout))
    assert head == ["text", "flag", "number", "ts", "nested"]
    assert lines == [
        ['a,"b"\nc', "true", "1.5", "2024-01-01T12:00:00.000000Z", "[1, null]"],
        ["", "false", "NaN", "", ""],
        ["", "", "", "2024-01-01T12:00:00.000001Z", "[]"],
    ]


@pytest.mark.parametrize("wrong", ["HOT", "hto", "Hot", "hott"])
@pytest.mark.parametrize("action", ["read", "explain"])
def test_a_name_that_is_nearly_right_is_recognised(hot: Path, action: str, wrong: str) -> None:
    done = CliRunner().invoke(command, [action, str(hot), wrong])
    assert f"{wrong!r} (did you mean 'hot'?)" in str(done.exception)


def test_explain_says_that_a_stream_is_no_query(hot: Path) -> None:
    done = CliRunner().invoke(command, ["explain", str(hot), "packets"])
    assert "packets is a stream, and explain shows queries; it has: hot, sums, early" in str(done.exception)


# Nothing to read


def ran(
    file: Path,
    query: str,
    *,
    cursor: int = 2,
    watermark: int | None = None,
    acted: int | None = None,
    state: bool = True,
    shared: bool = False,
) -> None:
    """Leaves a log behind as a run does that has taken in two tuples, and has answered nothing.

    Args:
        file: The application.
        query: A query of it.
        cursor: How many of the tuples it has processed.
        watermark: How far event time is in the stream.
        acted: How far it is in what the query did; by default as far.
        state: Whether the query remembers something.
        shared: Whether it shares all its operators.
    """
    declared = App.from_toml(file).checked().queries[query]
    form = share([declared, replace(declared, name="other")])[0].graph if shared else declared.graph
    panes = [each for each in form.operators.values() if isinstance(each, Panes)]
    with Log.open(file.parent / "state") as log:
        for name in ("packets", query):
            log.declare(name)
        log.append("packets", pa.table({"ts": [1, 2], ARRIVAL: [1, 2]}))
        if watermark is not None:
            log.heartbeat("packets", watermark)
        reader = form.order[0]
        log.start_reader(reader, "packets")
        log.advance(reader, "packets", cursor)
        remember(log, declared, form)
        for fold in panes:
            kept = state_stream(fold.name, 0)
            log.declare(kept, kind="state")
            log.start_reader(kept, kept, kind="state")
            if state:
                log.append(kept, pa.table({"v": [1], ARRIVAL: [1]}))
            if watermark is not None:
                log.heartbeat(kept, watermark if acted is None else acted)


def said(file: Path, query: str) -> str:
    done = read(file, query)
    assert done.exit_code == 0, done.exception
    assert done.stdout == ""
    return done.stderr.removeprefix(f"{file}: ").removesuffix("\n")


def test_nothing_is_said_of_windows_where_nothing_is_known(file: Path) -> None:
    with Log.open(file.parent / "state") as log:
        log.declare("sums")
    assert said(file, "sums") == "sums has no rows yet"


@pytest.mark.parametrize(("cursor", "shared"), [(1, False), (2, False), (2, True)])
def test_the_next_window_is_told_also_while_tuples_wait(file: Path, cursor: int, shared: bool) -> None:
    ran(file, "sums", watermark=NOON + 6_000_000, acted=NOON + 1, cursor=cursor, shared=shared)
    assert said(file, "sums") == (
        "sums has no rows yet; the next window closes at 2024-01-01 12:00:10 UTC, "
        "and packets is complete up to 2024-01-01 12:00:06 UTC"
    )


@pytest.mark.parametrize(
    ("query", "options", "expected"),
    [
        ("sums", {"watermark": NOON, "acted": NOON - 1}, "sums has no rows yet"),
        (
            "sums",
            {"cursor": 1, "watermark": NOON, "acted": NOON - 1},
            "sums has no rows yet; 1 tuple of its input waits to be processed",
        ),
        ("sums", {"watermark": NOON, "state": False}, "sums has no rows yet"),
        ("sums", {"watermark": None}, "sums has no rows yet"),
        ("sums", {"watermark": 2**62}, "sums has no rows yet"),
        ("early", {"watermark": NOON}, "early has no rows yet"),
        ("hot", {"watermark": NOON}, "hot has no rows yet"),
        ("hot", {"cursor": 0}, "hot has no rows yet; 2 tuples of its input wait to be processed"),
    ],
)
def test_a_window_is_told_only_where_it_is_the_next(
    file: Path, query: str, options: dict[str, int], expected: str
) -> None:
    ran(file, query, **options)  # type: ignore[arg-type]
    assert said(file, query) == expected


def test_a_query_that_was_changed_since_is_not_judged_by_its_new_text(file: Path) -> None:
    ran(file, "sums", watermark=NOON)
    file.write_text(APP.replace("SLIDE 10", "SLIDE 5"))
    assert said(file, "sums") == "sums has no rows yet"


def test_a_quarantined_query_is_not_waited_for(file: Path) -> None:
    ran(file, "sums", watermark=NOON)
    with Log.open(file.parent / "state") as log:
        for name, reader in log.readers().items():
            if reader.stream == "packets":
                log.set_need(name, False)
    assert said(file, "sums") == "sums has no rows: it is quarantined, and the report says why"
