"""Rows that could not be split into columns."""

from __future__ import annotations


class Malformed(str):
    """The text of a row that could not be split into columns, and why; it becomes a dead letter.

    >>> Malformed("1,2,3", "3 fields, the header has 2").reason
    '3 fields, the header has 2'
    """

    reason: str

    def __new__(cls, text: str, reason: str) -> Malformed:
        row = super().__new__(cls, text)
        row.reason = reason
        return row
