"""Says why there is nothing to read, as far as the log and the application file tell it without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freshet.log import LogReader, ReaderState
    from freshet.model import Query


def why_nothing(reader: LogReader, name: str, app: Path) -> str:
    """One sentence on a stream or an output that holds no tuples."""
    end = reader.end(name)
    if end:
        return f"{name} holds no rows now: retention has dropped all {end:,} that it had"
    query = _as_it_runs(reader, _query(app, name))
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
    """The query as the file declares it; None if there is no file, or if the file is wrong."""
    from freshet.app import App
    from freshet.model import FreshetError

    if app.is_dir():
        return None
    try:
        return App.from_toml(app).checked().queries.get(name)
    except FreshetError:
        return None


def _as_it_runs(reader: LogReader, query: Query | None) -> Query | None:
    """The query in its form; None if the log does not know it as it is declared now."""
    from freshet.app.remembered.restart import Known, fingerprint

    record = None if query is None else reader.queries().get(query.name)
    if query is None or record is None or record.fingerprint != fingerprint(query):
        return None
    return replace(query, graph=Known.of(record).form)


def _readers(reader: LogReader, query: Query) -> list[ReaderState]:
    """How far a query has come in what it reads; empty if the query is out."""
    from freshet.app.remembered.forms import inputs_of

    readers = reader.readers()
    mine = [readers.get(each.reader) for each in inputs_of(query.graph) if not each.is_queue]
    there = [each for each in mine if each is not None and not each.parked]
    return there if len(there) == len(mine) else []


def _next_window(reader: LogReader, query: Query, readers: Sequence[ReaderState]) -> str | None:
    """When the next window of the only fold closes, if it holds something; None if that is not known."""
    folds = [operator for operator in query.graph.operators.values() if operator.remembers]
    if len(folds) != 1:
        return None
    from freshet.app.remembered.forms import states_of
    from freshet.model import state_stream
    from freshet.model.operators import earliest

    [fold] = folds
    state, known = state_stream(fold.name, 0), reader.readers()
    held = [name for name in states_of(known, fold.name) if known[name].next < reader.end(name)]
    time = earliest([reader.watermark(each.stream) for each in readers])
    closing = fold.next_close(time)
    # A window that is closed but not yet computed comes first.
    if not held or state not in known or closing != fold.next_close(reader.watermark(state)):
        return None
    when, now = time_text(closing), time_text(time)
    if when is None or now is None:
        return None
    streams = ", ".join(dict.fromkeys(each.stream for each in readers))
    return f"the next window closes at {when}, and {streams} is complete up to {now}"


def time_text(time: int | None) -> str | None:
    """A time for people; None for times that no calendar has, such as the end of time.

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
