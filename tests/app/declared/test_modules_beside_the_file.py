"""Callbacks from modules that lie beside an application file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from freshet.app import App
from freshet.app.declared.endpoints import named_sinks
from freshet.sinks.sink import Token
from freshet.testing import answers

APP = """
[streams.s]
schema = "k int"

[queries.q]
sql = "SELECT k FROM s"
sinks = [{kind = "callback", function = "neighbours:tell"}]
"""


def check(app: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-P", "-m", "freshet", "check", str(app)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_a_module_beside_the_file_is_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    app = tmp_path / "app" / "app.toml"
    app.write_text(APP)
    missing = check(app, tmp_path)
    assert missing.returncode == 2
    assert "there is no module 'neighbours' beside the application file or on PYTHONPATH" in missing.stderr
    (tmp_path / "app" / "words.py").write_text("GREETING = 'hello'\n")
    (tmp_path / "app" / "neighbours.py").write_text("import words\n\ndef tell(table, token):\n    print(words)\n")
    found = check(app, tmp_path)
    assert (found.returncode, found.stderr) == (0, ""), found.stderr
    # Others with the name of a module that is installed do not hide it.
    (tmp_path / "app" / "pyarrow.py").write_text("raise RuntimeError('the wrong one')\n")
    assert check(app, tmp_path).returncode == 0


def test_without_callbacks_the_path_stays_as_it_is(tmp_path: Path) -> None:
    app = tmp_path / "app.toml"
    app.write_text(APP.replace('kind = "callback", function = "neighbours:tell"', 'kind = "memory"'))
    before = list(sys.path)
    App.from_toml(app).check()
    assert sys.path == before


FUNCTION = """
[streams.s]
schema = "v double"

[functions]
scale = "neighbours_of_one:scale"

[queries.q]
sql = "SELECT scale(v) AS w FROM s"
sinks = [{kind = "callback", function = "neighbours_of_one:tell"}]
"""
MODULE = """
import freshet
import pyarrow.compute as pc
from neighbours_package import inner

told = []


@freshet.function(takes="double", returns="double")
def scale(x):
    return pc.multiply(x, inner.FACTOR)


def tell(table, token):
    told.extend(table["w"].to_pylist())
"""


def test_each_file_has_the_modules_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    apps = []
    for factor in (2.0, 3.0):
        folder = tmp_path / str(factor)
        (folder / "neighbours_package").mkdir(parents=True)
        (folder / "neighbours_package" / "__init__.py").touch()
        (folder / "neighbours_package" / "inner.py").write_text(f"FACTOR = {factor}\n")
        (folder / "neighbours_of_one.py").write_text(MODULE)
        (folder / "app.toml").write_text(FUNCTION)
        apps.append(App.from_toml(folder / "app.toml"))
    assert [answers(app, {"s": [{"v": 10.0}]})["q"] for app in apps] == [[{"w": 20.0}], [{"w": 30.0}]]
    # Callbacks are imported when the application starts.
    for app, told in zip(apps, (20.0, 30.0), strict=True):
        app.checked()
        sink = named_sinks(app.queries["q"])[0].make()
        sink.write(pa.table({"w": [told]}), Token("q", 0, 1))
        assert sys.modules["neighbours_of_one"].told == [told]
    assert str(tmp_path / "3.0") in sys.path
    for name in [name for name in sys.modules if name.startswith("neighbours_")]:
        monkeypatch.delitem(sys.modules, name)
