"""Operators of one's own that remember, named in an application file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.app.declared.test_remembering import CHANGES, app_with, rows, sessions_of

from freshet.app import App, InvalidApp
from freshet.testing import answers, assert_same

MODULE = """
import freshet
from tests.app.declared.test_remembering import Changes, Sessions


@freshet.operator(
    takes="ts timestamp, person string", returns="person string, clicks bigint, over timestamp", time="column:over"
)
class Visits(Sessions):
    pass


plain = Changes()
wrong = 5
"""
FILE = """
[streams.clicks]
schema = "ts timestamp, person string, page string"
event_time = "ts"
lateness = "5 s"

[operators]
sessions = "kept_beside:Visits"

[operators.page_changes]
call = "kept_beside:plain"
takes = "person string, page string"
returns = "person string, page string"
time = "none"

[queries.q]
sql = "SELECT person, clicks FROM sessions(clicks)"

[queries.r]
sql = "SELECT person, page FROM page_changes(clicks) WHERE page <> 'z'"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An application file beside a module."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "kept_beside.py").write_text(MODULE)
    (tmp_path / "app.toml").write_text(FILE)
    yield tmp_path / "app.toml"
    sys.modules.pop("kept_beside", None)


def test_a_file_names_operators(file: Path) -> None:
    found = answers(App.from_toml(file), {"clicks": rows()})
    assert_same(found["q"], sessions_of(rows()))
    assert found["r"] == answers(app_with(CHANGES), {"clicks": rows()})["q"]


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ('"kept_beside:Visits"', '"kept_besides:sessions"', "operators.sessions: there is no module 'kept_besides'"),
        ('"kept_beside:Visits"', '"kept_beside:Visit"', "operators.sessions: module kept_beside has no"),
        ('"kept_beside:Visits"', '"kept_beside:wrong"', "operators.sessions: it must be a Python function, or have"),
        ('"kept_beside:Visits"', "{takes = 'a int'}", "operators.sessions.call: is missing"),
        ("time = ", "tme = ", "operators.page_changes.tme: unknown key (did you mean 'time'?)"),
        ('time = "none"', "", "operators.page_changes: a stateful operator must say what becomes of event time"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_place(file: Path, right: str, wrong: str, told: str) -> None:
    file.write_text(FILE.replace(right, wrong))
    with pytest.raises(InvalidApp) as error:
        App.from_toml(file)
    assert told in str(error.value)
