"""The elements of a mirror: from a list, a file or the output of a query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from freshet.log import Lagged
from freshet.log.readable import Readable
from freshet.model import FreshetError, UserError, parse_duration
from freshet.sources.files import open_rows
from freshet.sources.json_rows import JsonRows
from freshet.sources.mirror.options import ElementsFrom, ListedElement, usable_number

_MORE: Final = ("worth", "rate", "least_freshness", "greatest_age")
"""Columns that say more of an element."""
FileStamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class NamedElement:
    """An element, what its freshness is worth, its assumed change rate, and its floors, if they were given."""

    name: str
    worth: float = 1.0
    rate: float | None = None
    least_freshness: float = 0.0
    greatest_age: float | None = None


@dataclass(frozen=True, slots=True)
class ElementNews:
    """What is new: elements with their present worth, names that are gone, and rows that name no element."""

    present: tuple[NamedElement, ...] = ()
    gone: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    """The text of each row, and why it names no element."""


class ListedElements:
    """Elements from the application file; they never change.

    >>> [each.name for each in ListedElements(["a", ListedElement(element="b", worth=2)]).news().present]
    ['a', 'b']
    """

    def __init__(self, listed: Iterable[str | ListedElement]) -> None:
        self._elements = [
            NamedElement(each)
            if isinstance(each, str)
            else NamedElement(each.element, each.worth, each.rate, each.least_freshness, each.greatest_age)
            for each in listed
        ]
        names = [each.name for each in self._elements]
        twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise UserError(f"elements: {twice} appears twice")
        if not names:
            raise UserError("elements: there is none")
        self._told = False

    def given(self) -> list[NamedElement]:
        """All elements."""
        return self._elements

    def news(self) -> ElementNews:
        """All elements the first time, then nothing."""
        told, self._told = self._told, True
        return ElementNews() if told else ElementNews(tuple(self._elements))


class FileElements:
    """Elements from a file, which is read again when it has changed and has then stayed the same from one look to the
    next: half of a file that somebody writes must not take elements away. An element that is not in it any more is
    gone."""

    def __init__(self, path: Path, column: str) -> None:
        self._path, self._column = path, column
        self._seen: FileStamp | None = None
        self._read: FileStamp | None = None
        self._known: set[str] = set()

    def news(self) -> ElementNews:
        """What has changed since the last look; a file that cannot be read changes nothing, but says why."""
        before, self._seen = self._seen, _stamp(self._path)
        first = self._read is None
        if self._seen in (None, self._read) or not (first or self._seen == before):
            return ElementNews()
        try:
            elements, refused = self.read()
        except (FreshetError, OSError, ValueError) as error:
            if first:
                raise
            elements, refused = None, [(str(self._path), " ".join(str(error).split()))]
        self._read = self._seen
        if elements is None:
            return ElementNews(refused=tuple(refused))
        known, self._known = self._known, {each.name for each in elements}
        return ElementNews(tuple(elements), tuple(known - self._known), tuple(refused))

    def given(self) -> list[NamedElement]:
        """The elements of the file."""
        return self.read()[0]

    def read(self) -> tuple[list[NamedElement], list[tuple[str, str]]]:
        """The elements of the file, and rows that name none.

        Raises:
            UserError: It cannot be read, or has no such column.
        """
        return _read(_file_rows(self._path, self._column), self._column)


class QueryElements:
    """Elements from the output of a query: each row adds an element or changes its worth."""

    def __init__(self, query: str, column: str) -> None:
        self._query, self._column = query, column
        self._log: Readable | None = None
        self.next = 0
        """Offset of the first row that was not read."""
        self.missed = 0
        """Rows that retention removed before they were read."""

    def read_from(self, log: Readable) -> None:
        """Says where the output is."""
        self._log = log

    def news(self) -> ElementNews:
        """The elements of the rows that have come since the last look."""
        if self._log is None or (end := self._end()) <= self.next:
            return ElementNews()
        try:
            rows = self._log.read(self._query, self.next, end).to_pylist()
        except Lagged as lagged:
            self.missed += lagged.oldest - self.next
            self.next = lagged.oldest
            return ElementNews()
        self.next = end
        elements, refused = _read(rows, self._column)
        return ElementNews(tuple(elements), refused=tuple(refused))

    def _end(self) -> int:
        assert self._log is not None
        try:
            return self._log.end(self._query)
        except FreshetError:  # it is declared when its query starts
            return 0


ElementSource = ListedElements | FileElements | QueryElements


def element_source(declared: list[str | ListedElement] | ElementsFrom) -> ElementSource:
    """Where elements come from, by the options."""
    if not isinstance(declared, ElementsFrom):
        return ListedElements(declared)
    if declared.file is not None:
        return FileElements(declared.file.expanduser(), declared.column)
    return QueryElements(str(declared.query), declared.column)


def _read(rows: Iterable[Mapping[str, Any]], column: str) -> tuple[list[NamedElement], list[tuple[str, str]]]:
    """The elements of rows, the last row of each, and rows that name none."""
    elements, refused = dict[str, NamedElement](), list[tuple[str, str]]()
    for row in rows:
        name = row.get(column)
        try:
            if name is None or name == "":
                raise UserError(f"column {column}: there is no element")
            elements[str(name)] = _named(str(name), row)
        except UserError as error:
            refused.append((str(name), str(error)))
    return list(elements.values()), refused


def _stamp(path: Path) -> FileStamp | None:
    """What differs after a file was written; None: it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _named(name: str, row: Mapping[str, Any]) -> NamedElement:
    worth, rate, least = (_number(row.get(key), key) for key in ("worth", "rate", "least_freshness"))
    if least is not None and least >= 1.0:
        raise UserError(f"column least_freshness: {least:g} is not below 1")
    age = row.get("greatest_age")
    seconds = None if age is None or age == "" else parse_duration(age if isinstance(age, str) else float(age))
    return NamedElement(name, 1.0 if worth is None else worth, rate or None, least or 0.0, seconds or None)


def _number(value: Any, name: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    try:
        return usable_number(number)
    except ValueError as error:
        raise UserError(f"column {name}: {value!r} {error}") from None


def _file_rows(path: Path, column: str) -> Iterator[Mapping[str, Any]]:
    if path.suffix.lower() in (".json", ".jsonl", ".ndjson"):
        yield from _json_rows(path, column)
        return
    rows = open_rows(path)
    if column not in rows.columns:
        raise UserError(f"file {path} has no column {column}: it has {', '.join(rows.columns)}")
    for block in rows.blocks(0):
        yield from block.to_pylist()


def _json_rows(path: Path, column: str) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        raise UserError(f"file {path} does not exist")
    for block in JsonRows(path, {name: name for name in (column, *_MORE)}).blocks(0):
        yield from (row for row in block if isinstance(row, Mapping))
