"""From what an element holds to rows: JSON, CSV or text to columns."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from freshet.log import Malformed
from freshet.log.intake.shown import clean
from freshet.sources.mirror.polling.answer import PollAnswer

ContentFormat = Literal["json", "csv", "text"]
ContentRow = dict[str, Any] | Malformed
_SHOWN = 400


class Content:
    r"""Reads the rows of an element.

    An object of JSON is a row, and an array of objects a row for each. A line of CSV is a row; its first line names the
    columns. Text is one row with one column. What cannot be read so becomes a dead letter.

    Args:
        form: The format; None: by the media type, and text if that is unknown.
        columns: For each column that is wanted, its place: a key, or keys with points between them.
        text: The column for text; None: there is none.
        exact: Whether numbers keep all their digits, for columns of decimals.

    >>> content = Content("json", {"price": "quote.price", "name": "name"})
    >>> content.rows(PollAnswer(b'{"name": "x", "quote": {"price": 1.5}, "more": 1}'))
    [{'price': 1.5, 'name': 'x'}]
    >>> Content("csv", {"k": "key"}).rows(PollAnswer(b"key,v\n1,2\n3,4\n"))
    [{'k': '1'}, {'k': '3'}]
    >>> content.rows(PollAnswer(b"{"))[0].reason
    'not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'
    """

    def __init__(
        self, form: ContentFormat | None, columns: Mapping[str, str], text: str | None = None, exact: bool = False
    ) -> None:
        self._form, self._text = form, text
        self._number = Decimal if exact else None
        self._places = {name: tuple(place.split(".")) for name, place in columns.items()}

    def rows(self, answer: PollAnswer) -> list[ContentRow]:
        """The rows of an answer that has content."""
        if isinstance(answer.content, list):
            return [{name: _at(row, place) for name, place in self._places.items()} for row in answer.content]
        body = answer.content or b""
        form = self._form or _form_of(answer.media)
        try:
            text = body.decode("utf-8-sig")
            return {"json": self._json, "csv": self._csv, "text": self._plain}[form](text)
        except (ValueError, ArithmeticError, RecursionError, csv.Error) as error:
            reason = f"not {'JSON' if form == 'json' else form.upper() if form == 'csv' else 'text'}: {error}"
            return [Malformed(body[:_SHOWN].decode(errors="backslashreplace"), reason)]

    def _json(self, text: str) -> list[ContentRow]:
        whole = json.loads(text, parse_float=self._number)
        return [self._object(item) for item in (whole if isinstance(whole, list) else [whole])]

    def _object(self, item: Any) -> ContentRow:
        if not isinstance(item, dict):
            return Malformed(json.dumps(item, default=str)[:_SHOWN], "not a JSON object")
        return {name: _at(item, place) for name, place in self._places.items()}

    def _csv(self, text: str) -> list[ContentRow]:
        lines = csv.reader(io.StringIO(text), strict=True)
        header = next(lines, [])
        missing = [".".join(place) for place in self._places.values() if ".".join(place) not in header]
        if missing:
            raise ValueError(f"it has no column {', '.join(missing)}")
        return [self._line(header, fields) for fields in lines if fields]

    def _line(self, header: Sequence[str], fields: Sequence[str]) -> ContentRow:
        if len(fields) != len(header):
            return Malformed(",".join(fields)[:_SHOWN], f"{len(fields)} fields, the header has {len(header)}")
        found = dict(zip(header, fields, strict=True))
        return {name: found[".".join(place)] or None for name, place in self._places.items()}

    def _plain(self, text: str) -> list[ContentRow]:
        return [{} if self._text is None else {self._text: text}]


def fingerprint(rows: Sequence[ContentRow]) -> str:
    """Tells whether rows are the same as before.

    >>> fingerprint([{"a": 1}]) == fingerprint([{"a": 1}]), fingerprint([{"a": 1}]) == fingerprint([{"a": 2}])
    (True, False)
    """
    texts = [["malformed", str(row)] if isinstance(row, Malformed) else row for row in rows]
    encoded = json.dumps(texts, sort_keys=True, default=str).encode(errors="backslashreplace")
    return hashlib.blake2b(encoded, digest_size=12).hexdigest()


def shown_reason(error: object) -> str:
    """An error in one clean line."""
    return clean(" ".join(str(error).split()) or type(error).__name__)


def _form_of(media: str) -> ContentFormat:
    if media.endswith(("/json", "+json")):
        return "json"
    return "csv" if media == "text/csv" else "text"


def _at(item: Any, place: Sequence[str]) -> Any:
    """What is at a place; None if nothing is."""
    for key in place:
        if isinstance(item, Mapping):
            item = item.get(key)
        elif isinstance(item, list) and key.isdecimal() and int(key) < len(item):
            item = item[int(key)]
        else:
            return None
    return item
