"""Bits that flip and files that are cut: the same answers, or a sentence; never other answers, never a signal."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.log.damage import rows

from freshet.log import Damaged, Limits, Log, LogReader, SegmentWriter, read_segment
from freshet.log.segments.sums import Checks, checked, has_sum, sum_of
from freshet.log.store.tail import Tail, read_tail
from freshet.log.store.verify import verify
from freshet.model import ARRIVAL, Commit, Segment

ROOT = Path(__file__).parents[2]
KINDS = ("segments", "closed store.db", "store.db", "store.db-wal", "specs", "tail", "lock")
"""Files of a folder that a kill left, where the write-ahead log has the last word on most pages of the store; and the
store of one that was closed, which is all there is."""
HARMLESS = ("specs", "tail", "lock")
"""What only serves the run that wrote it, or only tells more: damage of it changes no answer."""


def filled(state: Path, appends: int = 3) -> None:
    with Log.open(state) as log:
        log.declare("s")
        for number in range(appends):
            log.append("s", rows(5 * number, 5))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(state: Path, why: str) -> None:
    """Both readers refuse it with a sentence, and neither changes anything."""
    before = contents(state)
    for opened in (Log.open, LogReader):
        with pytest.raises(Damaged, match=why) as error:
            opened(state)
        assert "\n" not in str(error.value)
    after = contents(state)
    left = {name: content for name, content in after.items() if not name.endswith(("-shm", "lock", "-wal"))}
    assert left == {name: content for name, content in before.items() if not name.endswith(("-shm", "lock", "-wal"))}
    assert not [name for name in before if name.endswith("-wal") and after.get(name) != before[name]]
    assert any(check.damage for check in verify(state))


def test_a_store_that_is_gone_beside_segments_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "store.db").unlink()
    refused(tmp_path, "store.db is missing or empty, but 3 segment files lie beside it")
    (tmp_path / "store.db").touch()
    refused(tmp_path, "missing or empty")


def test_a_store_that_is_no_database_gives_a_sentence(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "store.db").write_bytes(b"not a database at all" * 1000)
    refused(tmp_path, "store.db is damaged: file is not a database")


def test_a_store_that_lost_its_write_ahead_log_is_refused(state: Path, tmp_path: Path) -> None:
    copy = tmp_path / "state"
    shutil.copytree(state, copy)
    (copy / "store.db-wal").unlink()
    refused(copy, "has lost commits: it ends at [0-9]+, but there were 47 .says tail, append-")
    # After a power cut the tail may be older, or say nothing: the names of segment files are synced.
    (copy / "tail").write_bytes(bytes(30))
    refused(copy, "has lost commits: it ends at [0-9]+, but there were 47 .says append-")


def test_the_tail_follows_every_commit_and_is_never_ahead(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        assert read_tail(tmp_path) == log.commits == 1
        log.declare("s")
        log.start_reader("q", "s")
        log.append("s", rows(0, 5))
        log.advance("q", "s", 2)
        assert read_tail(tmp_path) == log.commits == 5
        with pytest.raises(Exception, match="no reader"):
            log.advance("nobody", "s", 2)
        assert read_tail(tmp_path) == log.commits
    tail = Tail(tmp_path)
    tail.write(99)
    tail.close()
    refused(tmp_path, "there were 99 .says tail")


def test_a_folder_from_before_has_neither_sums_nor_a_tail(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        with SegmentWriter(log.folder, "old", sums=False) as writer:
            writer.add("s", rows(0, 5))
            log.commit([Commit(files=(writer.finish(),))])
        log.append("s", rows(5, 5))
        assert [has_sum(segment) for segment in log.train("s", 0, 10).segments] == [False, True]
    (tmp_path / "tail").unlink()
    with LogReader(tmp_path) as reader:
        assert reader.read("s", 0, 10)["v"].to_pylist() == list(range(10))
    [segments] = [check for check in verify(tmp_path) if check.name == "segments"]
    assert segments.notes == ["1 are from a version that wrote no checksums: only their sizes are known"]


@pytest.mark.parametrize("sums", [True, False])
@pytest.mark.parametrize("length", [0, 1, 300, -1])
def test_a_cut_segment_names_file_stream_and_offsets(tmp_path: Path, sums: bool, length: int) -> None:
    with SegmentWriter(tmp_path, "f", sums=sums) as writer:
        writer.add("s", rows(0, 5))
        [(_, count, position, size, first, last)] = writer.finish().members
    content = (tmp_path / "f.arrows").read_bytes()
    (tmp_path / "f.arrows").write_bytes(content[:length])
    segment = Segment("s", 70, count, 0, first, last, "f.arrows", position, size)
    with pytest.raises(Damaged, match=r"stream s, offsets 70 to 74: segment file f[.]arrows is damaged at byte 0"):
        read_segment(tmp_path, segment, 70, 75)


def summed(content: bytes, sum_: bytes) -> bool:
    """Whether a segment of this content and this sum is taken."""
    segment = Segment("s", 0, 1, 0, 0, 0, "f.arrows", 0, len(content) + len(sum_))
    try:
        checked(pa.py_buffer(content + sum_), segment, None, Checks.ALWAYS)
    except Damaged:
        return False
    return True


def crc_of_bytes(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(4, "little")


def crc_of_rows(content: bytes) -> bytes:
    whole = len(content) // 512 * 512
    totals = np.frombuffer(content[:whole], "<u8").reshape(-1, 64).sum(axis=1, dtype=np.uint64)
    return zlib.crc32(content[whole:], zlib.crc32(totals.tobytes())).to_bytes(4, "little")


SUMS: dict[str, Callable[[bytes], bytes]] = {
    "now": lambda content: sum_of(pa.py_buffer(content)), "rows": crc_of_rows, "bytes": crc_of_bytes,
}  # fmt: skip


@pytest.mark.parametrize("form", SUMS)
@pytest.mark.parametrize("size", [8, 504, 512, 1288])
@pytest.mark.parametrize("fill", ["zeros", "ones", "random"])
def test_every_single_bit_of_a_segment_and_of_its_sum_counts(form: str, size: int, fill: str) -> None:
    content = {"zeros": bytes(size), "ones": b"\xff" * size, "random": random.Random(size).randbytes(size)}[fill]
    sum_ = SUMS[form](content)
    assert summed(content, sum_)  # segments of earlier versions are taken, too
    for bit in range(8 * (size + len(sum_))):
        damaged = bytearray(content + sum_)
        damaged[bit // 8] ^= 1 << bit % 8
        assert not summed(bytes(damaged[:size]), bytes(damaged[size:])), bit


def test_what_leaves_the_total_of_a_row_as_it_was_is_noticed() -> None:
    chance = random.Random(1)
    content = chance.randbytes(512 * 40 + 264)
    sum_, rows = SUMS["now"](content), [slice(at, at + 512) for at in range(0, 512 * 40, 512)]

    def with_swapped(one: slice, other: slice) -> bytes:
        damaged = bytearray(content)
        damaged[one], damaged[other] = damaged[other], damaged[one]
        return bytes(damaged)

    for _ in range(500):
        assert not summed(with_swapped(*chance.sample(rows, 2)), sum_)
        row = 512 * chance.randrange(40)
        one, other = (row + 8 * place for place in chance.sample(range(64), 2))
        assert not summed(with_swapped(slice(one, one + 8), slice(other, other + 8)), sum_)
        # The same bit of two words of a row: of the highest, the changes always cancel out in its total.
        damaged, bit = bytearray(content), chance.choice([63, 63, 62, chance.randrange(64)])
        for word in (one, other):
            damaged[word + bit // 8] ^= 1 << bit % 8
        assert not summed(bytes(damaged), sum_)
    assert not summed(content[:-8], sum_)
    assert not summed(content + bytes(8), sum_)
    assert not summed(bytes(len(content)), bytes(len(sum_)))


def test_compaction_leaves_a_damaged_segment_where_it_is(tmp_path: Path) -> None:
    with Log.open(tmp_path, limits=Limits(min_free_bytes=0, orphan_age=-1.0, sparse_age=-1.0)) as log:
        for stream in ("big", "bad", "good"):
            log.declare(stream)
        for name in ("bad", "good"):
            with SegmentWriter(log.folder, f"unit-{name}") as writer:
                writer.add("big", rows(0, 1000))
                writer.add(name, rows(0, 5))
                log.commit([Commit(files=(writer.finish(),))])
        [segment] = log.train("bad", 0, 5).segments
        content = bytearray((log.folder / segment.file).read_bytes())
        content[segment.position + 200] ^= 1
        (log.folder / segment.file).write_bytes(content)
        log.forget("big")
        assert log.collect().rewritten == ["unit-good.arrows"]
        assert log.read("good", 0, 5)["v"].to_pylist() == list(range(5))
        with pytest.raises(Damaged, match="stream bad, offsets 0 to 4: segment file unit-bad"):
            log.read("bad", 0, 5)
        # The engine asks for these of all streams, and must not end for one of them.
        assert log.arrival("bad", 3) == 1_000_000
        assert log.schema("bad") is None


def test_verifying_while_the_owner_works(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.start_reader("q", "s")
        log.append("s", rows(0, 5))
        assert not any(check.damage or check.notes for check in verify(tmp_path))
        log.append("s", rows(5, 5))
        file = log.folder / log.train("s", 5, 10).segments[0].file
        file.unlink()
        [found] = [text for check in verify(tmp_path) for text in check.damage]
        assert found == f"stream s, offsets 5 to 9: segment file {file.name} is missing from the state folder"
        assert log.read("s", 0, 5)[ARRIVAL][0].as_py() == 1_000_000


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
    told, closed = 0, tmp / "closed"
    if kind.startswith("closed") and not closed.exists():
        shutil.copytree(state, closed)
        Log.open(closed).close()
    for number in range(count):
        chance = random.Random(f"{kind} {harming.__name__} {number}")
        copy = tmp / "copy"
        shutil.copytree(closed if kind.startswith("closed") else state, copy)
        # The file of the unit that was not committed is nobody's.
        path = chance.choice([file for file in files_of(copy, kind.split()[-1]) if not file.name.startswith("unit-99")])
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
    assert told == 0 if kind in HARMLESS else told > 0


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_many_flipped_bits_and_cuts(kind, state, whole, readers, tmp_path, record_property) -> None:
    flips = harm(kind, flip, 200, state, whole, readers, tmp_path)
    cuts = harm(kind, cut, 40, state, whole, readers, tmp_path)
    record_property("told", f"{flips} of 200 flips, {cuts} of 40 cuts")
    print(f"{kind}: told {flips} of 200 flips, {cuts} of 40 cuts")
    assert (flips, cuts) == (0, 0) if kind in HARMLESS else min(flips, cuts) > 0
