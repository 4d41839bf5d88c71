"""Rows on standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final, Literal

import pyarrow as pa

from freshet.sinks.rows import json_lines
from freshet.sinks.sink import SinkOptions, Token


class ConsoleOptions(SinkOptions):
    """Options of the sink kind ``console``.

    Args:
        format: ``lines``: the query's name and the row as JSON; ``table``: columns of equal width under a header.
    """

    format: Literal["lines", "table"] = "lines"


class ConsoleSink:
    """Prints rows, at least once each.

    >>> ConsoleSink(ConsoleOptions()).write(pa.table({"v": [1]}), Token("big", 7, 8))
    big 7 {"v": 1}
    {}
    """

    def __init__(self, options: ConsoleOptions) -> None:
        self.arrival = options.arrival
        self._format = options.format
        self._columns: list[str] = []

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        lines = self._lines(table, token) if self._format == "lines" else self._table(table, token)
        # One call, so that the rows of other sinks do not come in between.
        sys.stdout.write("".join(line + "\n" for line in lines))
        sys.stdout.flush()
        return {}

    def close(self) -> None:
        """Leaves standard output open."""

    def _lines(self, table: pa.Table, token: Token) -> list[str]:
        return [f"{token.stream} {token.first + place} {line}" for place, line in enumerate(json_lines(table))]

    def _table(self, table: pa.Table, token: Token) -> list[str]:
        cells = [_cells(name, table.column(name)) for name in table.column_names]
        widths = [max(12, len(name), *map(len, column)) for name, column in zip(table.column_names, cells, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in zip(*cells, strict=True)]
        if self._columns != table.column_names:
            self._columns = table.column_names
            head = "  ".join(map(str.rjust, self._columns, widths))
            lines = [token.stream, head, "-" * len(head), *lines]
        return lines


def _cells(name: str, column: pa.ChunkedArray) -> list[str]:
    return ["" if value is None else str(value).replace("\n", " ") for value in column.to_pylist()]


KINDS: Final = {"console": (ConsoleOptions, ConsoleSink)}
