"""Names of streams that nobody declares: states of folds and versions of tables."""

from __future__ import annotations

from typing import Final

CONTENT: Final = "content"
"""Column of a version in the log: its rows as an Arrow IPC stream."""


def state_stream(fold: str, number: int) -> str:
    """Name of a state stream of a fold, counted from 0.

    >>> state_stream("q.panes", 0), state_stream("q.panes", 1)
    ('q.panes.state', 'q.panes.state_2')
    """
    return f"{fold}.state" if number == 0 else f"{fold}.state_{number + 1}"


def version_stream(table: str) -> str:
    """Name of the stream that holds the versions of a table, a tuple each; no stream or query can be called so.

    >>> version_stream("hosts")
    'table:hosts'
    """
    return f"table:{table}"
