"""Bringing queries into a running engine and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

from freshet.app.checking import Checked, Known, check_lateness, check_lookups, make_query, may_share
from freshet.app.problems import did_you_mean
from freshet.app.restart import (
    Change,
    check_output,
    compare,
    fingerprint,
    forget_query,
    make_ready,
    missed,
    remember,
    remembered,
)
from freshet.app.sharing import arrange, forget_work, form_of, leave
from freshet.app.spec import QuerySpec
from freshet.engine import Engine
from freshet.log import Log
from freshet.model import Curve, Query, Stream, UserError
from freshet.policies.sharing import promise_to

LookUp: TypeAlias = Callable[[Query, Mapping[str, pa.Schema]], pa.Schema]
"""The columns of a query's output over streams of these schemas, as Spark says without installing it."""


class Installer:
    """Adds queries to an engine, mindful of what the log remembers of them. Only on the engine's thread.

    Args:
        engine: Runs the queries.
        log: Remembers them.
        streams: The declared streams.
        expected: Schemas that the outputs will have at the first start of each query, where that was looked up.
        look_up: Says it of others.
        tables: Columns of the tables.
        why_out: Why a query with this fingerprint stays out of the run; None: it does not.
    """

    def __init__(
        self,
        engine: Engine,
        log: Log,
        streams: Mapping[str, Stream],
        expected: Mapping[str, pa.Schema],
        look_up: LookUp,
        tables: Mapping[str, pa.Schema] | None = None,
        why_out: Callable[[str, str], str | None] = lambda query, text: None,
    ) -> None:
        self._engine, self._log, self._declared = engine, log, streams
        self._streams = frozenset(streams)
        self._expected, self._look_up = dict(expected), look_up
        self._starting = False
        self._why_out = why_out
        self.schemas = {name: stream.schema for name, stream in streams.items()}
        """Columns of streams and of the outputs of queries, with Spark's types."""
        times = {name: stream.event_time for name, stream in streams.items()}
        self._known = Known(self.schemas, dict(tables or {}), times)
        self.reads: dict[str, tuple[str, ...]] = {}
        """Streams that each query reads."""
        self.changes: dict[str, Change] = {}
        """What the start of this run meant for each query."""
        self.notes: list[str] = []
        """What a person should know about it."""

    def park_others(self, names: Iterable[str]) -> None:
        """Takes out the queries of earlier runs that are not among these."""
        kept = set(names)
        for name, readers in remembered(self._log).items():
            if name not in kept and not readers.parked:
                self._engine.log.park(readers.names)
                self.changes[name] = "dropped"
                kept_for_it = "its output stays readable; put back unchanged, it goes on where it was"
                self.notes.append(f"query {name} is dropped: {kept_for_it}")

    def arrange(self, checked: Checked, specs: Mapping[str, QuerySpec], share: bool) -> None:
        """Before the first query is added: brings queries to where they share work, or back.

        What shared work promises is settled by :meth:`started`, after the last one.
        """
        self._starting = True
        for name in checked.queries:
            self._log.declare(name, specs[name].retention)
        arrange(self._log, [query for query in checked.queries.values() if may_share(query, checked)], share)

    def started(self) -> None:
        """After the last query that the application declares was added."""
        self._starting = False
        self._look_after_works()

    def columns(self, spec: QuerySpec) -> tuple[str, ...]:
        """Names of the columns that a query will have; nothing is touched.

        Raises:
            UserError: It cannot be added.
        """
        return self._made(spec)[0].columns

    def _made(self, spec: QuerySpec) -> tuple[Query, dict[str, pa.Schema]]:
        """The query of a declaration, and what it may read."""
        if spec.name in self.reads:
            raise UserError(f"query {spec.name} is there already; drop it first")
        # The output of a query that was dropped stays readable, but nothing new can come from it.
        readable = {name: schema for name, schema in self.schemas.items() if name in self._streams | self.reads.keys()}
        query = make_query(spec, self._known.among(readable))
        check_lateness(query, self._declared)
        check_lookups(query, readable)
        return query, readable

    def add(self, spec: QuerySpec) -> None:
        """Starts a query: where it was, if it ran before and is unchanged, else where it says."""
        query, readable = self._made(spec)
        reads = tuple(dict.fromkeys(path.stream for path in query.paths))
        self._log.declare(spec.name, spec.retention)
        before = {name: reader for name, reader in self._log.readers().items() if name.startswith(f"{spec.name}.")}
        change, removed = compare(self._log, query), 0
        expected = self._expected.pop(spec.name, None)
        if change == "changed":
            # Before its cursors are lost: who goes back to the old text must find them.
            columns = self._look_up(query, readable) if expected is None else expected
            removed = check_output(self._log, spec.name, columns)
        make_ready(self._log, query, change)
        form = form_of(self._log, query)
        for work in form.hidden:
            if work.name not in self._engine.board.numbers:
                self._engine.add_query(work, self._columns(work))
        schema = self._engine.add_query(form.query, self._columns(form.query))
        try:
            removed += check_output(self._log, spec.name, schema)
            board = self._engine.board
            first = [board.operators[path[0]].node.name for path in board.network.paths(spec.name)]
            remember(self._log, query, first)
        except BaseException:
            self._engine.drop_query(spec.name)
            if change == "new":
                forget_query(self._log, remembered(self._log)[spec.name])
            self._look_after_works()
            raise
        self.schemas[spec.name] = schema
        self.reads[spec.name] = reads
        self._known.learn(query)
        self._look_after_works()
        self._keep_out({query.name: fingerprint(query), **{work.name: work.name for work in form.hidden}}, query.name)
        self._tell(spec, change, removed, missed(self._log, before) if change == "back" else 0)

    def _keep_out(self, texts: Mapping[str, str], query: str) -> None:
        """Quarantines a query, and work of its own, that runs have died with."""
        for name, text in texts.items():
            reason = self._why_out(name, text)
            if reason is not None:
                for each in (name, query):
                    if self._engine.board.queries[self._engine.board.numbers[each]].active:
                        self._engine.quarantine(each, reason)

    def _tell(self, spec: QuerySpec, change: Change, removed: int, missed: int) -> None:
        self.changes[spec.name] = change
        if change == "back":
            gap = f"{missed:,} tuples came and went while it was out" if missed else "it missed nothing"
            self.notes.append(f"query {spec.name} is back: it goes on where it was; {gap}")
        if change == "changed":
            self.notes.append(f"query {spec.name} changed: it starts anew at {spec.start}, its output goes on")
        if removed:
            self.notes.append(
                f"query {spec.name} has other columns now: {removed} tuples of its old output are removed"
            )

    def set_weight(self, name: str, weight: float) -> None:
        """Changes the importance of a query."""
        self._engine.set_weight(name, weight)
        self._look_after_works()

    def set_curve(self, name: str, curve: Curve | None) -> None:
        """Changes what the answers of a query are worth by their latency."""
        self._engine.set_curve(name, curve)
        self._look_after_works()

    def drop(self, name: str) -> None:
        """Ends a query; its output stays readable, and its place is kept for when it is added again."""
        if name not in self.reads:
            raise UserError(f"there is no query {name!r}{did_you_mean(name, self.reads)}")
        readers = sorted(other for other, reads in self.reads.items() if name in reads)
        if readers:
            raise UserError(f"query {name} is read by {', '.join(readers)}: drop that first")
        self._engine.drop_query(name)
        leave(self._log, name)
        del self.reads[name]
        self._look_after_works()

    def _columns(self, query: Query) -> dict[str, pa.Schema]:
        """Of what a query reads: streams, outputs, shared work."""
        return {name: self.schemas.get(name, self._engine.schemas.get(name)) for name in query.graph.streams}

    def _look_after_works(self) -> None:
        """Ends shared work that serves nobody any more; the rest promises what was promised to those it serves."""
        if self._starting:
            return
        board = self._engine.board
        for work in reversed([state for state in board.queries if state.query.hidden and state.name in board.numbers]):
            served = [state for state in board.served_by(work) if not state.query.hidden]
            if not served:
                self._engine.drop_query(work.name)
                if all(reader.stream != work.name for reader in self._log.readers().values()):
                    forget_work(self._log, work.name)
                continue
            weight, curve = promise_to([(state.weight, state.curve, 0.0) for state in served])
            if work.weight != weight:
                self._engine.set_weight(work.name, weight)
            if work.curve != curve:
                self._engine.set_curve(work.name, curve)
