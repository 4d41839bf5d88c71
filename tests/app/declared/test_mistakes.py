"""Mistakes in a file, and the exact line that a person reads for each: its place, the reason and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.app import App, InvalidApp

FILE = """
[app]
{app}
[spark]
{spark}
[streams.s]
schema = "ts timestamp, host string, size int, tags array<string>, who struct<name:string>"
{stream}
[queries.q]
sql = \"\"\"{sql}\"\"\"
{query}
"""
PLAIN = "SELECT host FROM s"

MASTERS = "use local[*], local[N], local[N,FAILURES], local-cluster[N,CORES,MB], spark://HOST:PORT, yarn or k8s://URL"
KINDS = "choice, constant, uniform, normal, exponential, zipf, sequence, walk, event_time"

# Where the text goes, the text, and the line.
MISTAKES = [
    ("stream", "retention = {bound = 0}",
     "streams.s.retention.bound: must be above 0 (else nothing is ever taken in) or 'unlimited', not 0"),
    ("stream", "retention = {bound = -5}", "streams.s.retention.bound: -5 is not a size: it is negative"),
    ("stream", "retention = {bound = 1.5}", "streams.s.retention.bound: must be a size such as '512 MB', not 1.5"),
    ("query", "retention = {bound = '0 MB'}",
     "queries.q.retention.bound: must be above 0 (else nothing is ever taken in) or 'unlimited', not 0"),
    ("stream", "lateness = inf", "streams.s.lateness: must be a duration such as '10 s', not inf"),
    ("query", "expect.latency = '0 s'",
     "queries.q.expect.latency: a latency of 0 s cannot be expected: use a value above 0, such as '2 s'"),
    ("query", "expect.memory = {intervals = [[[0, '1 MB'], [10, '2 MB']], [[5, '1 MB']]]}",
     "queries.q.expect.memory: intervals[1] begins at 5 s, before intervals[0] ends at 10 s: let them follow one"
     " another"),
    ("query", "expect.latency = [[9, 1], [3, 2]]", "queries.q.expect.latency: points[1] goes back from 9 s to 3 s"),
    ("query", "expect.latncy = '1 s'", "queries.q.expect.latncy: unknown key (did you mean 'latency'?)"),
    ("query", "expect.latency = {class = 'msut', points = 1}",
     "queries.q.expect.latency: there is no class 'msut' (there are: must, best-effort, dont-care); define it with its"
     " weight: class = {msut = 0.8}"),
    ("query", "expect = 3", "queries.q.expect: must be a table, not 3"),
    ("query", "expect.every = 0", "queries.q.expect.every: must be above 0, not 0"),
    ("app", "classes = {gold = 0}", "app.classes: class gold: its weight must be a number above 0, not 0.0"),
    ("app", "look_every = '0 s'", "app.look_every: must be above 0, not '0 s'"),
    ("app", "look_ahead = '3 s'",
     "app.look_ahead: a look-ahead of 3 s is too long: use less than the 3 s between looks"),
    ("app", "expect = {latency = '1 s'}",
     "app.expect: must be {response = \"500 ms\"} or {freshness = 0.9}, not {'latency': '1 s'}"),
    ("app", "expect = {response = 0}", "app.expect: a response time of 0 cannot be kept: use a value above 0"),
    ("app", "policy = 'rr'\nexpect = {response = 1}",
     "app.expect: only the policy fas-mcq has a beta to find, and this is rr"),
    ("spark", "master = 'lcal[2]'",
     f"spark.master: 'lcal[2]' is not a Spark master: {MASTERS} (did you mean 'local[2]'?)"),
    ("spark", "master = 'spark:/host'", f"spark.master: 'spark:/host' is not a Spark master: {MASTERS}"),
    ("app", "policy = 'rr(x)'", "app.policy: policy rr: rows must be a whole number of at least 1, not 'x'"),
    ("app", "policy = 'rr(1, 2)'", "app.policy: policy rr: 2 arguments are too many: it is rr(rows)"),
    ("app", "policy = 'fas-mcq(2)+set'", "app.policy: policy fas-mcq: beta must be a number from 0 to 1, not 2"),
    ("app", "workers = 0", "app.workers: must be at least 1, not 0"),
    ("app", "workers = '2'", "app.workers: must be a whole number, not '2'"),
    ("query", "start = 'lastest'",
     "queries.q.start: must be 'earliest' or 'latest', not 'lastest' (did you mean 'latest'?)"),
    ("query", "overload = ['skip']",
     'queries.q.overload: has "skip", which this version does not run: use "defer" or "thin"'),
    ("query", "overload = 'thin'", "queries.q.overload: must be a list of \"defer\" and \"thin\", not 'thin'"),
    ("query", "overload = ['thn']", "queries.q.overload: must be a list of \"defer\" and \"thin\", but has 'thn'"),
    ("query", "value = 'size'",
     'queries.q: value says which tuples are left out first, but none may be: add overload = ["defer", "thin"]'),
    ("query", "expect = {}",
     "queries.q.expect: names no measure: use latency, memory or throughput, such as latency = '2 s'"),
    ("query", "expect = {every = '1 s'}",
     "queries.q.expect: names no measure: use latency, memory or throughput, such as latency = '2 s'"),
    ("query", "overload = ['thin']\nvalue = 'amount'",
     "queries.q.value: no input has all columns of amount: they are s (ts, host, size, tags, who)"),
    ("query", "overload = ['thin']\nvalue = 'host'", "queries.q.value: host is string, not a number"),
    ("query", "overload = ['thin']\nvalue = ''", "queries.q.value: the expression is empty"),
    ("query", "overload = ['thin']\nvalue = 'sum(size)'",
     "queries.q.value: sum() is an aggregate: a value is computed for each tuple"),
    ("query", "strategy = 'wrr(inf)'",
     "queries.q.strategy: policy wrr: quantum must be a number of at least 1e-06, not inf"),
    ("query", "overload = ['thin']\nvalue = '7'", "queries.q.value: 7 is the same for every tuple: use a column"),
    ("query", "quality = 'lax'",
     "queries.q.quality: must be tolerant, proportional, strict or points [share kept, worth], not 'lax'"),
    ("query", "quality = {other = 'strict'}", "queries.q.quality: query q: quality names other, but the query reads s"),
    ("query", "quality = [[0.5, 0.9], [1, 0.8]]",
     "queries.q.quality: must end at [1, 1]: everything kept is worth 1"),
    ("query", "quality = [[0.5, 0.9], [0.4, 0.95], [1, 1]]",
     "queries.q.quality: must rise: [0.4, 0.95] comes after [0.5, 0.9]"),
    ("query", "on_error = 'fial'", "queries.q.on_error: must be 'null' or 'fail', not 'fial' (did you mean 'fail'?)"),
    ("stream", "source = {kind = 'generater', rate = 1}",
     "streams.s.source.kind: must be one of files, generator, mirror, push, spark, trace, not 'generater'"
     " (did you mean 'generator'?)"),
    ("stream", "source = {rate = 1}",
     "streams.s.source.kind: is missing: use one of files, generator, mirror, push, spark, trace"),
    ("stream", "source = {kind = 'generator', rate = '100/s'}",
     "streams.s.source.rate: must be a number of tuples per second above 0, not '100/s'"),
    ("stream", "source = {kind = 'generator', rate = 0}",
     "streams.s.source.rate: must be a number of tuples per second above 0, not 0"),
    ("stream", "source = {kind = 'generator', arrival = {kind = 'poison', rate = 1}}",
     "streams.s.source.arrival.kind: must be one of constant, poisson, b-model, schedule, not 'poison'"
     " (did you mean 'poisson'?)"),
    ("stream", "source = {kind = 'generator', arrival = {rate = 1}}",
     "streams.s.source.arrival.kind: is missing: use one of constant, poisson, b-model, schedule"),
    ("stream", "source = {kind = 'generator', arrival = {kind = 'poisson', rate = 1, brust = 3}}",
     "streams.s.source.arrival.brust: unknown key (did you mean 'burst'?)"),
    ("stream", "source = {kind = 'generator', rate = 1, columns.size = {kind = 'unifrom'}}",
     f"streams.s.source.columns.size.kind: must be one of {KINDS}, not 'unifrom' (did you mean 'uniform'?)"),
    ("stream", "source = {kind = 'generator', rate = 1, columns.size = {kind = 'uniform', low = 3, high = 1}}",
     "streams.s.source.columns.size: low 3.0 is above high 1.0"),
    ("stream", "source = {kind = 'generator', rate = 1, columns.size = {kind = 'choice', values = ['x']}}",
     "streams.s.source: column size: choice does not fit the type int: it gives 'x'"),
    ("stream", "source = {kind = 'trace', path = 'trace.csv', time = 'ts', speed = 'fast'}",
     "streams.s.source.speed: must be a number or 'max', not 'fast'"),
    ("stream", "source = {kind = 'trace', path = 'trace.csv', time = 'ts', speed = -1}",
     "streams.s.source.speed: must be above 0 or 'max', not -1"),
    ("stream", "source = {kind = 'trace', path = 'none.csv', time = 'ts'}",
     "streams.s.source: file FOLDER/none.csv does not exist"),
    ("stream", "source = {kind = 'trace', path = 'trace.csv', time = 'ts'}",
     "streams.s.source: file FOLDER/trace.csv has no column 'size', 'tags', 'who' (its columns: ts, host):"
     " set columns.size, columns.tags, columns.who"),
    ("stream", "source = {kind = 'trace', path = 'whole.csv', time = 'ts'}",
     "streams.s.source: file FOLDER/whole.csv: no value of column ts is a time in the unit 's'"
     " (the first is '2024-01-01T00:00:00Z'): set time and unit"),
    ("stream", "source = {kind = 'files', path = 'none'}", "streams.s.source: folder FOLDER/none does not exist"),
    ("stream", "source = {kind = 'files', path = 'trace.csv'}",
     "streams.s.source: FOLDER/trace.csv is a file: name its folder"),
    ("stream", "source = {kind = 'files'}", "streams.s.source.path: is missing"),
    ("stream", "source = {kind = 'files', path = 'folder', order = 'size'}",
     "streams.s.source.order: must be 'time' or 'name', not 'size'"),
    ("stream", "source = {kind = 'files', path = 'folder', settle = '-1 s'}",
     "streams.s.source.settle: '-1 s' is not a duration: use for example '250 ms', '10 s', '1 minute'"),
    ("stream", "source = {kind = 'files', path = 'folder', columns.hst = 'h'}",
     "streams.s.source: columns.hst is not a column of stream s"),
    ("stream", "source = {kind = 'files', path = 'files'}",
     "streams.s.source: file FOLDER/files/a.csv has no column 'size', 'tags', 'who' (its columns: ts, host):"
     " set columns.size, columns.tags, columns.who"),
    ("stream", "source = {kind = 'spark'}", "streams.s.source.format: is missing"),
    ("stream", "source = {kind = 'spark', format = 'rate', interval = 0}",
     "streams.s.source.interval: must be above 0, not 0"),
    ("stream", "source = {kind = 'spark', format = 'json', schema = 'v itn'}",
     "streams.s.source: schema 'v itn' is not Spark DDL (name type, name type, ...) at 'itn'"),
    ("stream", "source = {kind = 'spark', format = 'rate', columns.hst = 'h'}",
     "streams.s.source: columns.hst is not a column of stream s"),
    ("query", "sinks = [{kind = 'parquet', path = 'trace.csv'}]",
     "queries.q.sinks[0].path: folder FOLDER/trace.csv cannot be made: FOLDER/trace.csv is a file"),
    ("query", "sinks = [{kind = 'parquet', path = 'o'}, {name = 'b', kind = 'parquet', path = 'o'}]",
     "queries.q.sinks[1].path: is the folder of queries.q.sinks[0] already; choose another"),
    ("query", "sinks = [{kind = 'parquet', path = 'out', rows = 0}]",
     "queries.q.sinks[0].rows: must be at least 1, not 0"),
    ("query", "sinks = [{kind = 'table', table = 't'}]",
     "queries.q.sinks[0]: give the path of an SQLite database or the url of a PostgreSQL one"),
    ("query", "sinks = [{kind = 'table', path = 'o.db'}]", "queries.q.sinks[0].table: is missing"),
    ("query", "sinks = [{kind = 'table', url = 'mysql://h/d', table = 't'}]",
     "queries.q.sinks[0].url: must begin with postgresql:// (for an SQLite database give its path)"),
    ("query", "sinks = [{kind = 'table', path = 'folder', table = 't'}]",
     "queries.q.sinks[0].path: FOLDER/folder is a folder: name a file"),
    ("query", "sinks = [{kind = 'table', path = 'o.db', table = 't', keys = ['hots']}]",
     "queries.q.sinks[0].keys: the query has no column 'hots' (did you mean 'host'?)"),
    ("query", "sinks = [{kind = 'table', path = 'o.db', table = 't'}, {kind = 'table', path = 'o.db', table = 't'}]",
     "queries.q.sinks[1].path: is the table of queries.q.sinks[0] already; choose another"),
    ("query", "sinks = [{kind = 'jsonl', path = 'folder'}]",
     "queries.q.sinks[0].path: FOLDER/folder is a folder: name a file"),
    ("query", "sinks = [{kind = 'jsonl', path = 'trace.csv/out.jsonl'}]",
     "queries.q.sinks[0].path: folder FOLDER/trace.csv cannot be made: FOLDER/trace.csv is a file"),
    ("query", "sinks = [{kind = 'jsonl', path = 'a.jsonl'}, {kind = 'jsonl', path = 'x/../a.jsonl'}]",
     "queries.q.sinks[1].path: is the file of queries.q.sinks[0] already; choose another"),
    ("query", "sinks = [{kind = 'consle'}]",
     "queries.q.sinks[0].kind: must be one of callback, console, jsonl, memory, parquet, table, not 'consle'"
     " (did you mean 'console'?)"),
    ("query", "sinks = [{kind = 'callback', function = 'json:dmps'}]",
     "queries.q.sinks[0].function: module json has no function 'dmps' (did you mean 'dumps'?)"),
    ("query", "sinks = [{kind = 'callback', function = 'json:decoder'}]",
     "queries.q.sinks[0].function: decoder of module json is no function but module"),
    ("query", "sinks = [{kind = 'callback', function = 'json.dumps'}]",
     "queries.q.sinks[0].function: must be the place of a function as 'package.module:name', not 'json.dumps'"),
    ("app", "report = 'folder'", "app.report: FOLDER/folder is a folder: name a file"),
    ("app", "report = 'trace.csv/report.json'",
     "app.report: folder FOLDER/trace.csv cannot be made: FOLDER/trace.csv is a file"),
    ("app", "state = 'trace.csv'", "app.state: folder FOLDER/trace.csv cannot be made: FOLDER/trace.csv is a file"),
    ("sql", "SELECT host FROM s WHERE host + 1",
     "queries.q.sql: line 1: WHERE takes a condition, but this is bigint: compare it with something"),
    ("sql", "SELECT substring(host, 1, 2, 3) AS x FROM s",
     "queries.q.sql: line 1: substring() takes 2 to 3 arguments, not 4"),
    ("sql", "SELECT upper(host, 3) AS x FROM s", "queries.q.sql: line 1: upper() takes 1 argument, not 2"),
    ("sql", "SELECT substr(host) AS x FROM s", "queries.q.sql: line 1: substr() takes 2 to 3 arguments, not 1"),
    ("sql", "SELECT upper(tags) AS x FROM s",
     "queries.q.sql: line 1: upper() does not take array<string> as its first argument: CAST it"),
    ("sql", "SELECT date_add(ts, 1.5) AS x FROM s",
     "queries.q.sql: line 1: date_add() does not take decimal(2,1) as its second argument: CAST it"),
    ("sql", "SELECT ts + size AS x FROM s",
     "queries.q.sql: line 1: timestamp + int has no meaning: use an interval, as in + INTERVAL 5 SECONDS"),
    ("sql", "SELECT host + host AS x FROM s",
     "queries.q.sql: line 1: string + string has no meaning: CAST one of them"),
    ("sql", "SELECT ts * 2 AS x FROM s", "queries.q.sql: line 1: timestamp * int has no meaning: CAST one of them"),
    ("sql", "SELECT host FROM s WHERE size IN (1, true)",
     "queries.q.sql: line 1: int cannot be compared with boolean: CAST one of them"),
    ("sql", "SELECT host FROM s WHERE ts BETWEEN 1 AND 2",
     "queries.q.sql: line 1: timestamp cannot be compared with int: CAST one of them"),
    ("sql", "SELECT CASE WHEN size THEN 1 END AS x FROM s",
     "queries.q.sql: line 1: WHEN takes a condition, but this is int: compare it with something"),
    ("sql", "SELECT CASE WHEN size > 1 THEN ts ELSE size END AS x FROM s",
     "queries.q.sql: line 1: the branches of a CASE have one type, but this is int after timestamp: CAST one"),
    ("sql", "SELECT coalesce(size, ts) AS x FROM s",
     "queries.q.sql: line 1: the values of coalesce() have one type, but this is timestamp after int: CAST one"),
    ("sql", "SELECT CAST(tags AS int) AS x FROM s", "queries.q.sql: line 1: array<string> cannot be CAST to int"),
    ("sql", "SELECT size[0] AS x FROM s",
     "queries.q.sql: line 1: [...] takes an element of an array or a map, but this is int"),
    ("sql", "SELECT who.nme FROM s", "queries.q.sql: line 1: unknown field nme; did you mean name?"),
    ("sql", "SELECT host FROM t", "queries.q.sql: line 1: unknown stream t (there are: s)"),
    ("sql", "SELECT host FROM s\nPERIOD 10 SECONDS",
     "queries.q.sql: line 2: PERIOD needs a window after every stream, as in FROM s [RANGE 1 MINUTE]"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "trace.csv").write_text("ts,host\n1,a\n")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.csv").write_text("ts,host\n1,a\n")
    (tmp_path / "whole.csv").write_text("ts,host,size,tags,who\n2024-01-01T00:00:00Z,a,1,,\n")
    return tmp_path


def write(folder: Path, **parts: str) -> Path:
    path = folder / "app.toml"
    empty = dict.fromkeys(("app", "spark", "stream", "query"), "") | {"sql": PLAIN}
    path.write_text(FILE.format(**{**empty, **parts}))
    return path


@pytest.mark.parametrize(("part", "text", "line"), MISTAKES, ids=[f"{part}: {text}" for part, text, _ in MISTAKES])
def test_a_mistake_is_exactly_one_line(part: str, text: str, line: str, folder: Path) -> None:
    path = write(folder, **{part: text})
    with pytest.raises(InvalidApp) as caught:
        App.from_toml(path).check()
    (problem,) = caught.value.problems
    assert problem.line(str(path)).splitlines()[0] == f"{path}: {line.replace('FOLDER', str(folder))}"


def test_without_mistakes_there_is_nothing_to_say(folder: Path) -> None:
    assert App.from_toml(write(folder)).check() == []


def test_two_tables_of_one_database_are_no_mistake(folder: Path) -> None:
    sinks = [f"{{kind = 'table', path = 'o.db', table = '{name}', keys = ['host']}}" for name in ("t", "u")]
    assert App.from_toml(write(folder, query=f"sinks = [{', '.join(sinks)}]")).check() == []


def test_the_name_of_a_sink_in_a_file_is_its_name(folder: Path) -> None:
    path = write(folder, query="sinks = [{kind = 'memory', name = 'kept'}]")
    assert App.from_toml(path).queries["q"].sinks == ({"kind": "memory", "name": "kept"},)
