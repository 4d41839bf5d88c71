"""The part of ``freshet explain`` on what may happen to a query under overload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from freshet.model import Query
from freshet.sql.value import value_over

if TYPE_CHECKING:
    import pyarrow as pa


def explain_overload(query: Query, schemas: Mapping[str, pa.Schema]) -> Iterator[str]:
    """Where and how a query may be thinned; nothing if it may not."""
    if "thin" not in query.promises.overload:
        return
    value = query.promises.value
    rules = []
    for stream in query.graph.streams:
        worth = None if value is None else value_over(value, schemas[stream])
        rules.append(f"{stream} by {'a hash of the offset' if worth is None else f'{worth}, the least first'}")
    yield f"under overload it may be thinned at its own edges: {'; '.join(rules)} (it shares no operators)"
