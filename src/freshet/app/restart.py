"""What a restart means for each query: whether it goes on, starts anew, is out or is back.

The log keeps a fingerprint of what decides the answers of a query. Its weight, its sinks and the layout of its text may
change freely; a query whose fingerprint changed starts anew, and its output goes on behind what is there. A query that
is taken out leaves its readers parked, so that it can go on where it was when it is put back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from freshet.app.forms import Move, graph_of, inputs_of, readers_of, stored
from freshet.app.takeover import forget_old, is_out, old_queries
from freshet.log import Log, QueryRecord, ReaderState, Retention
from freshet.log.store.private import write_private
from freshet.model import ARRIVAL, Query, QueryGraph, UserError, schema_text

_OWNER: Final = "application"
"""File of a state folder that says whose it is."""

Change = Literal["new", "unchanged", "changed", "back", "dropped"]


@dataclass(frozen=True, slots=True)
class Known:
    """What the log remembers of a query.

    Args:
        own: The graph of its own operators.
        form: The graph that runs: shared operators may stand for some of its own.
        fresh: Whether it only has its place, and has never run.
    """

    fingerprint: str
    own: QueryGraph
    form: QueryGraph
    fresh: bool = False

    @classmethod
    def of(cls, record: QueryRecord) -> Known:
        """What a record says."""
        own = graph_of(record.state["graph"])
        form = graph_of(record.state["form"]) if "form" in record.state else own
        return cls(record.fingerprint, own, form, bool(record.state.get("fresh")))

    def record(self) -> QueryRecord:
        """It as the log keeps it."""
        form = {"form": stored(self.form)} if self.form != self.own else {}
        fresh = {"fresh": True} if self.fresh else {}
        return QueryRecord(self.fingerprint, {"graph": stored(self.own), **form, **fresh})


def fingerprint(query: Query) -> str:
    """A short text that changes exactly when the query's answers may change."""
    told = json.dumps({"graph": stored(query.graph), "on_error": query.on_error}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def remembered(log: Log) -> dict[str, Known]:
    """The queries that ran before, also those that are out, by name."""
    return {name: Known.of(record) for name, record in log.queries().items()}


def recalled(log: Log, query: str) -> Known | None:
    """What is remembered of one query."""
    record = log.queries().get(query)
    return None if record is None else Known.of(record)


def compare(log: Log, query: Query) -> Change:
    """How a query relates to what ran before."""
    known = recalled(log, query.name)
    if known is None:
        return "changed" if query.name in old_queries(log) else "new"
    if known.fresh:
        return "new"
    if known.fingerprint != fingerprint(query):
        return "changed"
    return "back" if is_parked(log, known) else "unchanged"


def is_parked(log: Log, known: Known) -> bool:
    """Whether a query was taken out: it then has readers of its own, and those of its streams are parked."""
    readers = log.readers()
    firsts = [readers.get(each.reader) for each in inputs_of(known.form) if not each.is_queue]
    return all(reader is not None and reader.parked for reader in firsts)


def out(log: Log) -> dict[str, bool]:
    """The queries that ran before, by name, and whether each was taken out."""
    old = {name: is_out(readers) for name, readers in old_queries(log).items()}
    return old | {name: is_parked(log, known) for name, known in remembered(log).items()}


def make_ready(log: Log, query: Query, change: Change) -> None:
    """Lets a query begin: one that changed without its old cursors, one that was quarantined with another try."""
    known = recalled(log, query.name)
    if change == "changed" or (known is not None and known.fingerprint != fingerprint(query)):
        forget_query(log, query.name)
    elif known is not None:
        for reader in readers_of(log, known.form):
            if not reader.parked and not reader.needed:  # a parked one is started
                log.set_need(reader.name, True)


def remember(log: Log, query: Query, form: QueryGraph, *, fresh: bool = False) -> None:
    """Leaves with the log what a query is and how it runs."""
    log.remember(query.name, Known(fingerprint(query), query.graph, form, fresh).record())


def forget_query(log: Log, query: str) -> None:
    """Removes what is known of a query, its readers and its intermediate queues; its output stays."""
    if query in old_queries(log):
        forget_old(log, query)
        return
    readers = {name: {each.name for each in readers_of(log, known.form)} for name, known in remembered(log).items()}
    move = Move(log)
    for reader in sorted(readers.pop(query).difference(*readers.values())):
        move.drop(reader)
    move.know(query, None)
    move.commit()


def missed(log: Log, before: Mapping[str, ReaderState]) -> int:
    """How many tuples came and went while readers were out: ``before`` are the readers before they were started.

    Where two of them read the same stream, they missed the same tuples.
    """
    gaps: dict[str, int] = {}
    after = log.readers()
    for name, reader in before.items():
        now = after.get(name)
        # Offsets of different streams (a query that shares work now, or does no more) cannot be compared.
        if reader.parked and now is not None and now.stream == reader.stream:
            gaps[reader.stream] = max(gaps.get(reader.stream, 0), now.next - reader.next)
    return sum(gaps.values())


def check_owner(state: Path, application: str) -> None:
    """Refuses a state folder with another application's name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_owner(Path(folder), "shop")
    ...     claim(Path(folder), "market")
    ...     check_owner(Path(folder), "shop")
    Traceback (most recent call last):
    freshet.model.errors.UserError: the state in ... belongs to the application market, and this one is shop: give it...
    """
    owner = _owner(state)
    if owner and owner != application:
        raise UserError(
            f"the state in {state} belongs to the application {owner}, and this one is {application}: give it a state "
            f'folder of its own (state = "{application}-state"), or, if it is the same one, its old name '
            f'(name = "{owner}")'
        )


def claim(state: Path, application: str) -> None:
    """Leaves the application's name in its state folder, when it really runs: a start that failed claims nothing."""
    if not _owner(state):
        write_private(state / _OWNER, application)


def _owner(state: Path) -> str:
    note = state / _OWNER
    return note.read_text(encoding="utf-8", errors="replace") if note.exists() else ""


def check_stream(log: Log, stream: str, schema: pa.Schema) -> None:
    """Refuses a schema that the tuples in a stream's log do not have."""
    old = log.schema(stream) if stream in log.streams() else None
    if old is not None and _columns(old) != _columns(schema):
        raise UserError(
            f"stream {stream}: its log holds tuples with the schema {_text(old)}, but the declared one is "
            f"{_text(schema)}: declare the old one, or use another name or another state folder"
        )


def check_output(log: Log, query: str, schema: pa.Schema) -> int:
    """Makes way for an output whose columns changed; returns how many tuples of the old form were removed.

    Raises:
        UserError: Somebody still has to read tuples of the old form.
    """
    old = log.schema(query)
    if old is None or _columns(old) == _columns(schema):
        return 0
    before, retention = log.oldest(query), log.streams()[query]
    log.declare(query, Retention(0.0, 0, retention.bound_bytes))
    log.collect()
    log.declare(query, retention)
    if log.schema(query) is not None:
        waiting = sorted(name for name, reader in log.readers().items()
                         if reader.stream == query and not reader.parked and reader.next < log.end(query))  # fmt: skip
        raise UserError(
            f"query {query}: its columns changed from {_text(old)} to {_text(schema)}, but tuples of the old form "
            f"still wait for {', '.join(waiting)}: run the query as it was until they are read, or rename it"
        )
    return log.end(query) - before


def _columns(schema: pa.Schema) -> list[pa.Field]:
    return [pa.field(field.name, field.type) for field in schema if field.name != ARRIVAL]


def _text(schema: pa.Schema) -> str:
    return f"({schema_text(pa.schema(_columns(schema))).replace('`', '')})"
