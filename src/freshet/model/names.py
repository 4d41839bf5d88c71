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


def is_state_of(stream: str, fold: str) -> bool:
    """Whether a stream is a state stream of a fold.

    >>> is_state_of("q.panes.state_2", "q.panes"), is_state_of("q.panes.state", "q")
    (True, False)
    """
    return is_state(stream) and stream.rpartition(".")[0] == fold


def is_state(stream: str) -> bool:
    """Whether a stream is a state stream.

    >>> is_state("q.panes.state"), is_state("q.project")
    (True, False)
    """
    kind = stream.rpartition(".")[2]
    return "." in stream and (kind == "state" or kind.startswith("state_"))


def version_stream(table: str) -> str:
    """Name of the stream that holds the versions of a table, a tuple each; no stream or query can be called so.

    >>> version_stream("hosts")
    'table:hosts'
    """
    return f"table:{table}"


def is_version_stream(stream: str) -> bool:
    """Whether a stream holds versions of a table.

    >>> is_version_stream("table:hosts"), is_version_stream("hosts")
    (True, False)
    """
    return stream.startswith("table:")
