"""What streams and readers of a log are for."""

from __future__ import annotations

from typing import Literal

StreamKind = Literal["stream", "output", "queue", "state", "versions"]
"""What a stream holds.

- ``stream``: tuples that a source brings.
- ``output``: answers of a query.
- ``queue``: what waits between two operators.
- ``state``: what an operator remembers.
- ``versions``: contents of a table.
"""
ReaderKind = Literal["operator", "state", "sink", "versions", "window"]
"""Who reads: an operator of a query, a sink of its output, or the keeper of a state, of the versions of a table, or of
what later instances of a periodic query will see. What is held for windows does not wait."""
