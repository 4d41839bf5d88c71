"""Files of tables: what fits is read, what does not is refused as a whole."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from freshet.model import UserError, parse_schema
from freshet.sources.table_file import read_table_file

SCHEMA = parse_schema("host string, n int, price decimal(8,2), since timestamp, ok boolean")
EXPECTED = [
    {"host": "a", "n": 1, "price": Decimal("1.50"), "since": datetime(2024, 1, 1, tzinfo=UTC), "ok": True},
    {"host": "b, c", "n": None, "price": None, "since": None, "ok": None},
]
TEXT = 'more,host,n,price,since,ok\nx,a,1,1.5,2024-01-01T00:00:00Z,true\ny,"b, c",,,,\n'
OBJECTS = [
    {"host": "a", "n": 1, "price": 1.5, "since": "2024-01-01T00:00:00Z", "ok": True, "more": [1]},
    {"host": "b, c", "n": None},
]


def rows(path: Path) -> list[dict[str, object]]:
    table = read_table_file(path, SCHEMA)
    assert table.schema == SCHEMA
    found: list[dict[str, object]] = table.to_pylist()
    return found


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    assert rows(path) == EXPECTED
    zipped = tmp_path / "t.csv.gz"
    zipped.write_bytes(gzip.compress(TEXT.encode()))
    assert rows(zipped) == EXPECTED


def test_csv_with_a_byte_order_mark_and_lines_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfhost,n\r\n"a\nb",1\r\n')
    table = read_table_file(path, parse_schema("host string, n int"))
    assert table.to_pylist() == [{"host": "a\nb", "n": 1}]


@pytest.mark.parametrize("form", ["array", "lines"])
def test_json(tmp_path: Path, form: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(OBJECTS) if form == "array" else "\n\n".join(map(json.dumps, OBJECTS)) + "\n")
    assert rows(path) == EXPECTED


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = pa.Table.from_pylist(EXPECTED, SCHEMA)
    wider = columns.set_column(1, "n", columns["n"].cast(pa.int64())).append_column("more", pa.array([1, 2]))
    pyarrow.parquet.write_table(wider, path)
    assert rows(path) == EXPECTED


@pytest.mark.parametrize(
    ("name", "content"), [("t.csv", "host,n\n"), ("t.csv", "host,n"), ("t.json", "[]"), ("t.jsonl", "")]
)
def test_a_table_may_be_empty(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert read_table_file(path, parse_schema("host string, n int")).num_rows == 0


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.csv", "", "is empty: it needs a header line"),
        ("t.csv", "host\na\n", "has no column n: it has host"),
        ("t.csv", "host,host,n\na,b,1\n", "a column appears twice"),
        ("t.csv", "host,n\na,1,2\n", "is not CSV"),
        ("t.csv", "host,n\na,1\nb,x\nc,y\n", r"row 2: column n: 'x' is not of type int \(2 rows do not fit\)"),
        ("t.csv", "host,n\na,99999999999\n", "row 1: column n"),
        ("t.json", "{", "is not JSON"),
        ("t.json", "[1]", "row 1 is not a JSON object but int"),
        ("t.json", '{"host": "a"}', "has no column n: it has host"),
        ("t.parquet", "PAR1", "is not Parquet"),
        ("t.txt", "host,n\n", "tells no format"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, content: str, problem: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError, match=problem):
        read_table_file(path, parse_schema("host string, n int"))


def test_a_format_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("host,n\na,1\n")
    assert read_table_file(path, parse_schema("host string, n int"), "csv").num_rows == 1
    with pytest.raises(UserError, match="use one of csv, json, parquet"):
        read_table_file(path, SCHEMA, "xml")


def test_there_must_be_a_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        read_table_file(tmp_path / "t.csv", SCHEMA)
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        read_table_file(tmp_path / "t.csv", SCHEMA)
