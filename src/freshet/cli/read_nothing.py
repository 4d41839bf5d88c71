"""Why there is nothing to read: what is known of it from the log and the application file, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freshet.log import LogReader, ReaderState
    from freshet.model import Panes, Query


def why_nothing(reader: LogReader, name: str, app: Path) -> str:
    """One sentence on a stream or an output that holds no tuples."""
    end = reader.end(name)
    if end:
        return f"{name} holds no rows now: retention has let go all {end:,} that it had"
    query = _query(app, name)
    readers = [] if query is None else _readers(reader, query)
    if query is None or not readers:
        return f"{name} has no rows yet"
    if any(each.quarantined for each in readers):
        return f"{name} has no rows: it is quarantined, and the report says why"
    closing = _next_window(reader, query, readers)
    waiting = sum(reader.end(each.stream) - each.next for each in readers)
    if closing is None and waiting:
        of_it = "1 tuple of its input waits" if waiting == 1 else f"{waiting:,} tuples of its input wait"
        return f"{name} has no rows yet; {of_it} to be processed"
    return f"{name} has no rows yet" if closing is None else f"{name} has no rows yet; {closing}"


def _query(app: Path, name: str) -> Query | None:
    """The query as the file declares it; None where there is no file, or where the file is wrong."""
    from freshet.app import App
    from freshet.model import FreshetError

    if app.is_dir():
        return None
    try:
        return App.from_toml(app).checked().queries.get(name)
    except FreshetError:
        return None


def _readers(reader: LogReader, query: Query) -> list[ReaderState]:
    """Where a query has got to in what it reads; none, where the log does not know the query as it is declared now."""
    from freshet.app.forms import inputs_of
    from freshet.app.restart import Known, fingerprint

    record, readers = reader.queries().get(query.name), reader.readers()
    if record is None or record.fingerprint != fingerprint(query):
        return []
    mine = [readers.get(each.reader) for each in inputs_of(Known.of(record).form) if not each.is_queue]
    there = [each for each in mine if each is not None and not each.parked]
    return there if len(there) == len(mine) else []


def _next_window(reader: LogReader, query: Query, readers: Sequence[ReaderState]) -> str | None:
    """When the next window of an aggregate closes that remembers something; None where that is not known."""
    panes = _panes(query)
    if panes is None:
        return None
    from freshet.model import state_stream
    from freshet.model.operators import earliest

    state = state_stream(panes.name, 0)
    held = reader.readers().get(state)
    time = earliest([reader.watermark(each.stream) for each in readers])
    closed = panes.boundary(time)
    # What is closed already, and not yet computed, comes first.
    if held is None or held.next >= reader.end(state) or closed != panes.boundary(reader.watermark(state)):
        return None
    when, now = time_text(None if closed is None else closed + panes.slide), time_text(time)
    if when is None or now is None:
        return None
    streams = ", ".join(dict.fromkeys(each.stream for each in readers))
    return f"next window closes at {when}, and {streams} is complete up to {now}"


def _panes(query: Query) -> Panes | None:
    """The aggregate of a query whose rows come when windows close; None where it has another fold, too."""
    from freshet.model import Panes

    folds = [operator for operator in query.graph.operators.values() if operator.remembers]
    only = folds[0] if len(folds) == 1 else None
    return only if isinstance(only, Panes) and only.emit == "closed" else None


def time_text(time: int | None) -> str | None:
    """A time for people; None for those that no calendar has, such as the end of time.

    >>> time_text(1_700_000_000_000_000), time_text(1_700_000_000_250_000), time_text(2**62)
    ('2023-11-14 22:13:20 UTC', '2023-11-14 22:13:20.250000 UTC', None)
    """
    if time is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    except OverflowError:
        return None
    return f"{moment.replace(tzinfo=None).isoformat(sep=' ')} UTC"
