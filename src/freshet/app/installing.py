"""Bringing queries into a running engine and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from freshet.app import restart
from freshet.app.checking import Checked, Readable, may_share
from freshet.app.forms import readers_of
from freshet.app.problems import did_you_mean
from freshet.app.sharing import Arrangement, Costs, arrange, form_of, joined, leave, read_figures
from freshet.app.spec import QuerySpec
from freshet.app.takeover import old_queries, take_over
from freshet.engine import Engine
from freshet.log import Log, ReaderState
from freshet.model import Query, UserError
from freshet.policies.sharing import OperatorFigures

if TYPE_CHECKING:
    from freshet.app.app import App
    from freshet.spark.session.embedded import SparkSession


class Installer:
    """Adds queries to an engine, mindful of what the log remembers of them. Only on the engine's thread.

    Args:
        app: Declares them.
        engine: Runs them.
        log: Remembers them.
        session: Says what columns they will have.
        expected: Schemas that the outputs will have at the first start of each query, where Spark was asked already.
        why_out: Why a query with this fingerprint stays out of the run; None: it does not.
    """

    def __init__(
        self,
        app: App,
        engine: Engine,
        log: Log,
        session: SparkSession,
        expected: Mapping[str, pa.Schema],
        why_out: Callable[[str, str], str | None],
    ) -> None:
        self._engine, self._log, self._session = engine, log, session
        self._expected, self._why_out = dict(expected), why_out
        self._share, self._costs = app.settings.share, read_figures(app.state)
        streams = {name: spec.stream for name, spec in app.streams.items()}
        tables = {name: spec.schema for name, spec in app.tables.items()}
        self._readable = Readable(streams, tables, functions=app.own_functions())
        self.schemas = self._readable.schemas
        """Columns of streams and of the outputs of queries, with Spark's types."""
        self._queries: dict[str, Query] = {}
        self.changes: dict[str, restart.Change] = {}
        """What the start of this run meant for each query."""
        self.notes: list[str] = []
        """What a person should know about it."""

    def park_others(self, names: Iterable[str]) -> None:
        """Takes out the queries of earlier runs that are not among these."""
        kept = set(names)
        for name, parked in restart.out(self._log).items():
            if name not in kept and not parked:
                leave(self._log, name)
                self._engine.log.park([reader.name for reader in self._readers(name)])
                self.changes[name] = "dropped"
                kept_for_it = "its output stays readable; put back unchanged, it goes on where it was"
                self.notes.append(f"query {name} is dropped: {kept_for_it}")

    def _readers(self, name: str) -> list[ReaderState]:
        """The readers that the log has of a query."""
        known = restart.recalled(self._log, name)
        return list(old_queries(self._log).get(name, ())) if known is None else readers_of(self._log, known.form)

    def arrange(self, checked: Checked, specs: Mapping[str, QuerySpec]) -> None:
        """Before the first query is added: takes over what earlier versions left, and has queries share operators."""
        for name, query in checked.queries.items():
            self._log.declare(name, specs[name].retention, kind="output")
            take_over(self._log, query, restart.fingerprint(query))
        candidates = [query for query in checked.queries.values() if may_share(query, checked.schemas)]
        found = arrange(self._log, candidates, self._share, self._costs)
        if found.forms:
            found.commit()

    def rearranged(self) -> Arrangement | None:
        """What queries that run would share by now, where that is another thing than they do; by what was measured in
        this run, too."""
        board = self._engine.board
        running = [query for query in self._queries.values() if board.queries[board.numbers[query.name]].active]
        candidates = [query for query in running if may_share(query, self.schemas)]
        found = arrange(self._log, candidates, self._share, self.figures())
        return found if found.forms else None

    def rearrange(self) -> None:
        """Has queries share what :meth:`rearranged` says; the engine must be at rest."""
        found = self.rearranged()
        if found is not None:
            self._engine.reform(found.forms, found.commit)

    def figures(self) -> Costs | None:
        """What this run has measured of operators, and earlier ones of those that had nothing to do; None: nothing."""
        lived = max(self._engine.clock.now() - self._engine.meters.start, 1e-3)
        measured = {
            operator.node.name: OperatorFigures(
                operator.cost, operator.selectivity, operator.statistics.rows_in / lived
            )
            for operator in self._engine.board.operators
            if operator.queries and operator.statistics.learned
        }
        return {**(self._costs or {}), **measured} or None

    def make(self, spec: QuerySpec) -> Query:
        """The query of a declaration, if it can be added; nothing is touched."""
        if spec.name in self._queries:
            raise UserError(f"query {spec.name} is there already; drop it first")
        # The output of a query that was dropped stays readable, but nothing new can come from it.
        readable = self._readable.with_outputs(self._queries)
        query = readable.build(spec)
        readable.check(query)
        return query

    def add(self, spec: QuerySpec) -> None:
        """Starts a query: where it was, if it ran before and is unchanged, else where it says."""
        from freshet.spark.session.embedded import output_of

        query = self.make(spec)
        streams = {name: self.schemas[name] for name in query.graph.streams}
        self._log.declare(spec.name, spec.retention, kind="output")
        take_over(self._log, query, restart.fingerprint(query))
        before = {reader.name: reader for reader in self._readers(spec.name)}
        change, removed = restart.compare(self._log, query), 0
        expected = self._expected.pop(spec.name, None)
        if change == "changed":
            # Before its cursors are lost: who goes back to the old text must find them.
            expected = expected or output_of(self._session, query, streams)
            removed = restart.check_output(self._log, spec.name, expected)
        restart.make_ready(self._log, query, change)
        form = self._form(query)
        restart.remember(self._log, query, form.graph, fresh=change in ("new", "changed"))
        schema = self._engine.add_query(form, streams)
        try:
            removed += restart.check_output(self._log, spec.name, schema)
        except BaseException:
            self._engine.drop_query(spec.name)
            if change == "new":
                restart.forget_query(self._log, spec.name)
            raise
        restart.remember(self._log, query, form.graph)
        self.schemas[spec.name] = schema
        self._queries[spec.name] = query
        self._readable.learn(query)
        reason = self._why_out(query.name, restart.fingerprint(query))
        if reason is not None:
            self._engine.quarantine(query.name, reason)
        self._tell(spec, change, removed, restart.missed(self._log, before) if change == "back" else 0)

    def _form(self, query: Query) -> Query:
        """A query as it runs: as it did, or a new one with what others share already."""
        if query.name in self._log.queries() or not may_share(query, self.schemas):
            return form_of(self._log, query)
        running = [other for other in self._queries.values() if may_share(other, self.schemas)]
        return joined(self._log, query, running, self._share, self._costs)

    def _tell(self, spec: QuerySpec, change: restart.Change, removed: int, missed: int) -> None:
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

    def promise(self, name: str, **changed: Any) -> None:
        """Promises something else to a query."""
        query = self._find(name)
        promises = replace(query.promises, **changed)
        self._engine.set_promises(name, promises)
        self._queries[name] = replace(query, promises=promises)

    def drop(self, name: str) -> None:
        """Ends a query; its output stays readable, and its place is kept for when it is added again."""
        self._find(name)
        readers = sorted(other for other, query in self._queries.items() if name in query.graph.streams)
        if readers:
            raise UserError(f"query {name} is read by {', '.join(readers)}: drop that first")
        self._engine.drop_query(name)
        leave(self._log, name)
        del self._queries[name]

    def _find(self, name: str) -> Query:
        if name not in self._queries:
            raise UserError(f"there is no query {name!r}{did_you_mean(name, self._queries)}")
        return self._queries[name]
