"""What an application tells of itself: without passwords, and without running a user's module."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import freshet
from freshet.app.declared.endpoints import named_sinks
from freshet.app.reports.report import build
from freshet.cli.explaining.explain import sink_options
from freshet.log import Log
from freshet.model import UserError
from freshet.sinks import create
from freshet.spark.session.packages import PACKAGES

HIDDEN = "hunter2Zq"
FRESHET = [sys.executable, "-m", "freshet"]
TABLE = {"kind": "table", "url": f"postgresql://me:{HIDDEN}@host/shop?sslpassword={HIDDEN}", "table": "t"}


def app(**more: Any) -> freshet.App:
    made = freshet.App("x", **more)
    made.stream("s", "v int")
    made.query("q", "SELECT v FROM s", sinks=[TABLE])
    return made


def test_explain_shows_no_password(tmp_path: Path) -> None:
    (sink,) = named_sinks(app().queries["q"])
    assert sink_options(sink) == ": url postgresql://me:***@host/shop?sslpassword=***, table t"


def sink(url: str) -> str:
    return f'[queries.q]\nsql = "SELECT v FROM s"\nsinks = [{{kind = "table", table = "t", url = {url}}}]'


@pytest.mark.parametrize(
    ("section", "place"),
    [
        (sink(f'"mysql://me:{HIDDEN}@h/d"'), "queries.q.sinks[0].url"),
        (sink(f'["postgresql://me:{HIDDEN}@h/d"]'), "queries.q.sinks[0].url"),
        (sink(f'"postgresql://me:a@{HIDDEN}@h/d"'), "queries.q.sinks[0].url"),
        (f'[spark]\nsettings = {{"spark.ssl.keyPassword" = ["{HIDDEN}"]}}', "spark.settings.spark.ssl.keyPassword"),
        (f'[spark]\nmaster = "http://me:{HIDDEN}@host"', "spark.master"),
    ],
)
def test_problems_show_no_password(section: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text(f'[streams.s]\nschema = "v int"\n{section}\n')
    with pytest.raises(UserError) as refused:
        freshet.App.from_toml(tmp_path / "app.toml").check()
    assert place in str(refused.value)
    assert HIDDEN not in str(refused.value)


def test_the_report_shows_no_password() -> None:
    told = f"cannot reach postgresql://me:{HIDDEN}@host"
    report = build(
        app="x", status="stopped", policy="everything", streams={}, changes={}, notes=[told], error=told,
        sources={"s": {"reason": told}}, sinks={"q/table": {"reason": told}}, tables={"t": {"error": told}},
        mirrors={"m": {"failing_examples": {"x": told}}},
        settings={"spark": {"spark.hadoop.fs.s3a.secret.key": HIDDEN, "spark.executor.memory": "2g"}},
    )  # fmt: skip
    assert HIDDEN not in str(report)
    assert report["settings"]["spark"]["spark.executor.memory"] == "2g"


def test_a_database_that_cannot_be_reached_is_named_without_its_password() -> None:
    sink = create("table", {"url": f"postgresql://me:{HIDDEN}@127.0.0.1:1/shop", "table": "t"})
    with pytest.raises(
        UserError, match=r"database postgresql://me:\*\*\*@127.0.0.1:1/shop cannot be reached"
    ) as refused:
        sink.open({})
    assert HIDDEN not in str(refused.value)


def test_check_runs_no_module(tmp_path: Path) -> None:
    package = tmp_path / "mine" / "deep"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("open('ran', 'a').close()\n")
    (package / "sink.py").write_text("open('ran', 'a').close()\ndef take(table, token): pass\n")
    (tmp_path / "app.toml").write_text(
        '[streams.s]\nschema = "v int"\n[queries.q]\nsql = "SELECT v FROM s"\n'
        'sinks = [{kind = "callback", function = "mine.deep.sink:take"}]\n'
    )
    for command in ("check", "explain"):
        done = subprocess.run(
            [*FRESHET, command, "app.toml"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("def take(a, b): pass", "take", None),
        ("async def take(a, b): pass", "take", None),
        ("class take: pass", "take", None),
        ("class A:\n  def take(self): pass", "A.take", None),
        ("take = lambda a, b: 1", "take", None),
        ("import json as take", "take", None),
        ("from json import dumps as take", "take", None),
        ("from json import *", "take", None),
        ("def __getattr__(name): pass", "take", None),
        ("globals()['take'] = print", "take", None),
        ("if True:\n  def take(a, b): pass", "take", None),
        ("try:\n  take = print\nexcept E:\n  pass", "take", None),
        ("for take in (print,): pass", "take", None),
        ("with open('x') as take: pass", "take", None),
        ("take: object = print", "take", None),
        ("other, take = print, print", "take", None),
        ("take = other = print", "take", None),
        ("if (take := print): pass", "take", None),
        ("def tak(a, b): pass", "take", "module {} has no function 'take' (did you mean 'tak'?)"),
        ("def other(): take = 1", "take", "module {} has no function 'take'"),
        ("take = 5", "take", "take of module {} is no function but a value"),
        ("take = 'x'", "take", "take of module {} is no function but a value"),
        ("def take(:", "take", "module {} cannot be imported: SyntaxError: "),
    ],
)
def test_functions_are_found_in_the_text_of_their_module(
    text: str, name: str, why: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"found_{abs(hash((text, name)))}"
    (tmp_path / f"{module}.py").write_text(f"raise RuntimeError('it ran')\n{text}\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = app()
    made.query("p", "SELECT v FROM s", sinks=[{"kind": "callback", "function": f"{module}:{name}"}])
    if why is None:
        assert made.check() == []
        # It is run when it is needed, and what it raises is told.
        with pytest.raises(UserError, match=f"function: module {module} cannot be imported: RuntimeError: it ran"):
            create("callback", {"function": f"{module}:{name}"})
        return
    with pytest.raises(UserError) as refused:
        made.check()
    assert f"queries.p.sinks[0].function: {why.format(module)}" in str(refused.value)


@pytest.mark.parametrize("format_", PACKAGES)
def test_a_format_whose_package_is_missing_is_told_by_the_check(format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CLASSPATH", "SPARK_DIST_CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)

    def made(**settings: str) -> freshet.App:
        found = app(spark={key.replace("__", "."): value for key, value in settings.items()})
        found.stream("k", "v int", source={"kind": "spark", "format": format_})
        found.query("p", "SELECT v FROM k")
        return found

    with pytest.raises(UserError, match=rf"streams\.k\.source\.format: Spark has no {format_} of its own: name its"):
        made().check()
    assert made(spark__jars__packages="org.apache.spark:some_2.13:4.3.0").check() == []
    assert made(spark__jars="/opt/own.jar").check() == []
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars own.jar pyspark-shell")
    assert made().check() == []


@pytest.mark.parametrize(("mask", "folder"), [(0o022, None), (0o000, None), (0o027, 0o755), (0o022, 0o2770)])
def test_a_state_folder_is_for_its_owner(mask: int, folder: int | None, tmp_path: Path) -> None:
    """One that was there keeps its permissions; where its group may write, the files are the group's, too."""
    import pyarrow as pa

    from freshet.model import ARRIVAL

    state = tmp_path / "state"
    if folder is not None:
        state.mkdir()
        state.chmod(folder)
    before = os.umask(mask)
    try:
        with Log.open(state) as log:
            log.declare("s")
            log.append("s", pa.table({"v": [1], ARRIVAL: [1]}), dead=[{"x": 1}])
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in state.rglob("*")}
    finally:
        os.umask(before)
    assert stat.S_IMODE(state.stat().st_mode) == (folder or 0o700)
    shared = folder == 0o2770
    assert {path.name for path in modes} >= {"store.db", "store.db-wal", "lock", "segments", "dead", "late", "s.jsonl"}
    for path, mode in modes.items():
        wanted = (0o770 if shared else 0o700) if path.is_dir() else (0o660 if shared else 0o600)
        assert mode & 0o777 == wanted, (path, oct(mode))
