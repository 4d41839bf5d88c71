"""Files are short enough to be read at once, and the list of the longest tests names files that are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.conftest import LONGEST

ROOT = Path(__file__).parents[2]
MOST_LINES = 400


def too_long(root: Path) -> Iterator[str]:
    """The modules below a folder that have too many lines."""
    for path in sorted(root.rglob("*.py")):
        if len(path.read_text().splitlines()) > MOST_LINES:
            yield str(path.relative_to(root))


def test_no_module_is_too_long() -> None:
    assert [each for folder in ("src", "tests", "examples") for each in too_long(ROOT / folder)] == []


def test_a_module_that_is_too_long_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("pass\n" * (MOST_LINES + 1))
    (tmp_path / "short.py").write_text("pass\n" * MOST_LINES)
    assert list(too_long(tmp_path)) == ["long.py"]


def test_the_files_that_run_first_are_there() -> None:
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []
