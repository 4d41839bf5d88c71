"""Addresses such as ``s3a://bucket`` where a path is wanted: refused in a sentence, and nothing is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

import freshet
from freshet import sinks, sources
from freshet.app.declared.config import AppFile
from freshet.log import Log
from freshet.model import Stream as StreamOf
from freshet.model import UserError, parse_schema

SCHEMES = ("s3a", "hdfs", "file", "GS")
MORE = {"table": {"table": "t"}, "trace": {"time": "ts", "event_time": "ts"}}

FILE = """
[app]
state = "{state}"
report = "{report}"
[streams.s]
schema = "v int"
source = {{kind = "{source}", path = "{read}"}}
[tables.t]
schema = "v int"
file = "{file}"
[queries.q]
sql = "SELECT v FROM s"
sinks = [{{kind = "jsonl", path = "{jsonl}"}}, {{kind = "parquet", path = "{parquet}"}},
         {{kind = "table", path = "{table}", table = "t"}}]
"""
PLACES = {
    "state": "app.state",
    "report": "app.report",
    "read": "streams.s.source.path",
    "file": "tables.t.file",
    "jsonl": "queries.q.sinks[0].path",
    "parquet": "queries.q.sinks[1].path",
    "table": "queries.q.sinks[2].path",
}
RIGHT = {
    "state": "state", "report": "r.json", "source": "files", "read": ".", "file": "t.csv", "jsonl": "o.jsonl",
    "parquet": "o", "table": "o.db",
}  # fmt: skip


def made(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("place", PLACES)
def test_a_file_with_an_address_is_refused_with_its_place(
    place: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("v\n1\n")
    Path("app.toml").write_text(FILE.format(**RIGHT | {place: f"{scheme}://bucket/x"}))
    before = made(tmp_path)
    with pytest.raises(UserError) as refused:
        freshet.App.from_toml("app.toml").check()
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"app.toml: {PLACES[place]}: {scheme.lower()}:// is not supported: ")
    assert ("write the plain path" in line) == (scheme == "file")
    assert made(tmp_path) == before


def test_every_kind_with_a_path_refuses_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stream = StreamOf("s", parse_schema("v int"))
    looked = 0
    for kinds, create in ((sinks.KINDS, sinks.create), (sources.KINDS, lambda k, o: sources.create(k, o, stream))):
        for kind in kinds.names():
            for name, field in kinds[kind][0].model_fields.items():
                if "Path" not in str(field.annotation):
                    continue
                looked += 1
                for given in ("s3a://bucket/x", Path("s3a://bucket/x")):
                    with pytest.raises(UserError, match=rf"{name}: s3a:// is not supported"):
                        create(kind, {name: given, **MORE.get(kind, {})})
    assert looked == 5
    assert made(tmp_path) == []


def test_every_path_of_the_file_is_checked() -> None:
    """Keys that are texts in the file and become paths are among those tried above."""
    texts = {f"{section}.{name}" for section in ("app", "tables") for name in _texts(section)}
    files = {"app.state", "app.report", "tables.file"}
    assert texts == files | {"app.name", "app.policy", "app.periodic", "tables.schema"}


def _texts(section: str) -> list[str]:
    model: Any = AppFile.model_fields[section].annotation
    model = get_args(model)[-1] if section == "tables" else model
    return [field.alias or name for name, field in model.model_fields.items()
            if field.annotation in (str, str | None)]  # fmt: skip


@pytest.mark.parametrize("given", ["s3a://bucket/x", Path("s3a://bucket/x"), "file:///tmp/x"])
def test_python_refuses_addresses_at_once(given: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"state: .*:// is not supported"):
        freshet.App("x", state=given)
    with pytest.raises(UserError, match=r"report: .*:// is not supported"):
        freshet.App("x", report=given)
    with pytest.raises(UserError, match=r"table t: file: .*:// is not supported"):
        freshet.App("x").table("t", given, schema="v int")
    with pytest.raises(UserError, match=r"state folder .*:// is not supported"):
        Log.open(Path(given))
    app = freshet.App("x")
    app.stream("s", "v int")
    app.query("q", "SELECT v FROM s", sinks=[{"kind": "jsonl", "path": given}])
    with pytest.raises(UserError, match=r"queries.q.sinks\[0\].path: .*:// is not supported"):
        app.check()
    assert made(tmp_path) == []


def test_addresses_stay_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = freshet.App("x")
    source = {"kind": "spark", "format": "json", "schema": "v int", "options": {"path": "s3a://bucket/x"}}
    app.stream("s", "v int", source=source)
    app.query("q", "SELECT v FROM s", sinks=[{"kind": "table", "url": "postgresql://me@host/x", "table": "t"}])
    assert app.check() == []
