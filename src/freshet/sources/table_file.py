"""Tables in files: CSV, JSON or Parquet, read as a whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from freshet.log.intake.conversion import convert
from freshet.model import UserError

FORMATS: Final = ("csv", "json", "parquet")
_SUFFIXES: Final = {
    ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip


def table_format(path: Path, given: str | None = None) -> str:
    """The format of a file: the given one, or by its suffix.

    >>> table_format(Path("hosts.csv.gz")), table_format(Path("hosts.txt"), "csv")
    ('csv', 'csv')
    >>> table_format(Path("hosts.txt"))
    Traceback (most recent call last):
    freshet.model.errors.UserError: hosts.txt tells no format: let it end in .csv, .json, ... or give one
    """
    if given is not None:
        if given not in FORMATS:
            raise UserError(f"format {given!r} is not known: use one of {', '.join(FORMATS)}")
        return given
    suffixes = [suffix.lower() for suffix in path.suffixes]
    found = _SUFFIXES.get(suffixes[-2 if len(suffixes) > 1 and suffixes[-1] == ".gz" else -1] if suffixes else "")
    if found is None:
        raise UserError(f"{path} tells no format: let it end in {', '.join(_SUFFIXES)}, or give one")
    return found


def read_table_file(path: Path, schema: pa.Schema, given: str | None = None) -> pa.Table:
    """The rows of a file in the columns and types of a schema; other columns are left out.

    Values are converted like those of streams; an empty field of CSV is NULL, times without a zone are UTC.

    Args:
        path: The file; it may be compressed with gzip (``.gz``).
        schema: The columns that it must have.
        given: Its format; None: what its suffix says.

    Raises:
        UserError: There is no such file, or some row of it does not fit.
    """
    form = table_format(path, given)
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix.lower() == ".gz" else content
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: a table is one file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    columns = {"csv": _csv, "json": _json, "parquet": _parquet}[form](path, content, schema)
    return pa.Table.from_arrays([_converted(path, columns[field.name], field) for field in schema], schema=schema)


ColumnValues = Mapping[str, pa.Array | Sequence[Any]]


def _csv(path: Path, content: bytes, schema: pa.Schema) -> ColumnValues:
    try:
        header = next(csv.reader(io.StringIO(content.decode("utf-8-sig"))), [])
        if not header:
            raise UserError(f"{path} is empty: it needs a header line with the names of its columns")
        if len(set(header)) < len(header):
            raise UserError(f"{path}: a column appears twice in the header line")
        table = pyarrow.csv.read_csv(
            # In one block, so that no row is cut; its last line may lack an end.
            io.BytesIO(content + b"\n"),
            read_options=pyarrow.csv.ReadOptions(block_size=len(content) + 1),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not CSV: {error}") from None
    return _named(path, table, schema)


def _parquet(path: Path, content: bytes, schema: pa.Schema) -> ColumnValues:
    try:
        table = pyarrow.parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is not Parquet: {error}") from None
    return _named(path, table, schema)


def _named(path: Path, table: pa.Table, schema: pa.Schema) -> ColumnValues:
    _check_columns(path, table.schema.names, schema)
    for name in schema.names:
        if table.schema.names.count(name) > 1:
            raise UserError(f"{path}: column {name} appears twice")
    return {name: table.column(name).combine_chunks() for name in schema.names}


def _json(path: Path, content: bytes, schema: pa.Schema) -> ColumnValues:
    """An array of objects, or an object on each line."""
    exact = any(pa.types.is_decimal(kind) for kind in schema.types)
    decoder = json.JSONDecoder(parse_float=Decimal if exact else None)
    try:
        text = content.decode("utf-8-sig").strip()
        whole = decoder.decode(text) if text.startswith("[") else None
        rows = [decoder.decode(line) for line in text.split("\n") if line.strip()] if whole is None else whole
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise UserError(f"{path} is not JSON, an array of objects or one on each line: {error}") from None
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise UserError(f"{path}: row {number} is not a JSON object but {type(row).__name__}")
    if rows:
        _check_columns(path, list(dict.fromkeys(name for row in rows for name in row)), schema)
    return {name: [row.get(name) for row in rows] for name in schema.names}


def _check_columns(path: Path, names: Sequence[str], schema: pa.Schema) -> None:
    missing = [name for name in schema.names if name not in names]
    if missing:
        raise UserError(f"{path} has no column {', '.join(missing)}: it has {', '.join(names)}")


def _converted(path: Path, values: pa.Array | Sequence[Any], field: pa.Field) -> pa.Array:
    if not len(values):
        return pa.array([], field.type)
    array, reasons = convert(values, field, "UTC")
    if reasons:
        row = min(reasons)
        more = f" ({len(reasons)} rows do not fit)" if len(reasons) > 1 else ""
        raise UserError(f"{path}, row {row + 1}: {reasons[row]}{more}")
    return array
