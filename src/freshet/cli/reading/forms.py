"""The forms in which ``freshet read`` prints tuples."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class ReadForm(StrEnum):
    """How tuples are printed."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"
    arrow = "arrow"


def print_tables(tables: Iterator[pa.Table], form: ReadForm) -> int:
    """Prints tables as they come; returns how many tuples they had."""
    printed = {
        ReadForm.table: _print_table,
        ReadForm.jsonl: _print_jsonl,
        ReadForm.csv: _print_csv,
        ReadForm.arrow: _print_arrow,
    }[form](tables)
    return sum(printed)


def _print_table(tables: Iterator[pa.Table]) -> Iterator[int]:
    columns: list[str] = []
    for table in tables:
        if table.num_rows:
            sys.stdout.writelines(f"{line}\n" for line in _cells(table, header=table.column_names != columns))
            sys.stdout.flush()
            columns = table.column_names
        yield table.num_rows


def _cells(table: pa.Table, header: bool) -> Iterator[str]:
    columns = [["" if value is None else str(value).replace("\n", " ") for value in column.to_pylist()]
               for column in table.columns]  # fmt: skip
    widths = [max(len(name), 12, *map(len, column)) for name, column in zip(table.column_names, columns, strict=True)]
    if header:
        yield "  ".join(name.ljust(width) for name, width in zip(table.column_names, widths, strict=True)).rstrip()
        yield "  ".join("-" * width for width in widths)
    for row in zip(*columns, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _print_jsonl(tables: Iterator[pa.Table]) -> Iterator[int]:
    from freshet.sinks.rows import json_lines

    for table in tables:
        sys.stdout.writelines(f"{line}\n" for line in json_lines(table))
        sys.stdout.flush()
        yield table.num_rows


def _print_csv(tables: Iterator[pa.Table]) -> Iterator[int]:
    from freshet.sinks.rows import json_values

    writer = csv.writer(sys.stdout, lineterminator="\n")
    for number, table in enumerate(_alike(tables)):
        if number == 0:
            writer.writerow(table.column_names)
        columns = [map(_field, json_values(column)) for column in table.columns]
        writer.writerows(zip(*columns, strict=True))
        sys.stdout.flush()
        yield table.num_rows


def _field(value: Any) -> Any:
    """A JSON value as a CSV field; NULL is empty.

    >>> [_field(value) for value in (None, True, 1.5, "a", [1, None])]
    ['', 'true', 1.5, 'a', '[1, null]']
    """
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | list | dict) else value


def _print_arrow(tables: Iterator[pa.Table]) -> Iterator[int]:
    import pyarrow as pa

    from freshet.model import UserError

    if sys.stdout.isatty():
        raise UserError("an Arrow stream is binary: write it to a file or a program, as in --as arrow > hot.arrows")
    writer = None
    for table in _alike(tables):
        writer = writer or pa.ipc.new_stream(sys.stdout.buffer, table.schema)
        writer.write_table(table)
        sys.stdout.buffer.flush()
        yield table.num_rows
    if writer is not None:
        writer.close()


def _alike(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same tables. They must have the same columns, because these forms name the columns only once."""
    from freshet.model import FreshetError

    first = None
    for table in tables:
        first = first or table.schema
        if table.schema != first:
            raise FreshetError("the columns changed while reading, and this form names them only once: read again")
        yield table
