"""Errors that point at a place in the text of a query."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from freshet.model.errors import UserError

TextPlace = tuple[int, int]

_SHOWN: Final = 160
"""Maximum number of characters of a line that are shown."""
_BEFORE: Final = 40
"""Number of them before the place, if the line is longer."""


class SqlError(UserError):
    """The text of a query is wrong; says where, what, and what would be right.

    The first line makes sense alone. The lines after it show the line of the text with the place marked.

    Args:
        problem: What is wrong and what would be right, in one sentence.
        place: First and last character of the place in the text, if it is known.
        text: The text of the query.
        query: Name of the query.

    >>> print(SqlError("unknown column prize; did you mean price?", (7, 11), "SELECT prize FROM s", "q"))
    query q, line 1: unknown column prize; did you mean price?
      SELECT prize FROM s
             ^^^^^
    """

    def __init__(self, problem: str, place: TextPlace | None = None, text: str = "", query: str = "") -> None:
        self.problem = problem
        self.place = place
        self.text = text
        self.query = query
        super().__init__(self._message())

    @property
    def line(self) -> int | None:
        """Number of the line, from 1."""
        return None if self.place is None else self.text.count("\n", 0, self.place[0]) + 1

    def within(self, query: str, text: str) -> SqlError:
        """The same error with the query and the text in which it occurred."""
        return SqlError(self.problem, self.place, text, query)

    def _message(self) -> str:
        name = f"query {self.query}" if self.query else "query"
        if self.place is None or not self.text:
            return f"{name}: {self.problem}"
        start, end = self.place
        first = self.text.rfind("\n", 0, start) + 1
        line = self.text[first:].split("\n", 1)[0]
        shown, at, past = _cut(line, start - first, min(end + 1 - first, len(line)))
        # Tabs stay tabs under the text, so that the mark is where the eye expects it.
        indent = "".join("\t" if char == "\t" else " " for char in shown[:at])
        return f"{name}, line {self.line}: {self.problem}\n  {shown}\n  {indent}{'^' * max(1, past - at)}"


def _cut(line: str, start: int, end: int) -> tuple[str, int, int]:
    """The part of a long line that is shown, with the place in it.

    >>> _cut("SELECT prize FROM s", 7, 12)
    ('SELECT prize FROM s', 7, 12)
    >>> shown, start, end = _cut("a + " * 50 + "prize" + " + b" * 50, 200, 205)
    >>> len(shown), shown[0], shown[start:end], shown[-1]
    (162, '…', 'prize', '…')
    """
    left = max(0, min(start - _BEFORE, len(line) - _SHOWN))
    right = min(len(line), left + _SHOWN)
    before = "…" if left else ""
    shown = before + line[left:right] + ("…" if right < len(line) else "")
    moved = len(before) - left
    return shown, start + moved, min(end, right) + moved


def place_of(node: exp.Expr | None) -> TextPlace | None:
    """First and last character of what a node was parsed from, as far as its parts know."""
    if node is None:
        return None
    places = [part.meta for part in node.walk() if "start" in part.meta]
    if not places:
        return None
    return min(meta["start"] for meta in places), max(meta["end"] for meta in places)


def fail(problem: str, node: exp.Expr | None = None) -> SqlError:
    """An error at a node; the caller raises it."""
    return SqlError(problem, place_of(node))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint at the nearest known word, or nothing.

    >>> did_you_mean("prize", ["price", "size"])
    '; did you mean price?'
    >>> did_you_mean("zzz", ["price"]), did_you_mean("ss", ["s", "t"])
    ('', '; did you mean s?')
    """
    # One letter too many in a name of one letter leaves two thirds of it.
    cutoff = 0.7 if len(word) > 2 else 0.6
    spelling = {name.lower(): name for name in known}
    nearest = difflib.get_close_matches(word.lower(), list(spelling), n=1, cutoff=cutoff)
    return f"; did you mean {spelling[nearest[0]]}?" if nearest else ""
