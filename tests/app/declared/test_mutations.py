"""Whatever a file says, `check` finds it right or says what is wrong, and soon."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest
from tests.app.declared.mutations import mutated

from freshet.app import App
from freshet.model import UserError

SECONDS = 120
"""Far above what any file takes: only a check that never ends is found by it."""


def _check(path: Path) -> int:
    """The exit code of `freshet check`, without a process for each file."""
    try:
        App.from_toml(path).check()
    except UserError:
        return 2
    return 0


class Endless(Exception):
    """A check does not end."""


def _ended(number: int, frame: FrameType | None) -> None:
    raise Endless


def _outcomes(folder: Path, seed: int, count: int) -> Counter[int]:
    (folder / "hosts.csv").write_text("host,owner\na,b\n")
    path, found = folder / "app.toml", Counter[int]()
    before = signal.signal(signal.SIGALRM, _ended)
    try:
        for content in mutated(seed, count):
            path.write_bytes(content)
            signal.alarm(SECONDS)
            try:
                found[_check(path)] += 1
            except Exception as error:
                kept = Path(os.environ.get("FRESHET_MUTATIONS", folder)) / f"failed-{time.time_ns()}.toml"
                kept.write_bytes(content)
                raise AssertionError(f"{type(error).__name__} for {kept}: {error}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return found


def test_mutated_files_are_right_or_explained(tmp_path: Path) -> None:
    found = _outcomes(tmp_path, seed=1, count=300)
    assert found.keys() == {0, 2}


@pytest.mark.long
def test_a_hundred_thousand_mutated_files_are_right_or_explained(tmp_path: Path) -> None:
    found = _outcomes(tmp_path, seed=2, count=100_000)
    assert found.total() == 100_000
    assert found.keys() == {0, 2}
