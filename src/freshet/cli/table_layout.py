"""Tables and lines that fit the width of a screen: what matters least is dropped first, and nothing is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

GAP: Final = "  "
"""Between columns."""
NAME: Final = 8
"""The first column is not cut below this width as long as another column can be dropped."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table.

    Args:
        title: Its head.
        rank: As the screen gets narrower, the column with the greatest rank is dropped first.
        least: Its minimum width, so that it does not jump as its cells change.
        left: Whether its cells are aligned to the left.
    """

    title: str
    rank: int
    least: int = 7
    left: bool = False


def cut(text: str, width: int) -> str:
    """Cuts a text to a maximum width; a text that is cut ends with an ellipsis.

    >>> cut("suspicious", 8), cut("large", 8)
    ('suspici…', 'large')
    """
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + "…" if width > 0 else ""


def line_of(parts: Iterable[Text], width: int, gap: str = "   ") -> Text:
    """Puts as many parts as fit beside each other, from the first on; the first is cut if it must be.

    >>> line_of([Text("monitor"), Text("running"), Text("7 s")], 20).plain
    'monitor   running'
    """
    line = Text(no_wrap=True)
    for part in parts:
        if line and line.cell_len + len(gap) + part.cell_len > width:
            break
        line.append_text(Text(gap) + part if line else part)
    line.truncate(width, overflow="ellipsis")
    return line


def choose(columns: Sequence[TableColumn], cells: Sequence[Sequence[str]], width: int) -> tuple[list[int], list[int]]:
    """Chooses the columns that fit a width, and the width of each. The first is always there, and is cut if it must be.

    Args:
        columns: All columns, from left to right.
        cells: The rows.
        width: Of the screen.

    >>> columns = [TableColumn("query", 0), TableColumn("in", 2, 5), TableColumn("age", 1, 6)]
    >>> choose(columns, [["suspicious", "12", "1.5 s"]], 30)
    ([0, 1, 2], [10, 5, 6])
    >>> choose(columns, [["suspicious", "12", "1.5 s"]], 17)
    ([0, 2], [9, 6])
    """
    wide = [max([column.least, cell_len(column.title), *(cell_len(row[place]) for row in cells)])
            for place, column in enumerate(columns)]  # fmt: skip
    name = max([cell_len(columns[0].title), *(cell_len(row[0]) for row in cells)])
    room = width - min(name, max(NAME, width // 5))
    chosen = [0]
    for place in sorted(range(1, len(columns)), key=lambda place: columns[place].rank):
        room -= wide[place] + len(GAP)
        if room < 0:
            break
        chosen.append(place)
    chosen.sort()
    others = sum(wide[place] + len(GAP) for place in chosen[1:])
    return chosen, [max(1, min(name, width - others)), *(wide[place] for place in chosen[1:])]


def row_of(columns: Sequence[TableColumn], cells: Sequence[str], widths: Sequence[int]) -> str:
    """One row of the chosen columns.

    >>> row_of([TableColumn("query", 0, left=True), TableColumn("in", 1)], ["suspicious", "12"], [8, 4])
    'suspici…    12'
    """
    fitted = (
        _pad(cut(cell, width), width, column.left) for column, cell, width in zip(columns, cells, widths, strict=True)
    )
    return GAP.join(fitted)


def _pad(text: str, width: int, left: bool) -> str:
    space = " " * (width - cell_len(text))
    return text + space if left else space + text
