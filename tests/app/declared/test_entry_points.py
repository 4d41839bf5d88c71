"""Sources, sinks, policies and functions that another package brings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.app import App, InvalidApp
from freshet.app.declared.functions import PACKAGED
from freshet.cli.kinds import kinds
from freshet.cli.policies import policies
from freshet.kernels import Program
from freshet.model import ARRIVAL, UserError
from freshet.model.plugins import installed
from freshet.policies import create
from freshet.policies.registry import POLICIES
from freshet.sinks import KINDS as SINKS
from freshet.sources import KINDS as SOURCES

MODULE = """
import pyarrow.compute as pc

import freshet
from freshet.model import UserError
from freshet.policies import Everything
from freshet.sinks import MemorySink, SinkOptions
from freshet.sources import Generator, GeneratorOptions


class MyOptions(SinkOptions):
    color: str


class Idle(Everything):
    \"\"\"Does as everything does.\"\"\"
    name = "brought-idle"


@freshet.function(takes="int", returns="int")
def brought_negative(number):
    return pc.negate(number)


def undeclared(number):
    return number


class Unreachable(Generator):
    def check(self):
        raise UserError("the broker does not answer")


sink = (MyOptions, MemorySink)
source = (GeneratorOptions, Generator)
unreachable = (GeneratorOptions, Unreachable)
wrong = 5


@freshet.function(takes="", returns="int")
def brought_empty():
    return 1


class Named(Idle):
    \"\"\"Has another name than its entry point.\"\"\"
"""
POINTS = """
[freshet.sinks]
brought_sink = brought_by_a_test:sink
brought_wrong = brought_by_a_test:wrong
brought_gone = brought_by_a_test:gone

[freshet.sources]
brought_source = brought_by_a_test:source
brought_unreachable = brought_by_a_test:unreachable

[freshet.policies]
brought-idle = brought_by_a_test:Idle
brought-gone = brought_by_a_test:Gone
fcfs = brought_by_a_test:Idle
brought-other = brought_by_a_test:Named
brought-sink = brought_by_a_test:MyOptions
brought-pair = brought_by_a_test:sink

[freshet.functions]
brought_negative = brought_by_a_test:brought_negative
brought_empty = brought_by_a_test:brought_empty
brought_bare = brought_by_a_test:undeclared
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as an installer leaves it, in a folder on the path."""
    (tmp_path / "brought_by_a_test.py").write_text(MODULE)
    info = tmp_path / "brought_by_a_test-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-by-a-test\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = [(registry, dict(registry)) for registry in (SINKS, SOURCES, POLICIES, PACKAGED)]
    installed.cache_clear()
    yield
    installed.cache_clear()
    sys.modules.pop("brought_by_a_test", None)
    for registry, before in kept:
        registry.clear()
        registry.update(before)  # type: ignore[arg-type]


def app_with(sql: str = "SELECT v FROM s", sink: str = "memory", source: str = "push", **options: object) -> App:
    app = App("a")
    app.stream("s", "v int", source={"kind": source, **({"rate": 5} if source != "push" else {})})
    app.query("q", sql, sinks=[{"kind": sink, **options}])
    return app


@pytest.mark.usefixtures("package")
def test_they_are_found_by_name_and_loaded_when_they_are_named() -> None:
    app_with().check()
    assert "brought_by_a_test" not in sys.modules
    app_with(sink="brought_sink", source="brought_source", color="red").check()
    assert "brought_by_a_test" in sys.modules
    with pytest.raises(InvalidApp, match=r"queries.q.sinks\[0\].colour: unknown key"):
        app_with(sink="brought_sink", colour="red").check()


@pytest.mark.usefixtures("package")
def test_a_source_can_check_itself() -> None:
    with pytest.raises(InvalidApp, match=r"streams.s.source: the broker does not answer"):
        app_with(source="brought_unreachable").check()


@pytest.mark.usefixtures("package")
def test_what_is_wrong_with_one_is_told_where_it_is_named() -> None:
    with pytest.raises(InvalidApp, match=r"brought_wrong of brought-by-a-test 1.5 .* must be a pair.*, not 5"):
        app_with(sink="brought_wrong").check()
    with pytest.raises(InvalidApp, match=r"brought_gone of brought-by-a-test 1.5 cannot be loaded"):
        app_with(sink="brought_gone").check()
    with pytest.raises(InvalidApp, match=r"must be one of callback, .*, brought_sink.*did you mean 'brought_sink'"):
        app_with(sink="brought_sinks").check()


@pytest.mark.usefixtures("package")
def test_a_policy_is_listed_with_its_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert type(create("brought-idle")).__name__ == "Idle"
    policies()
    lines = capsys.readouterr().out.splitlines()
    [line] = [line for line in lines if line.startswith("brought-idle")]
    assert line.endswith("Does as everything does. (of brought-by-a-test 1.5)")
    gone, other, pair, sink, shadowing = sorted(line for line in lines if line.startswith("Note: "))
    assert gone.startswith(
        "Note: brought-gone of brought-by-a-test 1.5 cannot be loaded (brought_by_a_test:Gone): Attri"
    )
    assert other == (
        "Note: brought-other of brought-by-a-test 1.5 calls itself brought-idle, and reports show that: "
        "let both names be one"
    )
    assert pair.endswith("must be a subclass of freshet.policies.Policy, not a tuple")
    assert sink.endswith("must be a subclass of freshet.policies.Policy, not the class MyOptions")
    assert shadowing == "Note: fcfs of brought-by-a-test 1.5 is not used: what is built in has that name"


@pytest.mark.usefixtures("package")
def test_queries_call_a_function_of_a_package() -> None:
    query = app_with("SELECT brought_negative(v) AS n FROM s").checked().queries["q"]
    rows = pa.table({"v": pa.array([3, None], pa.int32()), ARRIVAL: [1, 2]})
    chain = [query.graph.operators[name] for name in query.graph.order]
    (output,) = Program([chain], rows.schema).run(rows)
    assert output.batch.column("n").to_pylist() == [-3, None]
    with pytest.raises(InvalidApp, match=r"brought_negative.int. takes 1 argument, not 2"):
        app_with("SELECT brought_negative(v, v) AS n FROM s").check()


@pytest.mark.usefixtures("package")
def test_a_function_of_a_package_without_a_declaration_is_told_with_its_package() -> None:
    with pytest.raises(
        InvalidApp, match=r"function brought_bare of brought-by-a-test 1.5: say what it takes and retur"
    ):
        app_with("SELECT brought_bare(v) AS n FROM s").check()
    with pytest.raises(InvalidApp, match=r"function brought_empty of brought-by-a-test 1.5: it must take at least one"):
        app_with("SELECT brought_empty(v) AS n FROM s").check()


@pytest.mark.usefixtures("package")
def test_what_is_installed_is_listed_with_its_package(capsys: pytest.CaptureFixture[str]) -> None:
    kinds()
    lines = capsys.readouterr().out.splitlines()
    listed = {words[0]: " ".join(words[1:]) for words in map(str.split, lines)}
    assert listed["generator"].startswith("Makes tuples")
    assert listed["mirror"].startswith("Polls what others change")
    assert listed["jsonl"] == "Writes a line of JSON for each row."
    assert listed["brought_sink"] == "Keeps the newest rows. (of brought-by-a-test 1.5)"
    assert listed["brought_negative"] == "(int), returns int (of brought-by-a-test 1.5)"
    notes = [line for line in lines if line.startswith("Note: ")]
    assert [note.split(" of ")[0] for note in notes] == [
        "Note: brought_wrong", "Note: brought_gone", "Note: function brought_empty", "Note: function brought_bare",
    ]  # fmt: skip


def test_without_the_package_there_is_no_such_name() -> None:
    with pytest.raises(UserError, match="there is no policy 'brought-idle'"):
        create("brought-idle")
    with pytest.raises(InvalidApp, match="unknown function brought_negative"):
        app_with("SELECT brought_negative(v) AS n FROM s").check()
