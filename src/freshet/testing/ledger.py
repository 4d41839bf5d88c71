"""Log minus ledger: the tuples that the answers of a query are made of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from freshet.kernels.keeping import kept_rows
from freshet.log import Log, LogReader
from freshet.model import Train


def remaining(log: Log | LogReader, edge: str, stream: str) -> pa.Table:
    """The tuples of a stream, with their arrivals, without those that the ledger calls missing at an edge.

    A batch over them must give the answers of the query. The stream must be kept whole.

    Args:
        log: The log.
        edge: Name of the edge: the operator that reads, as ``explain`` shows it, and the port if it has several.
        stream: What it reads.

    >>> from freshet import App
    >>> from freshet.testing import LocalRun
    >>> app = App("shop")
    >>> app.stream("orders", "id int")
    >>> app.query("some", "SELECT id FROM orders", overload=["defer", "thin"])
    >>> with LocalRun(app) as run:
    ...     run.thin("some", 0.5)
    ...     receipt = run.push("orders", [{"id": n} for n in range(1000)])
    ...     done = run.drain()
    ...     [entry] = run.missing("some")
    ...     run.rows("some") == remaining(run.log, entry.edge, "orders").select(["id"]).to_pylist()
    True
    """
    rows, kept = log.read(stream, 0, log.end(stream)), np.ones(log.end(stream), np.bool_)
    for entry in log.ledger():
        if (entry.edge, entry.stream) == (edge, stream) and entry.kind == "past-mark":
            kept[list(log.past(stream, entry.first, entry.end))] = False
        elif (entry.edge, entry.stream) == (edge, stream) and entry.kind == "let-go":
            kept[list(log.let_go(stream, entry.first, entry.end, entry.rule or ""))] = False
        elif (entry.edge, entry.stream) == (edge, stream):
            kept[entry.first : entry.end] = False
            if entry.keep is not None:
                part = rows.slice(entry.first, entry.end - entry.first)
                places = pa.array(np.arange(entry.first, entry.end))
                train = Train(stream, entry.first, entry.end, keep=entry.keep)
                left = kept_rows(part.append_column("__place", places), train).table
                kept[left["__place"].to_numpy()] = True
    return rows.filter(pa.array(kept))
