"""Bringing queries into a running engine and out of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from freshet.app.checking import make_query
from freshet.app.restart import Change, check_output, compare, forget_query, make_ready, remember, remembered
from freshet.app.spec import QuerySpec
from freshet.engine import Engine
from freshet.log import Log
from freshet.model import UserError


class Installer:
    """Adds queries to an engine, mindful of what the log remembers of them. Only on the engine's thread.

    Args:
        engine: Runs the queries.
        log: Remembers them.
        streams: Schemas of the declared streams.
        expected: Schemas that the outputs will have, where that was looked up.
    """

    def __init__(
        self, engine: Engine, log: Log, streams: Mapping[str, pa.Schema], expected: Mapping[str, pa.Schema]
    ) -> None:
        self._engine, self._log, self._streams = engine, log, frozenset(streams)
        self._expected = expected
        self.schemas = dict(streams)
        """Columns of streams and of the outputs of queries, with Spark's types."""
        self.reads: dict[str, tuple[str, ...]] = {}
        """Streams that each query reads."""
        self.changes: dict[str, Change] = {}
        """What the start of this run meant for each query."""
        self.notes: list[str] = []
        """What a person should know about it."""

    def forget_others(self, names: Iterable[str]) -> None:
        """Removes the readers of queries of earlier runs that are not among these."""
        kept = set(names)
        for name, readers in remembered(self._log).items():
            if name not in kept:
                forget_query(self._log, readers)
                self.changes[name] = "dropped"
                self.notes.append(f"query {name} is dropped: it runs no more, its output stays readable")

    def add(self, spec: QuerySpec) -> None:
        """Starts a query: where it was, if it ran before and is unchanged, else where it says."""
        if spec.name in self.reads:
            raise UserError(f"query {spec.name} is there already; drop it first")
        # The output of a query that was dropped stays readable, but nothing new can come from it.
        readable = {name: schema for name, schema in self.schemas.items() if name in self._streams | self.reads.keys()}
        query = make_query(spec, readable)
        reads = tuple(dict.fromkeys(path.stream for path in query.paths))
        self._log.declare(spec.name, spec.retention)
        change, removed = compare(self._log, query), 0
        if change == "changed" and spec.name in self._expected:
            # Before its cursors are lost: who goes back to the old text must find them.
            removed = check_output(self._log, spec.name, self._expected[spec.name])
        make_ready(self._log, query, change)
        schema = self._engine.add_query(query, {name: self.schemas[name] for name in reads})
        try:
            removed += check_output(self._log, spec.name, schema)
            board = self._engine.board
            first = [board.operators[path[0]].node.name for path in board.network.paths(spec.name)]
            remember(self._log, query, first)
        except BaseException:
            if change == "new":
                self._engine.drop_query(spec.name)
            raise
        self.schemas[spec.name] = schema
        self.reads[spec.name] = reads
        self._tell(spec, change, removed)

    def _tell(self, spec: QuerySpec, change: Change, removed: int) -> None:
        self.changes[spec.name] = change
        if change == "changed":
            self.notes.append(f"query {spec.name} changed: it starts anew at {spec.start}, its output goes on")
        if removed:
            self.notes.append(
                f"query {spec.name} has other columns now: {removed} tuples of its old output are removed"
            )

    def drop(self, name: str) -> None:
        """Ends a query; its output stays readable."""
        if name not in self.reads:
            raise UserError(f"there is no query {name!r}")
        readers = sorted(other for other, reads in self.reads.items() if name in reads)
        if readers:
            raise UserError(f"query {name} is read by {', '.join(readers)}: drop that first")
        self._engine.drop_query(name)
        del self.reads[name]
