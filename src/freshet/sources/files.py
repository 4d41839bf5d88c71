"""Rows of CSV and Parquet files in blocks, so that no file has to fit into memory."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from freshet.model import UserError

MALFORMED: Final = "__malformed"
"""Column of every block: the text of a line that could not be split into the file's columns, otherwise NULL."""

_BLOCK_BYTES: Final = 1 << 20
_HEADER_BYTES: Final = 1 << 20
_FIELD_BYTES: Final = 1 << 17
"""Maximum length of a field for Python's reader; Arrow's reader takes longer ones."""
_BLOCK_ROWS: Final = 16_384


class FileRows(Protocol):
    """The rows of a file: blocks with the file's columns and :data:`MALFORMED`, a row for every row of the file."""

    columns: list[str]

    def blocks(self, first: int) -> Iterator[pa.Table]:
        """The blocks from the row ``first`` on."""


def why_malformed(line: str, columns: Sequence[str]) -> str:
    """What is wrong with a line that could not be divided into columns.

    >>> why_malformed("1,2,3", ["a", "b"]), why_malformed('1,"x', ["a", "b"])
    ('3 fields, the header has 2', 'not a line of CSV: unexpected end of data')
    """
    try:
        fields = next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        return f"not a line of CSV: {error}"
    if len(fields) != len(columns):
        return f"{len(fields)} {'field' if len(fields) == 1 else 'fields'}, the header has {len(columns)}"
    return "not UTF-8 text"


def open_rows(path: Path) -> FileRows:
    """The rows of a file, by its suffix: ``.csv``, ``.csv.gz``, ``.parquet``."""
    if not path.is_file():
        raise UserError(f"file {path} does not exist")
    if path.suffix.lower() in (".parquet", ".pq"):
        return ParquetRows(path)
    if path.suffix.lower() == ".csv" or [suffix.lower() for suffix in path.suffixes[-2:]] == [".csv", ".gz"]:
        return CsvRows(path)
    raise UserError(f"file {path} must end in .csv, .csv.gz or .parquet")


class CsvRows:
    """Lines of a CSV file with a header, all columns as text; an empty field is NULL.

    A row is a line, so a stray quote spoils one row and not the rest of the file. Blank lines are no rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with self._open() as file:
                header = file.readline(_HEADER_BYTES).decode("utf-8-sig")
            self.columns = next(csv.reader([header.removesuffix("\n").removesuffix("\r")]), [])
        except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
            reason = "a line must end in LF or CRLF, not in CR" if isinstance(error, csv.Error) else error
            raise UserError(f"file {path} cannot be read as CSV: {reason}") from None
        if not self.columns:
            raise UserError(f"file {path} is empty: it needs a header line with the names of its columns")
        if len(set(self.columns)) < len(self.columns):
            raise UserError(f"file {path}: a column appears twice in the header line")

    def _open(self) -> BinaryIO:
        if self._path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(self._path, "rb"))
        return self._path.open("rb")

    def blocks(self, first: int) -> Iterator[pa.Table]:
        with self._open() as file:
            file.readline()
            row = 0
            while lines := file.readlines(_BLOCK_BYTES):
                lines = [line for line in lines if not line.isspace()]
                begin, row = max(first - row, 0), row + len(lines)
                if begin < len(lines):
                    yield self._parse(lines[begin:])

    def _parse(self, lines: list[bytes]) -> pa.Table:
        table = self._parse_all(lines)
        if table is None:
            return self._parse_each(lines)
        return table.append_column(MALFORMED, pa.nulls(len(lines), pa.string()))

    def _parse_all(self, lines: list[bytes]) -> pa.Table | None:
        """Parses all lines at once; None if at least one of them needs care."""
        try:
            table = pyarrow.csv.read_csv(
                io.BytesIO(b"".join(lines)),
                read_options=pyarrow.csv.ReadOptions(column_names=self.columns, block_size=1 << 30, use_threads=False),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(self.columns, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid:
            return None
        # Fewer rows than lines: a quoted field went over a line's end.
        return table if table.num_rows == len(lines) else None

    def _parse_each(self, lines: list[bytes]) -> pa.Table:
        rows = [self._parse_line(line) for line in lines]
        names = [*self.columns, MALFORMED]
        return pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], names=names)

    def _parse_line(self, line: bytes) -> list[str | None]:
        if len(line) > _FIELD_BYTES and (table := self._parse_all([line])) is not None:
            return [*table.to_pylist()[0].values(), None]
        try:
            text = line.decode().rstrip("\r\n")
            fields = next(csv.reader([text], strict=True))
        except (UnicodeDecodeError, csv.Error):
            return [*[None] * len(self.columns), line.decode(errors="backslashreplace").rstrip("\r\n")]
        if len(fields) != len(self.columns):
            return [*[None] * len(self.columns), text]
        return [*(field or None for field in fields), None]


class ParquetRows:
    """Rows of a Parquet file with their own types."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                self.columns = list(file.schema_arrow.names)
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"file {path} cannot be read as Parquet: {error}") from None

    def blocks(self, first: int) -> Iterator[pa.Table]:
        # Not mapped: a file that somebody cuts meanwhile would end the process.
        with pyarrow.parquet.ParquetFile(self._path) as file:
            groups = np.cumsum([0] + [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)])
            group = int(np.searchsorted(groups[1:], first, side="right"))
            skip = first - int(groups[min(group, file.num_row_groups)])
            for batch in file.iter_batches(_BLOCK_ROWS, row_groups=list(range(group, file.num_row_groups))):
                begin, skip = min(skip, batch.num_rows), max(skip - batch.num_rows, 0)
                if begin < batch.num_rows:
                    table = pa.Table.from_batches([batch.slice(begin)])
                    yield table.append_column(MALFORMED, pa.nulls(table.num_rows, pa.string()))


class SortedRows:
    """The rows of another reader by time; rows of equal time stay in the order of the file.

    They are stored in a temporary Arrow file, so that only the times are held in memory.

    Args:
        inner: The rows.
        seconds: The times of a block; NaN for a row without one; it stays behind the row before it.
    """

    def __init__(self, inner: FileRows, seconds: Callable[[pa.Table], NDArray[np.float64]]) -> None:
        self.columns = inner.columns
        self._inner, self._seconds = inner, seconds

    def blocks(self, first: int) -> Iterator[pa.Table]:
        with tempfile.NamedTemporaryFile(suffix=".arrow") as file:
            order = self._spool(Path(file.name))
            if not len(order):
                return
            with pa.memory_map(file.name) as memory:
                table = pa.ipc.open_file(memory).read_all()
                for begin in range(first, len(order), _BLOCK_ROWS):
                    yield table.take(pa.array(order[begin : begin + _BLOCK_ROWS]))

    def _spool(self, path: Path) -> NDArray[np.int64]:
        times: list[NDArray[np.float64]] = []
        writer: pa.ipc.RecordBatchFileWriter | None = None
        for block in self._inner.blocks(0):
            writer = writer or pa.ipc.new_file(str(path), block.schema)
            writer.write_table(block)
            times.append(self._seconds(block))
        if writer is None:
            return np.empty(0, np.int64)
        writer.close()
        return np.argsort(_filled(np.concatenate(times)), kind="stable")


def _filled(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every missing time replaced by the one before it (minus infinity at the beginning)."""
    last = np.maximum.accumulate(np.where(np.isnan(times), -1, np.arange(len(times))))
    return np.where(last < 0, -np.inf, times[np.maximum(last, 0)])
