"""Rows of files of JSON lines."""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from freshet.log import Malformed
from freshet.model import UserError

_BLOCK_BYTES: Final = 1 << 20
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class JsonRows:
    """Lines of a file, each a JSON object; blank lines are not rows.

    Args:
        path: The file; gzip if its name ends in ``.gz``.
        mapping: For each column of the stream, the key that holds it; other keys are left out.
        exact: Whether numbers keep all their digits, for columns of decimals.
    """

    def __init__(self, path: Path, mapping: Mapping[str, str], exact: bool = False) -> None:
        self._path, self._mapping = path, mapping
        self._decoder = json.JSONDecoder(parse_float=Decimal if exact else None)

    def blocks(self, first: int) -> Iterator[list[dict[str, Any] | str]]:
        """The rows from the row ``first`` on, some at a time."""
        with self._open() as file:
            row = 0
            while lines := file.readlines(_BLOCK_BYTES):
                if not row and lines[0].startswith(_UTF16):
                    raise UserError(f"file {self._path} is UTF-16: write it as UTF-8")
                lines = [line for line in lines if not line.isspace()]
                begin, row = max(first - row, 0), row + len(lines)
                if begin < len(lines):
                    yield [self._row(line) for line in lines[begin:]]

    def _open(self) -> BinaryIO:
        if self._path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(self._path, "rb"))
        return self._path.open("rb")

    def _row(self, line: bytes) -> dict[str, Any] | str:
        try:
            values = self._decoder.decode(line.decode("utf-8-sig").strip())
        except (ValueError, ArithmeticError, RecursionError) as error:
            return Malformed(line.decode(errors="backslashreplace").rstrip("\r\n"), f"not a line of JSON: {error}")
        if not isinstance(values, dict):
            return Malformed(line.decode().rstrip("\r\n"), f"not a JSON object but {type(values).__name__}")
        return {name: values.get(key) for name, key in self._mapping.items()}
