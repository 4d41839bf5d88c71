"""`freshet check` of what is no application file at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.commands import freshet_command

from freshet.app import App
from freshet.model import UserError

STREAM = '[streams.s]\nschema = "k int"\n'
WRONG = {
    "device": ("", "is not a file"),
    "pipe": ("", "is not a file"),
    "folder": ("", "is not a file"),
    "large": ("# " + "x" * (17 << 20), "16 MiB"),
    "deep lists": ("x = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    "deep keys": (".".join(["a"] * 2000) + " = 1", "nested too deeply"),
    "digits": (f"{STREAM}validity = {'9' * 5000}", "is not TOML"),
    "number": (f"{STREAM}validity = {10**30}", "64 bits"),
    "duration": (f"{STREAM}validity = '{10**30} s'", "36500 days"),
    "size": (f"{STREAM}retention.bound = '{'9' * 400} GB'", "too large for a size"),
    "long path": (f"[app]\nstate = '{'a' * 5000}'\n{STREAM}", "too long"),
    "character NUL": (f'[app]\nstate = "a\\u0000b"\n{STREAM}', "NUL"),
    "NUL in a table": (f'{STREAM}[tables.t]\nfile = "a\\u0000.csv"\nschema = "k int"\n', "NUL"),
    "NUL in a source": (f'{STREAM}source = {{kind = "files", path = "a\\u0000"}}\n', "NUL"),
    "quote in a schema": ('[streams.s]\nschema = "k int, \'s string"\n', "not closed"),
    "a name that is too long for a file": (f'[streams.{"x" * 201}]\nschema = "k int"\n', "201 characters, at most 200"),
    "a word of SQL": ('[streams.select]\nschema = "k int"\n', "a word of SQL"),
}


def _path(name: str, content: str, folder: Path) -> Path:
    if name == "device":
        return Path("/dev/zero")
    path = folder / "app.toml"
    if name == "pipe":
        os.mkfifo(path)
    elif name == "folder":
        path.mkdir()
    else:
        path.write_text(content)
    return path


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_an_application_is_said(name: str, tmp_path: Path) -> None:
    content, problem = WRONG[name]
    with pytest.raises(UserError, match=problem):
        App.from_toml(_path(name, content, tmp_path)).check()


def test_a_device_ends_with_exit_code_2() -> None:
    result = freshet_command("check", "/dev/zero")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "/dev/zero: is not a file: name an application file, such as app.toml\n"
