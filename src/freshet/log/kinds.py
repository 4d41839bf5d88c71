"""What streams and readers of a log are for."""

from __future__ import annotations

from typing import Final, Literal

StreamKind = Literal["stream", "output", "queue", "state", "versions"]
"""What a stream holds.

- ``stream``: tuples that a source brings.
- ``output``: answers of a query.
- ``queue``: what waits between two operators.
- ``state``: what an operator remembers.
- ``versions``: contents of a table.
"""
ReaderKind = Literal["operator", "state", "sink", "versions"]
"""Who reads: an operator of a query, a sink of its output, or whoever keeps a state or the versions of a table."""

_SHARED: Final = "__shared_"
"""Until format 3 the outputs of shared work were called so."""


def named_stream(name: str, has_clock: bool = False) -> StreamKind:
    """The kind of a stream by its name, which told it until format 3.

    Args:
        name: Its name.
        has_clock: Whether it is known what its watermarks are about, as of declared streams since format 2.

    >>> [named_stream(name) for name in ("q.panes.state_2", "q.project@1", "__shared_1f", "table:hosts", "q")]
    ['state', 'queue', 'queue', 'versions', 'output']
    """
    if name.startswith("table:"):
        return "versions"
    if "." in name:
        last = name.rpartition(".")[2]
        return "state" if last == "state" or last.startswith("state_") else "queue"
    if name.startswith(_SHARED):
        return "queue"
    return "stream" if has_clock else "output"


def named_reader(name: str, stream: str) -> tuple[ReaderKind, str]:
    """The kind of a reader, and whose it is, by its name and its stream's, which told both until format 3.

    >>> named_reader("q.filter_1", "packets"), named_reader("q/jsonl", "q"), named_reader("table:hosts", "table:hosts")
    (('operator', 'q'), ('sink', 'q'), ('versions', ''))
    """
    if "/" in name:
        return "sink", name.partition("/")[0]
    kind = named_stream(stream)
    owner = name.partition(".")[0]
    if kind == "versions":
        return "versions", ""
    return ("state", owner) if kind == "state" else ("operator", owner)
