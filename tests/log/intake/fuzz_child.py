"""The process that test_fuzz watches: odd rows by one way into a log, and what became of them.

Usage: fuzz_child WAY ROWS SEED; the way may be ``all``. Prints a line of JSON: rows, tuples, dead letters, exceptions.
"""

from __future__ import annotations

import collections
import faulthandler
import gzip
import json
import random
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from tests.log.intake import odd

from freshet.log import Intake, Limits, Log
from freshet.model import Stream, parse_schema
from freshet.sources import FilesOptions, FilesSource
from freshet.sources.push import as_rows

BATCH = 1000
Taken = tuple[int, int, int]
"""Rows given, tuples, dead letters."""


def push(kind: str, intake: Intake, rng: random.Random, folder: Path) -> Taken:
    rows = [odd.row(kind, rng) for _ in range(BATCH)]
    receipt = intake.append(rows, 1)
    return BATCH, receipt.end - receipt.first, receipt.dead


def frame(kind: str, intake: Intake, rng: random.Random, folder: Path) -> Taken:
    values = np.empty(BATCH, object)
    for place in range(BATCH):
        values[place] = odd.fitting(kind, rng) if rng.random() < 0.5 else odd.value(rng)
    receipt = intake.append(as_rows(pd.DataFrame({"v": values})), 1)
    return BATCH, receipt.end - receipt.first, receipt.dead


def csv(kind: str, intake: Intake, rng: random.Random, folder: Path) -> Taken:
    lines = [_csv_line(kind, rng) for _ in range(BATCH)]
    return _file(folder / "x.csv", b"v,w\n" + b"\n".join(lines) + b"\n", kind, intake)


def _csv_line(kind: str, rng: random.Random) -> bytes:
    if rng.random() < 0.001:
        return b"x" * 200_000 + b",1"
    text = str(rng.choice(_TEXTS) if rng.random() < 0.7 else odd.fitting(kind, rng))
    if rng.random() < 0.3:
        text = '"' + text.replace('"', '""') + '"'
    line = (text + rng.choice([",", ",1", ",1,2", ""])).encode(errors="surrogatepass")
    return rng.choice(_SPOILT)(line).replace(b"\n", b" ") if rng.random() < 0.3 else line


_TEXTS = [
    "", " ", "5", "-7", "5.5", "1e400", "x", "true", "NaN", "2024-02-29", "2024-03-10 02:30:00", "2024-13-01", "é\0",
    "\ud800", "\ufeff", '"', 'a"b', "9" * 5000, "[1]", "{}", "'", "\t", "\u2028", "0x10", "١", "1_000",
]  # fmt: skip
_SPOILT: list[Callable[[bytes], bytes]] = [
    lambda line: line + b"\r",
    lambda line: b"\xff" + line,
    lambda line: line.replace(b",", b"\r"),
    lambda line: b"\0" + line,
    lambda line: b"\xef\xbb\xbf" + line,
    lambda line: b'"' + line,
]


def json_lines(kind: str, intake: Intake, rng: random.Random, folder: Path) -> Taken:
    lines = [_json_line(rng) for _ in range(BATCH)]
    return _file(folder / "x.json", b"\n".join(lines) + b"\n", kind, intake)


def _json_line(rng: random.Random) -> bytes:
    if rng.random() < 0.1:
        return rng.choice(_BAD_JSON)
    text = json.dumps({"v": _json_value(rng, 3)}, ensure_ascii=rng.random() < 0.5)
    line = text.encode(errors="surrogatepass")
    return rng.choice(_SPOILT)(line) if rng.random() < 0.1 else line


_BAD_JSON = [
    b"x", b"[]", b"5", b"null", b"{", b'{"v": 1', b'{"v": ' + b"9" * 5000 + b"}", b'{"v": 1e999999999999999999999}',
    b'{"v": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", b'{"v": 1, "v": [null]}', b'{"v": NaN}', b'{"v": -Infinity}',
    b'{"\\ud800": 1}', b'{"v": {"\\ud800": 1}}', b'{"v": "\\ud800"}', b"\0", b'{"v": 1E+400}', b'{"v": 1e-400}',
]  # fmt: skip


def _json_value(rng: random.Random, depth: int) -> Any:
    if not depth or rng.random() < 0.5:
        return rng.choice([None, True, 0, 1, 5.5, 1e300, 2**63, 10**30, float("nan"), *_TEXTS[:24]])
    parts = [_json_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return rng.choice([parts, [None], dict(zip(["a", "b", "1"], parts, strict=False)), {"a": parts}, [[None, 1]]])


def parquet(kind: str, intake: Intake, rng: random.Random, folder: Path) -> Taken:
    path = folder / "x.parquet"
    pyarrow.parquet.write_table(pa.table({"v": _array(rng)}), path)
    content = bytearray(path.read_bytes())
    if rng.random() < 0.3:
        for _ in range(rng.randrange(1, 4)):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.05:
        del content[rng.randrange(len(content)) :]
    return _file(path, bytes(content), kind, intake, exact=False)


def _array(rng: random.Random) -> pa.Array:
    """A column of any type that Parquet has, each by bytes at random."""
    kind = rng.choice(_ARROW)
    width = 16 if pa.types.is_decimal128(kind) else kind.bit_width // 8 if not pa.types.is_binary(kind) else 0
    nulls = pa.py_buffer(rng.randbytes(BATCH // 8 + 1))
    if not width:
        texts = [rng.choice([b"", b"5", b"\xff", b"2024-01-01", rng.randbytes(5)]) for _ in range(BATCH)]
        array = pa.array(texts, pa.binary())
        return array.view(pa.string()) if rng.random() < 0.5 else array
    small = rng.random() < 0.5
    numbers = [rng.randrange(100) if small else rng.getrandbits(8 * width) for _ in range(BATCH)]
    data = b"".join(number.to_bytes(width, "little") for number in numbers)
    array = pa.Array.from_buffers(kind, BATCH, [nulls, pa.py_buffer(data)])
    return _wrapped(array, rng)


def _wrapped(array: pa.Array, rng: random.Random) -> pa.Array:
    ends = pa.array(range(len(array) + 1), pa.int32())
    return rng.choice([
        lambda: array,
        lambda: array,
        lambda: pa.ListArray.from_arrays(ends, array),
        lambda: pa.StructArray.from_arrays([array, array], ["a", "b"]),
        lambda: pa.MapArray.from_arrays(ends, pa.array(range(len(array))), array),
        lambda: pa.array(["a", "b"] * (BATCH // 2)).dictionary_encode(),
    ])()  # fmt: skip


_ARROW = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(),
    pa.float64(), pa.date32(), pa.time64("us"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms", "UTC"),
    pa.timestamp("us", "America/New_York"), pa.duration("us"), pa.decimal128(38, 5), pa.binary(),
]  # fmt: skip


def _file(path: Path, content: bytes, kind: str, intake: Intake, exact: bool = True) -> Taken:
    """One file into the log; and behind it another one, which must be read whatever the first holds."""
    zipped = hash(content) % 5 == 0 and path.suffix != ".parquet"
    path = path.with_name(path.name + ".gz") if zipped else path
    path.write_bytes(gzip.compress(content, 1) if zipped else content)
    source = FilesSource(FilesOptions(path=path.parent, settle=0, follow=False), Stream("s", parse_schema(f"v {kind}")))
    tuples = dead = 0
    for batch in _batches(source):
        receipt = intake.append(batch.rows, batch.arrivals, batch.position)
        tuples, dead = tuples + receipt.end - receipt.first, dead + receipt.dead
    source.close()
    path.unlink()
    return tuples + dead if not exact else _rows(path.name, content), tuples, dead


def _rows(name: str, content: bytes) -> int:
    lines = content.split(b"\n")[1 if "csv" in name else 0 :]
    return sum(1 for line in lines if line and not line.isspace())


def _batches(source: FilesSource) -> Iterator[Any]:
    now = 4e9
    for look in range(3):
        while (batch := source.poll(now + look)) is not None:
            yield batch


WAYS = {"push": push, "frame": frame, "csv": csv, "json": json_lines, "parquet": parquet}


def main(way: str, rows: int, seed: int) -> None:
    rng, counts = random.Random(seed), collections.Counter[str]()
    with (
        tempfile.TemporaryDirectory() as state,
        tempfile.TemporaryDirectory() as folder,
        Log.open(Path(state), limits=Limits(min_free_bytes=0)) as log,
    ):
        intakes = []
        for place, kind in enumerate(odd.TYPES):
            log.declare(f"s{place}")
            stream = Stream(f"s{place}", parse_schema(f"v {kind}"), time_zone="America/New_York")
            intakes.append((kind, Intake(log, stream)))
        while counts["rows"] < rows:
            kind, intake = rng.choice(intakes)
            try:
                given, tuples, dead = WAYS.get(way, rng.choice(list(WAYS.values())))(kind, intake, rng, Path(folder))
            except Exception:
                traceback.print_exc()
                given, tuples, dead = BATCH, 0, 0
                counts["exceptions"] += 1
            counts.update(rows=given, tuples=tuples, dead=dead)
        for place in range(len(intakes)):
            # What was taken in can be read, and every dead letter is a line of JSON.
            if end := log.end(f"s{place}"):
                log.read(f"s{place}", 0, end).validate(full=True)
            letters = Path(state, "dead", f"s{place}.jsonl")
            with letters.open(encoding="utf-8") if letters.exists() else open("/dev/null") as lines:
                counts["letters"] += sum(1 for line in lines if json.loads(line)["reason"])
    print(json.dumps({"exceptions": 0} | counts))


if __name__ == "__main__":
    faulthandler.enable()
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
