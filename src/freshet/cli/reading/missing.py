"""``freshet read --missing``: what the answers of a query lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from freshet.model import Missing


def missing_table(entries: Sequence[Missing]) -> pa.Table:
    """Entries of the ledger as a table, a row each.

    >>> from freshet.model import Missing
    >>> entry = Missing("q", "q.filter_1", "s", "thinned", 0, 100, 48, 0.5, "hash 1", "by hand", 0, 2_000_000)
    >>> missing_table([entry]).select(["kind", "stream", "first", "end", "rows", "kept"]).to_pylist()
    [{'kind': 'thinned', 'stream': 's', 'first': 0, 'end': 100, 'rows': 48, 'kept': 0.5}]
    """
    import pyarrow as pa

    moment = pa.timestamp("us", "UTC")
    schema = pa.schema([
        ("kind", pa.string()), ("stream", pa.string()), ("first", pa.int64()), ("end", pa.int64()),
        ("rows", pa.int64()), ("kept", pa.float64()), ("rule", pa.string()), ("reason", pa.string()),
        ("edge", pa.string()), ("since", moment), ("until", moment),
    ])  # fmt: skip
    rows = [
        (one.kind, one.stream, one.first, one.end, one.rows,
         None if one.ratio is None else round(one.ratio, 4), one.rule, one.reason, one.edge, one.since, one.time)
        for one in entries
    ]  # fmt: skip
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(columns, schema=schema) if rows else schema.empty_table()
