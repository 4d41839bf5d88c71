"""Callbacks from modules that lie beside an application file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120)


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
    from freshet.app import App

    app = tmp_path / "app.toml"
    app.write_text(APP.replace('kind = "callback", function = "neighbours:tell"', 'kind = "memory"'))
    before = list(sys.path)
    App.from_toml(app).check()
    assert sys.path == before
