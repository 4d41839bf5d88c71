"""Names of streams that nobody declares: states of folds and versions of tables."""

from __future__ import annotations

from typing import Final

CONTENT: Final = "content"
"""Column of a version in the log: its rows as an Arrow IPC stream."""


KEY_HASH: Final = 1
"""Version of the hash that says to which part of a state a row belongs. Names of parts carry it: rows that another
version has divided must be divided anew."""
MOST_PARTS: Final = 64
"""Maximum number of parts of a state."""


def state_stream(fold: str, number: int, part: int = 0, parts: int = 1) -> str:
    """Name of a state stream of a fold; streams and parts are counted from 0.

    >>> state_stream("q.panes", 0), state_stream("q.panes", 1)
    ('q.panes.state', 'q.panes.state_2')
    >>> state_stream("q.panes", 0, 1, 2)
    'q.panes.state_1_h1_part_2_of_2'
    """
    if parts > 1:
        return f"{fold}.state_{number + 1}_h{KEY_HASH}_part_{part + 1}_of_{parts}"
    return f"{fold}.state" if number == 0 else f"{fold}.state_{number + 1}"


def version_stream(table: str) -> str:
    """Name of the stream that holds the versions of a table, a tuple each; no stream or query can be called so.

    >>> version_stream("hosts")
    'table:hosts'
    """
    return f"table:{table}"
