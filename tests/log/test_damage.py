"""Bits that flip and files that are cut: the same answers, or a sentence; never other answers, never a signal."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KINDS = ("segments", "store.db", "store.db-wal", "specs", "tail", "lock")
HARMLESS = ("specs", "tail", "lock")
"""What only serves the run that wrote it, or only tells more: damage of it changes no answer."""


class Readers:
    """A process that reads state folders, each in a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.log.damage", "serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip

    def answers(self, state: Path) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(state, file=self._process.stdin, flush=True)
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    readers = Readers()
    yield readers
    readers.close()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed") / "state"
    done = subprocess.run([sys.executable, "-m", "tests.log.damage", "make", folder], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    return folder


@pytest.fixture(scope="module")
def whole(state: Path, readers: Readers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    copy = tmp_path_factory.mktemp("whole") / "state"
    shutil.copytree(state, copy)
    found = readers.answers(copy)
    assert all("said" in found[side] for side in ("other", "owner", "spec")), found
    assert not [key for key, value in found["owner"]["said"].items() if "damaged" in value]
    return found


def files_of(state: Path, kind: str) -> list[Path]:
    return sorted((state / kind).iterdir()) if (state / kind).is_dir() else [state / kind]


def flip(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    bit = chance.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    return f"bit {bit} of {path.name}"


def cut(path: Path, chance: random.Random) -> str:
    length = chance.randrange(path.stat().st_size)
    path.write_bytes(path.read_bytes()[:length])
    return f"{path.name} cut to {length} bytes"


def names(state: Path) -> set[str]:
    return {path.name for path in (state / "segments").iterdir()}


def judge(found: dict[str, Any], whole: dict[str, Any], what: str) -> bool:
    """Whether damage was told; fails where the answers differ in silence, or there are none."""
    assert "status" not in found, f"{what}: a reader ended with {found}"
    told = False
    for side, expected in whole.items():
        if "damaged" in found[side]:
            told = True
            continue
        if side == "spec":
            assert found[side] == expected, what
            continue
        for key, value in expected["said"].items():
            given = found[side]["said"].get(key)
            if isinstance(given, dict) and "damaged" in given:
                assert "segment file" in given["damaged"], what
                told = True
            else:
                assert given == value, f"{what}: {side} says something else of {key}"
        assert found[side]["said"].keys() == expected["said"].keys(), what
    return told


def harm(kind: str, harming: Any, count: int, state: Path, whole: dict[str, Any], readers: Readers, tmp: Path) -> int:
    """Damages so many copies; returns how many times that was told."""
    told = 0
    for number in range(count):
        chance = random.Random(f"{kind} {harming.__name__} {number}")
        copy = tmp / "copy"
        shutil.copytree(state, copy)
        # The file of the unit that was not committed is nobody's.
        path = chance.choice([file for file in files_of(copy, kind) if not file.name.startswith("unit-99")])
        what = harming(path, chance)
        before = names(copy)
        found = readers.answers(copy)
        if judge(found, whole, what):
            told += 1
        if "damaged" in found.get("owner", {}):
            assert before <= names(copy), f"{what}: refused, and files are deleted"
        shutil.rmtree(copy)
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_or_a_cut_is_told_or_changes_nothing(kind, state, whole, readers, tmp_path) -> None:
    flips, cuts = (3, 2) if kind in HARMLESS else (10, 4)
    told = harm(kind, flip, flips, state, whole, readers, tmp_path)
    told += harm(kind, cut, cuts, state, whole, readers, tmp_path)
    assert told == 0 if kind in HARMLESS else told > 4


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_many_flipped_bits_and_cuts(kind, state, whole, readers, tmp_path, record_property) -> None:
    flips = harm(kind, flip, 200, state, whole, readers, tmp_path)
    cuts = harm(kind, cut, 40, state, whole, readers, tmp_path)
    record_property("told", f"{flips} of 200 flips, {cuts} of 40 cuts")
    print(f"{kind}: told {flips} of 200 flips, {cuts} of 40 cuts")
    assert (flips, cuts) == (0, 0) if kind in HARMLESS else min(flips, cuts) > 10
