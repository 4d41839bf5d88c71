"""State folders of earlier versions go on without a row lost or repeated."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.takeover.application import CHAINED, application
from tests.takeover.write import ALL, HALF, run_all

FOLDERS = Path(__file__).parent
OPTIONS: dict[str, dict[str, Any]] = {
    "rest": {}, "waiting": {"share": True}, "merging": {"share": True}, "parked": {}, "quarantined": {"broken": True},
    "chained": {"queries": CHAINED}, "between": {"queries": CHAINED},
}  # fmt: skip
EARLIER = [(file.parent.name, file.name.partition(".")[0]) for file in sorted(FOLDERS.glob("v*/*.tar.gz"))]

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("version", "name"), EARLIER)
def test_a_folder_of_an_earlier_version_goes_on(version: str, name: str, tmp_path: Path) -> None:
    with tarfile.open(FOLDERS / version / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    answers = run_all(application(tmp_path, **OPTIONS[name]), HALF, ALL)
    expected = json.loads((FOLDERS / version / "expected.json").read_text())
    assert {query: len(rows) for query, rows in answers.items()} == {q: len(rows) for q, rows in expected.items()}
    assert answers == expected
