from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.cli.commands import APP, Command

from freshet.cli import main


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.toml"
    path.write_text(APP)
    return path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in this process, which is quicker. A run takes the Spark of the tests: ask for that, too."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command has its own

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["freshet", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return subprocess.CompletedProcess(sys.argv, int(end.value.code or 0), *capsys.readouterr())

    return call
