from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commands import APP


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.toml"
    path.write_text(APP)
    return path
