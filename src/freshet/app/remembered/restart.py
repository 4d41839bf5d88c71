"""What a restart means for each query: whether it continues, starts anew, is out or is back.

The log keeps a fingerprint of what decides the answers of a query. Its weight, its sinks and the layout of its text may
change freely. A query with another fingerprint starts anew, and its output continues behind what is there. A query that
is taken out leaves its readers parked, so that it can continue where it was when it is put back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from freshet.app.remembered.forms import Move, graph_of, inputs_of, readers_of, states_of, stored
from freshet.app.remembered.takeover import forget_old, is_out, old_queries
from freshet.log import Log, LogReader, QueryRecord, ReaderState, Retention
from freshet.log.store.private import write_private
from freshet.model import Query, QueryGraph, UserError, schema_text
from freshet.model.key_joins import key_joins
from freshet.model.schema import without_arrival

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
        began: The offsets at which it began to read, by the name of its own reader; since then it has read everything.
            None: they are unknown, or it has missed something.
        started: When it was started for the first time, in seconds; its life counts from then on, stops included. None:
            an earlier version did not keep it.
        strategy: What the optimizer remembers of it; None: nothing.
    """

    fingerprint: str
    own: QueryGraph
    form: QueryGraph
    fresh: bool = False
    began: Mapping[str, int] | None = None
    started: float | None = None
    strategy: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, record: QueryRecord) -> Known:
        """What a record says."""
        own = graph_of(record.state["graph"])
        form = graph_of(record.state["form"]) if "form" in record.state else own
        kept = {key: record.state.get(key) for key in ("began", "started", "strategy")}
        return cls(record.fingerprint, own, form, bool(record.state.get("fresh")), **kept)

    def record(self) -> QueryRecord:
        """The record that the log keeps of it."""
        form = {"form": stored(self.form)} if self.form != self.own else {}
        fresh = {"fresh": True} if self.fresh else {}
        kept = {"began": self.began and dict(self.began), "started": self.started, "strategy": self.strategy}
        known = {key: value for key, value in kept.items() if value is not None}
        return QueryRecord(self.fingerprint, {"graph": stored(self.own), **form, **fresh, **known})

    def having_lost(self, lost: Mapping[str, int]) -> Known:
        """The same in the light of the ledger, which says up to where each reader has lost tuples."""
        if self.began is None:
            return self
        pairs = zip(inputs_of(self.own), inputs_of(self.form), strict=True)
        begins = {form.reader: self.began.get(own.reader, 0) for own, form in pairs}
        states = (name for fold in self.form.from_output for name in states_of(lost, fold))
        missed = any(lost.get(reader, 0) > begin for reader, begin in begins.items()) or any(states)
        return replace(self, began=None) if missed else self


def fingerprint(query: Query) -> str:
    """A short text that changes exactly when the query's answers may change."""
    about: dict[str, object] = {"graph": stored(query.graph), "on_error": query.on_error}
    if query.is_periodic:
        windows = {name: [window.size, window.rows] for name, window in query.windows.items()}
        about |= {"period": query.promises.period, "windows": windows}
    told = json.dumps(about, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def remembered(log: Log) -> dict[str, Known]:
    """The queries that ran before, also those that are out, by name."""
    lost = _lost(log)
    return {name: Known.of(record).having_lost(lost) for name, record in log.queries().items()}


def recalled(log: Log, query: str) -> Known | None:
    """What is remembered of one query."""
    record = log.queries().get(query)
    return None if record is None else Known.of(record).having_lost(_lost(log))


def _lost(log: Log) -> dict[str, int]:
    """Up to where readers have lost tuples, by name."""
    return {entry.edge: entry.end for entry in log.ledger()}


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


def is_parked(log: Log | LogReader, known: Known) -> bool:
    """Whether a query was taken out: then it has readers of its own, and those of its streams are parked."""
    readers = log.readers()
    firsts = [readers.get(each.reader) for each in inputs_of(known.form) if not each.is_queue]
    return all(reader is not None and reader.parked for reader in firsts)


def out(log: Log) -> dict[str, bool]:
    """The queries that ran before, by name, and whether each was taken out."""
    old = {name: is_out(readers) for name, readers in old_queries(log).items()}
    return old | {name: is_parked(log, known) for name, known in remembered(log).items()}


def make_ready(log: Log, query: Query, change: Change) -> None:
    """Prepares the start of a query: one that changed loses its old cursors, one in quarantine gets another try."""
    known = recalled(log, query.name)
    if change == "changed" or (known is not None and known.fingerprint != fingerprint(query)):
        forget_query(log, query.name)
        for join in key_joins(query.graph):
            log.forget_levels(join)
    elif known is not None:
        for join in key_joins(query.graph) if change == "back" else ():
            log.lapse(join)
        for reader in readers_of(log, known.form):
            if not reader.parked and not reader.needed:  # a parked one is started
                log.set_need(reader.name, True)


def remember(
    log: Log, query: Query, form: QueryGraph, *, now: float | None = None, fresh: bool = False, begins: bool = False
) -> None:
    """Makes the log remember what a query is and how it runs; one that ``begins`` begins where its readers are. If it
    is started ``now``, its life begins, unless the log knows when it did."""
    known = recalled(log, query.name)
    started = now if known is None or known.started is None else known.started
    began, strategy = (None, None) if known is None else (known.began, known.strategy)
    if begins:
        readers, pairs = log.readers(), zip(inputs_of(query.graph), inputs_of(form), strict=True)
        began = {own.reader: readers[each.reader].next for own, each in pairs if not each.is_queue}
    log.remember(query.name, Known(fingerprint(query), query.graph, form, fresh, began, started, strategy).record())


def age(log: Log | LogReader, query: str, now: float) -> float:
    """Seconds since the first start of a query; a changed query, which starts anew, has begun a new life."""
    record = log.queries().get(query)
    started = now if record is None else Known.of(record).started
    return 0.0 if started is None else max(0.0, now - started)


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
    """How many tuples came and went while readers were out: ``before`` are the readers before they were started. Two
    readers of one stream missed the same tuples."""
    gaps: dict[str, int] = {}
    after = log.readers()
    for name, reader in before.items():
        now = after.get(name)
        # Offsets of different streams cannot be compared: the query may have begun or ceased to share work.
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
    """Writes the application's name to its state folder, once it really runs: a start that fails claims nothing."""
    if not _owner(state):
        write_private(state / _OWNER, application)


def _owner(state: Path) -> str:
    note = state / _OWNER
    return note.read_text(encoding="utf-8", errors="replace") if note.exists() else ""


def check_stream(log: Log, stream: str, schema: pa.Schema) -> None:
    """Refuses a schema that the tuples in a stream's log do not have."""
    old = log.schema(stream) if stream in log.streams() else None
    if old is not None and without_arrival(old) != without_arrival(schema):
        raise UserError(
            f"stream {stream}: its log holds tuples with the schema {_text(old)}, but the declared one is "
            f"{_text(schema)}: declare the old one, or use another name or another state folder"
        )


def check_output(log: Log, query: str, schema: pa.Schema) -> int:
    """Removes the old output of a query whose columns changed; returns how many tuples that were.

    Raises:
        UserError: Somebody still has to read tuples of the old form.
    """
    old = log.schema(query)
    if old is None or without_arrival(old) == without_arrival(schema):
        return 0
    before, retention = log.oldest(query), log.streams()[query]
    log.declare(query, Retention(0.0, 0, retention.bound_bytes))
    log.collect()
    log.declare(query, retention)
    if log.schema(query) is not None:
        mine = (reader for reader in log.readers().values() if reader.stream == query and not reader.parked)
        waiting = sorted(reader.name for reader in mine if reader.next < log.end(query))
        raise UserError(
            f"query {query}: its columns changed from {_text(old)} to {_text(schema)}, but tuples of the old form "
            f"still wait for {', '.join(waiting)}: run the query as it was until they are read, or rename it"
        )
    return log.end(query) - before


def _text(schema: pa.Schema) -> str:
    return f"({schema_text(without_arrival(schema)).replace('`', '')})"
