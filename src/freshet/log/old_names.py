"""The names of earlier versions. Only this file knows them.

Until format 3 a name told what a stream or reader was for. An operator had a reader for each path on which it stood:
``q.filter_1@2`` on the second one; a join was ``q.join.left`` and ``q.join.right``. What an operator remembered was
``q.panes.state``. Work that queries shared was a hidden query ``__shared_1f`` with the readers ``__shared_1f.1`` and
so on.
"""

from __future__ import annotations

from typing import Final

from freshet.log.kinds import ReaderKind, StreamKind

_SHARED: Final = "__shared_"
_SIDES: Final = ("left", "right")


def stream_kind(name: str, has_clock: bool = False) -> StreamKind:
    """The kind of a stream, from its name.

    Args:
        name: Its name.
        has_clock: Whether it is known what its watermarks are about, as for declared streams since format 2.

    >>> [stream_kind(name) for name in ("q.panes.state_2", "q.project@1", "__shared_1f", "table:hosts", "q")]
    ['state', 'queue', 'queue', 'versions', 'output']
    """
    if name.startswith("table:"):
        return "versions"
    if "." in name:
        last = name.rpartition(".")[2]
        return "state" if last == "state" or last.startswith("state_") else "queue"
    if is_shared(name):
        return "queue"
    return "stream" if has_clock else "output"


def reader_kind(name: str, stream: str) -> tuple[ReaderKind, str]:
    """The kind of a reader, and its query, from its name and its stream's.

    >>> reader_kind("q.filter_1", "packets"), reader_kind("q/jsonl", "q"), reader_kind("table:hosts", "table:hosts")
    (('operator', 'q'), ('sink', 'q'), ('versions', ''))
    """
    if "/" in name:
        return "sink", name.partition("/")[0]
    kind = stream_kind(stream)
    owner = name.partition(".")[0]
    if kind == "versions":
        return "versions", ""
    return ("state", owner) if kind == "state" else ("operator", owner)


def is_shared(name: str) -> bool:
    """Whether it is the name of a hidden query, whose output is the stream of the same name."""
    return name.startswith(_SHARED)


def shared_reader(work: str, place: int) -> str:
    """The reader of an operator of a hidden query, by its place there, from 1 on."""
    return f"{work}.{place}"


def side(join: str, port: int) -> str:
    """A join, as it was called on the paths that came in at a port."""
    return f"{join}.{_SIDES[port]}"


def path_endings(paths: int) -> list[str]:
    """What the names of readers ended in, by the path on which they stood.

    >>> path_endings(1), path_endings(2)
    ([''], ['@1', '@2'])
    """
    return [""] if paths == 1 else [f"@{number}" for number in range(1, paths + 1)]
