"""How a join by ordered keys buffers what it must remember (WU §3.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, get_args

from freshet.model.errors import UserError
from freshet.model.key_joins import key_joins
from freshet.model.operators import Join
from freshet.model.query import Query

JoinBuffer = Literal["auto", "ram", "sorted", "log", "hybrid"]
"""Where the tuples of a join wait for their partners, and when their rows come.

- ``ram``: all tuples are remembered as they come, and a row comes with the last of its tuples.
- ``sorted``: as with ``ram``, but rows come in the order of the key, as the marks of all inputs pass it.
- ``log``: a leading input stays in its own log: its cursor rests until the others have come as far.
- ``hybrid``: both.
- ``auto``: ``log`` if the join has a bound on its memory, or a lead lasts long enough to be worth it, as far as the
  latency that the query tolerates allows; else ``ram``.
"""
JOIN_BUFFERS: Final[tuple[str, ...]] = get_args(JoinBuffer)


def is_sorted(buffer: JoinBuffer) -> bool:
    """Whether rows come in the order of the key.

    >>> is_sorted("hybrid"), is_sorted("log")
    (True, False)
    """
    return buffer in ("sorted", "hybrid")


def may_rest(buffer: JoinBuffer) -> bool:
    """Whether the cursor of a leading input may rest.

    >>> may_rest("auto"), may_rest("sorted")
    (True, False)
    """
    return buffer in ("auto", "log", "hybrid")


def with_buffer(query: Query, buffer: JoinBuffer) -> Query:
    """A query whose joins by ordered keys buffer in this way.

    Raises:
        UserError: It has no such join.
    """
    joins = key_joins(query.graph)
    if not joins:
        if buffer != "auto":
            raise UserError("join_buffer is for joins by ordered keys, and this query has none: leave it out")
        return query
    operators = dict(query.graph.operators)
    for name in joins if is_sorted(buffer) else ():
        join = operators[name]
        assert isinstance(join, Join)
        operators[name] = replace(join, sorted=True)
    return replace(query, graph=replace(query.graph, operators=operators), join_buffer=buffer)
