"""What a restart means for each query: whether it goes on, starts anew, is out or is back.

A query's first readers carry a fingerprint of what decides its answers. Its weight, its sinks and the layout of its
text may change freely; a query whose fingerprint changed starts anew, and its output goes on behind what is there. A
query that is taken out leaves its readers parked, so that it can go on where it was when it is put back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from freshet.log import Log, ReaderState, Retention
from freshet.log.private import write_private
from freshet.model import ARRIVAL, Query, UserError, schema_text
from freshet.policies.sharing import is_shared

_OWNER: Final = "application"
"""File of a state folder that says whose it is."""

Change = Literal["new", "unchanged", "changed", "back", "dropped"]


@dataclass(frozen=True, slots=True)
class Readers:
    """What the log remembers of a query."""

    names: tuple[str, ...]
    fingerprints: frozenset[str | None]
    parked: bool = False
    """Whether it was taken out."""
    fresh: bool = False
    """Whether it only has its place, and has never run."""


def fingerprint(query: Query) -> str:
    """A short text that changes exactly when the query's answers may change."""
    paths = [(path.stream, [asdict(operator) for operator in path.operators]) for path in query.paths]
    told = json.dumps({"paths": paths, "on_error": query.on_error}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def remembered(log: Log) -> dict[str, Readers]:
    """The queries that ran before, also those that are out, by name. Their readers are named ``query.operator``; sinks
    have other names."""
    readers = log.readers()
    queries: dict[str, list[str]] = {}
    for name in readers:
        query, dot, _ = name.partition(".")
        if dot and query.isidentifier() and not is_shared(query):
            queries.setdefault(query, []).append(name)
    return {query: _readers([readers[name] for name in names]) for query, names in queries.items()}


def texts(log: Log) -> dict[str, str]:
    """The fingerprints of the queries that ran before."""
    return {name: ",".join(sorted(map(str, found.fingerprints))) for name, found in remembered(log).items()}


def _readers(readers: list[ReaderState]) -> Readers:
    # Readers of intermediate queues are named like their queue, carry nothing and are never parked.
    first = [reader for reader in readers if reader.stream != reader.name]
    return Readers(
        tuple(reader.name for reader in readers),
        frozenset(reader.state.get("fingerprint") for reader in first),
        all(reader.parked for reader in first),
        any(reader.state.get("fresh") for reader in first),
    )


def compare(log: Log, query: Query) -> Change:
    """How a query relates to what ran before."""
    known = remembered(log).get(query.name)
    if known is None or known.fresh:
        return "new"
    if known.fingerprints != {fingerprint(query)}:
        return "changed"
    return "back" if known.parked else "unchanged"


def make_ready(log: Log, query: Query, change: Change) -> None:
    """Lets a query begin: one that changed without its old cursors, one that was quarantined with another try."""
    known, readers = remembered(log).get(query.name), log.readers()
    if known is not None and change == "changed":
        forget_query(log, known)
    elif known is not None:
        for name in known.names:
            if not readers[name].parked:  # a parked one is started
                log.set_need(name, True)


def remember(log: Log, query: Query, readers: Collection[str]) -> None:
    """Leaves the fingerprint with the query's first readers."""
    known = log.readers()
    for name in readers:
        kept = {key: value for key, value in known[name].state.items() if key != "fresh"}
        log.advance(name, known[name].stream, known[name].next, kept | {"fingerprint": fingerprint(query)})


def forget_query(log: Log, known: Readers) -> None:
    """Removes the readers of a query and its intermediate queues; its output stays."""
    streams = log.streams()
    for name in known.names:
        if name in streams:
            log.forget(name)
        else:
            log.drop_reader(name)


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


def same_columns(old: pa.Schema, new: pa.Schema) -> bool:
    """Whether two schemas have the same columns of the same types, the arrival aside."""
    return _columns(old) == _columns(new)


def _columns(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema if field.name != ARRIVAL]


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
    if old is not None and not same_columns(old, schema):
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
    if old is None or same_columns(old, schema):
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


def _text(schema: pa.Schema) -> str:
    return f"({schema_text(pa.schema([field for field in schema if field.name != ARRIVAL])).replace('`', '')})"
