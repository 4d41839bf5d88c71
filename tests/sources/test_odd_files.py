"""Files that hold anything: a dead letter for a line or for the file, and the next file is read."""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from freshet.log import Intake, Limits, Log
from freshet.model import Stream, UserError, parse_schema
from freshet.sources import FilesOptions, FilesSource
from freshet.sources.table_file import read_table_file

STREAM = Stream("s", parse_schema("k string, v int, m map<string,int>, d decimal(10,2)"))
LAST = b'{"k": "last", "v": 1}\n'


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def take(folder: Path, state: Path, stream: Stream = STREAM) -> tuple[list[Any], list[dict[str, Any]]]:
    """What the files of a folder become: the values of the first column, and the dead letters."""
    source = FilesSource(FilesOptions(path=folder, settle=0, order="name", follow=False), stream)
    with Log.open(state, limits=Limits(min_free_bytes=0)) as log:
        log.declare("s")
        intake = Intake(log, stream)
        position = log.source_position("s")
        if position is not None:
            source.restore(position)
        for look in range(3):
            while (batch := source.poll(4e9 + look)) is not None:
                intake.append(batch.rows, batch.arrivals, batch.position)
        assert source.next_due() is None, "it would go on for ever"
        source.close()
        taken = log.read("s", 0, log.end("s"))[0].to_pylist() if log.end("s") else []
    letters = state / "dead" / "s.jsonl"
    return taken, [json.loads(line) for line in letters.read_text().splitlines()] if letters.exists() else []


HEADER = b"k,v,m,d\n"
GOOD = parquet(pa.table({"k": ["a"] * 1000, "v": range(1000), "m": [None] * 1000, "d": [None] * 1000}))
INVALID = pa.array([b"ok", b"\xff"]).view(pa.string())
NULLS = {"v": pa.nulls(2, pa.int32()), "m": pa.nulls(2), "d": pa.nulls(2)}
WHOLE = "the file cannot be read: "


@pytest.mark.parametrize(
    ("name", "content", "taken", "reasons"),
    [
        ("cr.csv", HEADER.replace(b"\n", b"\r") + b"a,1,,\rb,2,,\r", [], [WHOLE]),
        ("cr_lines.csv", HEADER + b"a,1,,\rb,2,,\rc,3,,\r", [], ["not a line of CSV"]),
        ("bom.csv", b"\xef\xbb\xbf" + HEADER + b"a,1,,\n", ["a"], []),
        ("utf16.csv", (HEADER + b"a,1,,\n").decode().encode("utf-16"), [], [WHOLE]),
        ("utf16_plain.csv", (HEADER + b"a,1,,\n").decode().encode("utf-16-le"), [], [WHOLE]),
        ("nul.csv", HEADER + b"a\0b,1,,\n\0,\0,,\n", ["a\0b"], ["column v: '\\x00'"]),
        ("empty.csv", b"", [], []),
        ("blank.csv", b"\n\n", [], [WHOLE]),
        ("huge.csv", HEADER + b"x" * 300_000 + b",1,,\n", ["x" * 300_000], []),
        ("huge_beside.csv", HEADER + b"x" * 300_000 + b',1,,\n"y,1,,\n', ["x" * 300_000], ["not a line of CSV"]),
        ("huge_header.csv", b"x" * 3_000_000 + b"\na\n", [], [WHOLE]),
        ("quote.csv", HEADER + b'"a,1,,\nb,2,,\n', ["b"], ["not a line of CSV"]),
        ("quote_header.csv", b'"k,v\na,1\n', [], [WHOLE]),
        ("twice.csv", b"k,k\na,1\n", [], [WHOLE]),
        ("not_utf8.csv", HEADER + b"\xff,1,,\na,1,,\n", ["a"], ["not UTF-8 text"]),
        ("surrogate.csv", HEADER + b"\xed\xa0\x80,1,,\na,1,,\n", ["a"], ["not UTF-8 text"]),
        ("garbage.csv.gz", random.Random(1).randbytes(1000), [], [WHOLE]),
        ("cut.csv.gz", gzip.compress(HEADER + b"a,1,,\n" * 9, mtime=0)[:-9], [], [WHOLE]),
        ("surrogate.json", b'{"k": "\\ud800"}\n{"k": "a"}\n', ["a"], ["column k: '\\ud800'"]),
        ("surrogate_key.json", b'{"\\ud800": 1, "k": "a"}\n', ["a"], []),
        ("surrogate_in_map.json", b'{"m": {"\\ud800": 1}}\n', [], ["column m: {'\\ud800': 1}"]),
        ("bom.json", b'\xef\xbb\xbf{"k": "a"}\n', ["a"], []),
        ("utf16.json", '{"k": "a"}\n{"k": "b"}\n'.encode("utf-16"), [], [WHOLE]),
        ("nul.json", b'\0\n{"k": "a"}\0\n{"k": "a"}\n', ["a"], ["not a line of JSON"] * 2),
        ("deep.json", b'{"v": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", [], ["not a line of JSON"]),
        ("nested.json", b'{"v": ' + b"[" * 900 + b"]" * 900 + b"}\n", [], ["column v: "]),
        ("nan.json", b'{"v": NaN}\n{"v": Infinity}\n{"d": -Infinity}\n{"k": "a"}\n', ["a"], ["column"] * 3),
        ("digits.json", b'{"v": ' + b"9" * 5000 + b"}\n", [], ["not a line of JSON"]),
        ("exponent.json", b'{"d": 1e999999999999999999999}\n', [], ["not a line of JSON"]),
        ("zeros.json", b'{"d": 1e999999999}\n', [], ["column d: "]),
        ("twice.json", b'{"k": "a", "k": "b"}\n', ["b"], []),
        ("list.json", b'[{"k": "a"}]\n', [], ["not a JSON object but list"]),
        ("cr.json", b'{"k": "a"}\r{"k": "b"}\r', [], ["not a line of JSON"]),
        ("empty.json", b"", [], []),
        ("garbage.json.gz", b"\x1f\x8b\x08" + random.Random(99).randbytes(99), [], [WHOLE]),
        ("cut.parquet", GOOD[: len(GOOD) // 2], [], [WHOLE]),
        ("cut_head.parquet", GOOD[9:], [], [WHOLE]),
        ("garbage.parquet", random.Random(5000).randbytes(5000), [], [WHOLE]),
        ("empty.parquet", b"", [], []),
        ("not_utf8.parquet", parquet(pa.table({"k": INVALID, **NULLS})), ["ok"], ["column k: "]),
        ("twice.parquet", parquet(pa.Table.from_arrays([INVALID] * 2, ["k", "k"])), [], [WHOLE]),
        ("unknown.txt", b"x", [], [WHOLE]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_one_dead_letter_and_the_next_file(
    tmp_path: Path, name: str, content: bytes, taken: list[Any], reasons: list[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / f"1_{name}").write_bytes(content)
    (folder / "2_last.json").write_bytes(LAST)
    found, letters = take(folder, tmp_path / "state")
    assert found == [*taken, "last"]
    assert [(reason in letter["reason"]) for letter, reason in zip(letters, reasons, strict=True)] == [True] * len(
        reasons
    )
    # After a restart nothing comes again.
    assert take(folder, tmp_path / "state") == (found, letters)


def test_what_is_no_file_of_its_name_is_passed_by(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "folder.csv").mkdir(parents=True)
    (folder / "dangling.csv").symlink_to(folder / "nowhere")
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    (folder / "null.csv").symlink_to("/dev/zero")
    os.mkfifo(folder / "fifo.csv")
    with socket.socket(socket.AF_UNIX) as sock:
        at = Path.cwd()
        os.chdir(folder)
        try:
            sock.bind("socket.csv")
        finally:
            os.chdir(at)
        (folder / "z.json").write_bytes(LAST)
        assert take(folder, tmp_path / "state") == (["last"], [])


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, content in ((b"1\xff.json", b'{"k": "a"}\n{"k": 5}\n'), (b"2\xff.csv", b"x\r\r"), (b"3.json", LAST)):
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(content)
    found, letters = take(folder, tmp_path / "state")
    assert found == ["a", "5", "last"]
    assert [letter["row"] for letter in letters] == ["2\udcff.csv"]
    assert take(folder, tmp_path / "state") == (found, letters)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for suffix in ("csv", "json", "parquet"):
        (folder / f"1.{suffix}").write_bytes(b"x")
        (folder / f"1.{suffix}").chmod(0)
    (folder / "z.json").write_bytes(LAST)
    found, letters = take(folder, tmp_path / "state")
    assert (found, len(letters)) == (["last"], 3)


@pytest.mark.parametrize("number", [13, 40, 21])
def test_a_file_that_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """As the superuser sees no refusal, the system's answer is put in its place."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_bytes(HEADER)
    (folder / "z.json").write_bytes(LAST)
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "1.csv":
            raise OSError(number, os.strerror(number))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    found, letters = take(folder, tmp_path / "state")
    assert (found, len(letters)) == (["last"], 1)


KILLERS = """
import sys
from pathlib import Path
import numpy as np, pandas as pd
from freshet.log import Intake, Log
from freshet.model import Stream, parse_schema
from freshet.sources import FilesOptions, FilesSource
from freshet.sources.push import as_rows

cases = {
    "map": ("map<string,int>", [[None]]),
    "map of maps": ("map<string,map<string,int>>", [{"a": [None]}]),
    "map in array": ("array<map<string,int>>", [[[None]]]),
    "map in struct": ("struct<a:map<string,int>>", [{"a": [None]}]),
    "time before int": ("timestamp", [np.datetime64("2024-01-01"), np.int64(5)]),
    "time before float": ("string", [np.datetime64("2024-01-01"), np.float32(5)]),
    "int": ("bigint", [np.datetime64("2024-01-01"), np.int64(5)]),
    "list": ("array<bigint>", [[np.datetime64("2024-01-01"), np.int64(5)]]),
    "frame": ("bigint", pd.DataFrame({"v": pd.Series([np.datetime64("2024-01-01"), np.int64(5)], dtype=object)})),
}
with Log.open(Path(sys.argv[1])) as log:
    for name, (kind, values) in cases.items():
        print(name, end=" ", flush=True)
        log.declare(name)
        rows = values if isinstance(values, pd.DataFrame) else [{"v": value} for value in values]
        receipt = Intake(log, Stream(name, parse_schema(f"v {kind}"))).append(as_rows(rows), 1)
        assert receipt.end + receipt.dead == len(rows), receipt
        print(receipt.dead, flush=True)
    print("file", end=" ", flush=True)
    folder = Path(sys.argv[1], "in")
    folder.mkdir()
    (folder / "x.json").write_text('{"v": [null]}\\n')
    stream = Stream("map", parse_schema("v map<string,int>"))
    batch = FilesSource(FilesOptions(path=folder, settle=0), stream).poll(4e9)
    print(Intake(log, stream).append(batch.rows, batch.arrivals).dead, flush=True)
"""


def test_values_that_killed_the_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLERS, str(tmp_path / "state")]
    child = subprocess.run(command, capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr[-2000:]
    assert [line.rpartition(" ")[2] for line in child.stdout.splitlines()] == list("1111001111")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.json", b'{"k": "\\ud800"}\n'),
        ("t.json", b'{"k": 1e999999999999999999999, "d": 1}\n'),
        ("t.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\0" + b"garbage"),
        ("t.parquet", parquet(pa.Table.from_arrays([pa.array(["a"])] * 2, ["k", "k"]))),
        ("t.csv", b"k\r\rx"),
    ],
)
def test_a_table_of_a_wrong_file_is_a_users_error(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError):
        read_table_file(tmp_path / name, parse_schema("k string" + (", d decimal(4,1)" if b"1e9" in content else "")))


def test_a_line_separator_of_unicode_ends_no_line_of_json(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes('{"k": "a\u2028b"}\n'.encode())
    assert read_table_file(tmp_path / "t.json", parse_schema("k string"))["k"].to_pylist() == ["a\u2028b"]
