"""State folders of earlier versions go on without a row lost or repeated."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.takeover.application import application
from tests.takeover.write import ALL, HALF, run_all

FOLDERS = Path(__file__).parent
EARLIER = [(version, name) for version in ("v2",) for name in ("rest", "waiting", "parked", "quarantined")]

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("version", "name"), EARLIER)
def test_a_folder_of_an_earlier_version_goes_on(version: str, name: str, tmp_path: Path) -> None:
    with tarfile.open(FOLDERS / version / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    options: dict[str, Any] = {"rest": {}, "waiting": {"share": True}, "parked": {}, "quarantined": {"broken": True}}
    answers = run_all(application(tmp_path, **options[name]), HALF, ALL)
    expected = json.loads((FOLDERS / version / "expected.json").read_text())
    assert {query: len(rows) for query, rows in answers.items()} == {q: len(rows) for q, rows in expected.items()}
    assert answers == expected
