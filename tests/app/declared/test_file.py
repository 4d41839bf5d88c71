"""What a person reads who has made a mistake in the application file: one line that says where and what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.app import App, InvalidApp
from freshet.app.declared.file import parse_leniently, read_leniently
from freshet.model import UserError

GOOD = """
[app]
name = "monitor"
policy = "rr(1000)"

[streams.packets]
schema = "ts timestamp, host string, size int"
event_time = "ts"
lateness = "5 s"
retention = {history = "10 minutes", history_bytes = "unlimited", bound = "1 GB"}
source = {kind = "generator", rate = 100}

[queries.large]
sql = "SELECT host, size FROM packets WHERE size > 50"
weight = 0.5
sinks = [{kind = "jsonl", path = "out/large.jsonl"}]

[queries.hosts]
sql = "SELECT host FROM large"
"""

MISTAKES = {
    # what is replaced -> (by what, the line that says so)
    "curve that rises": (
        "weight = 0.5",
        "curve = [[0, 0.5], ['500ms', 1.0]]",
        "queries.large.curve: a latency curve never rises, but it does from 0.5 to 1 at 0.5 s",
    ),
    "curve above 1": (
        "weight = 0.5",
        "curve = [[0, 1.5], [2, 0]]",
        "queries.large.curve: utility 1.5 at latency 0 s is outside [0, 1]",
    ),
    "curve of a wrong form": (
        "weight = 0.5",
        "curve = [0, 1.0]",
        'queries.large.curve: a point of a latency curve is [latency, utility], such as ["500 ms", 1.0], not 0',
    ),
    "curve of a wrong unit": (
        "weight = 0.5",
        "curve = [['2 parsecs', 1.0]]",
        "queries.large.curve: '2 parsecs' is not a duration: use for example '250 ms', '10 s', '1 minute'",
    ),
    "unknown key": ("weight = 0.5", "wieght = 0.5", "queries.large.wieght: unknown key (did you mean 'weight'?)"),
    "unknown table": ("[app]", "[ap]", "ap: unknown key (did you mean 'app'?)"),
    "wrong unit": (
        'lateness = "5 s"',
        'lateness = "5 parsecs"',
        "streams.packets.lateness: '5 parsecs' is not a duration: use for example '250 ms', '10 s', '1 minute'",
    ),
    "negative time": (
        'lateness = "5 s"',
        "lateness = -1",
        "streams.packets.lateness: -1 is not a duration: it is negative",
    ),
    "a truth is no time": (
        'lateness = "5 s"',
        "lateness = true",
        "streams.packets.lateness: must be a duration such as '10 s', not true",
    ),
    "wrong size": (
        'bound = "1 GB"',
        'bound = "lots"',
        "streams.packets.retention.bound: 'lots' is not a size: use for example '512 MB', '1 GiB'",
    ),
    "wrong type": (
        'name = "monitor"',
        "name = 7",
        "app.name: must be a text in quotes, not 7",
    ),
    "weight too large": (
        "weight = 0.5",
        "weight = 2",
        "queries.large.weight: 2 is outside (0, 1]",
    ),
    "unknown policy": (
        "rr(1000)",
        "fcsf",
        "app.policy: there is no policy 'fcsf'",
    ),
    "unknown word": (
        "weight = 0.5",
        'start = "now"',
        "queries.large.start: must be 'earliest' or 'latest', not 'now'",
    ),
    "missing schema": (
        'schema = "ts timestamp, host string, size int"',
        "",
        'streams.packets.schema: is missing (Columns and types, as Spark DDL: "ts timestamp, size int")',
    ),
    "wrong schema": (
        "size int",
        "size itn",
        "streams.packets: schema 'ts timestamp, host string, size itn' is not Spark DDL",
    ),
    "event time is no column": (
        'event_time = "ts"',
        'event_time = "time"',
        "streams.packets: event_time 'time' is not a column (columns: ts, host, size)",
    ),
    "unknown source": (
        'kind = "generator"',
        'kind = "genrator"',
        "source.kind: must be one of files, generator, mirror, push, spark, trace, not 'genrator' "
        "(did you mean 'generator'?)",
    ),
    "unknown option of a source": (
        "rate = 100",
        "rate = 100, sed = 1",
        "streams.packets.source.sed: unknown key (did you mean 'seed'?)",
    ),
    "wrong option of a source": (
        "rate = 100",
        "rate = -100",
        "streams.packets.source.rate: must be a number of tuples per second above 0, not -100",
    ),
    "unknown option of a sink": (
        'path = "out/large.jsonl"',
        'path = "x", pth = "y"',
        "queries.large.sinks[0].pth: unknown key (did you mean 'path'?)",
    ),
    "missing option of a sink": (
        ', path = "out/large.jsonl"',
        "",
        "queries.large.sinks[0].path: is missing",
    ),
    "unknown sink": (
        'kind = "jsonl"',
        'kind = "kafka"',
        "queries.large.sinks[0].kind: must be one of callback, console, jsonl, memory, parquet, table, not 'kafka'",
    ),
    "unknown column": (
        "WHERE size > 50",
        "WHERE sise > 50",
        "queries.large.sql: line 1: unknown column sise of packets; did you mean size?",
    ),
    "unknown stream": ("FROM packets", "FROM pakets", "queries.large.sql: line 1: "),
    "broken SQL": ("SELECT host, size FROM", "SELECT host, size FORM", "queries.large.sql: line 1: "),
    "a query on itself": (
        "FROM packets WHERE",
        "FROM hosts WHERE",
        "reads its own output: ",
    ),
    "name with a dot": (
        "[queries.hosts]",
        '[queries."ho.sts"]',
        "queries.ho.sts: 'ho.sts' cannot name a query: use letters, digits and _, beginning with a letter",
    ),
    "name that is taken": (
        "[queries.hosts]",
        "[queries.Packets]",
        "queries.Packets: there is a stream packets already; choose another name",
    ),
    "a period without a window": (
        "SELECT host FROM large",
        "SELECT host FROM large PERIOD 10 SECONDS DEADLINE 5 SECONDS",
        "queries.hosts.sql: line 1: PERIOD needs a window after every stream, as in FROM s [RANGE 1 MINUTE]",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_with_its_place(mistake: str, tmp_path: Path) -> None:
    right, wrong, line = MISTAKES[mistake]
    assert right in GOOD
    path = tmp_path / "app.toml"
    path.write_text(GOOD.replace(right, wrong))
    with pytest.raises(InvalidApp) as caught:
        App.from_toml(path).check()
    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"{path}: ")
    assert line in first
    # Further lines are details of the first (the place in the SQL), never another problem.
    assert all(detail.startswith("    ") for detail in str(caught.value).splitlines()[1:]), str(caught.value)


def test_the_good_file_is_right(tmp_path: Path) -> None:
    path = tmp_path / "app.toml"
    path.write_text(GOOD)
    app = App.from_toml(path)
    assert app.check() == []
    assert app.name == "monitor"
    assert app.state == tmp_path / "state"
    assert app.settings.policy == "rr(1000)"
    spec = app.streams["packets"]
    assert (spec.retention.history_age, spec.retention.history_bytes, spec.retention.bound_bytes) == (600, None, 10**9)
    assert app.queries["large"].sinks == ({"kind": "jsonl", "path": str(tmp_path / "out/large.jsonl")},)


def test_all_problems_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "app.toml"
    text = GOOD.replace("size int", "size itn").replace("weight = 0.5", 'sinks = [{kind = "kafka"}]', 1)
    path.write_text(
        text.replace('sinks = [{kind = "jsonl", path = "out/large.jsonl"}]', "")
        + '[streams.other]\nschema = "v int"\n[queries.o]\nsql = "SELECT w FROM other"\n'
    )
    with pytest.raises(InvalidApp) as caught:
        App.from_toml(path)
    places = [problem.place for problem in caught.value.problems]
    # Nothing is said of queries over the stream whose schema is not known.
    assert places == ["streams.packets", "queries.o.sql", "queries.large.sinks[0].kind"]


def test_syntax_errors_have_a_line() -> None:
    with pytest.raises(InvalidApp, match=r"^app.toml: is not TOML: .*line 2, column"):
        parse_leniently('[app]\nname = "x\n', "app.toml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        read_leniently(tmp_path / "none.toml")
    with pytest.raises(UserError, match="is not a file"):
        read_leniently(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="it is not UTF-8 text"):
        read_leniently(tmp_path / "binary.toml")


def test_every_key_is_described() -> None:
    from freshet.app.declared.config import (
        AppSection,
        QuerySection,
        RetentionSection,
        SinkSection,
        SparkSection,
        StreamSection,
    )
    from freshet.app.declared.meanings import meaning

    for section in (AppSection, QuerySection, RetentionSection, SinkSection, SparkSection, StreamSection):
        for name in section.model_fields:
            assert meaning(section, name), f"{section.__name__}.{name}"
