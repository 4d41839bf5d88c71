"""Bringing queries into a running engine and out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from freshet.app.declared.checking import Catalog, Checked, may_share
from freshet.app.declared.problems import did_you_mean
from freshet.app.declared.spec import QuerySpec
from freshet.app.remembered import restart
from freshet.app.remembered.forms import readers_of
from freshet.app.remembered.sharing import Arrangement, Costs, arrange, form_of, joined, leave, read_figures
from freshet.app.remembered.takeover import as_it_ran, old_queries, take_over
from freshet.app.running.optimizing import Optimizing
from freshet.engine import Engine
from freshet.log import Log, ReaderState
from freshet.model import Expectation, Query, UserError
from freshet.policies.sharing import OperatorFigures

if TYPE_CHECKING:
    from freshet.app.app import App
    from freshet.spark.session.embedded import SparkSession


class Installer:
    """Adds queries to an engine, and continues from what the log remembers of them. Use it on the engine's thread only.

    ``expected`` holds the output schemas that Spark has already computed. ``why_out`` returns the reason for which the
    query with a fingerprint is kept out of the run, or None if it may run.
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
        self._optimizing = Optimizing(app, engine, log, app.state)
        self._readable = app.catalog()
        self.schemas = self._readable.schemas
        """Columns of streams and of the outputs of queries, with Spark's types."""
        self._queries: dict[str, Query] = {}
        self._watchers: list[Callable[[Mapping[str, Query]], None]] = []
        self._arranged: set[str] = set()
        """Queries that the start has arranged, and that have not been added yet."""
        self.changes: dict[str, restart.Change] = {}
        """How the start of this run found each query."""
        self.notes: list[str] = []
        """What a person should know about it."""

    def park_others(self, names: Collection[str]) -> None:
        """Takes out the queries of earlier runs that are not among these."""
        for name, parked in restart.out(self._log).items():
            if name not in names and not parked:
                leave(self._log, name)
                self._engine.log.park([reader.name for reader in self._readers(name)])
                self.changes[name] = "dropped"
                kept_for_it = "its output stays readable; put it back unchanged, and it continues where it was"
                self.notes.append(f"query {name} is dropped: {kept_for_it}")

    def _readers(self, name: str) -> list[ReaderState]:
        """The readers that the log has of a query."""
        known = restart.recalled(self._log, name)
        return list(old_queries(self._log).get(name, ())) if known is None else readers_of(self._log, known.form)

    def arrange(self, checked: Checked, specs: Mapping[str, QuerySpec]) -> None:
        """Takes over what earlier versions left, and has queries share operators; before the first query is added."""
        queries = []
        for name, query in checked.queries.items():
            others = checked.with_outputs([each for each in checked.queries if each != name])
            queries.append(query := self._as_it_ran(query, others, specs[name]))
            self._log.declare(name, specs[name].retention, kind="output")
            take_over(self._log, query, restart.fingerprint(query))
        candidates = [query for query in queries if may_share(query, checked.schemas)]
        self._arranged = {query.name for query in candidates}
        found = arrange(self._log, candidates, self._share, self._costs)
        if found.forms:
            found.commit()

    def rearranged(self) -> Arrangement | None:
        """What running queries would share by now, also by the figures of this run; None: what they share already."""
        board = self._engine.board
        running = [query for query in self._queries.values() if board.queries[board.numbers[query.name]].active]
        candidates = [query for query in running if may_share(query, self.schemas)]
        found = arrange(self._log, candidates, self._share, self.figures())
        return found if found.forms else None

    def rearrange(self) -> None:
        """Makes queries share what :meth:`rearranged` says; the engine must be at rest."""
        if (found := self.rearranged()) is not None:
            self._engine.reform(found.forms, found.commit)

    def figures(self) -> Costs | None:
        """Figures of operators: of this run, and of earlier runs for operators that were idle; None: there are none."""
        lived = max(self._engine.clock.now() - self._engine.meters.start, 1e-3)
        units = max(self._engine.board.calls.calls, 1)
        measured = {
            operator.node.name: OperatorFigures(
                operator.statistics.cost,
                operator.selectivity,
                operator.statistics.rows_in / lived,
                min(1.0, operator.statistics.runs / units),
            )
            for operator in self._engine.board.operators
            if operator.queries and operator.statistics.learned
        }
        return {**(self._costs or {}), **measured} or None

    def make(self, spec: QuerySpec) -> Query:
        """The query of a declaration, if it can be added; nothing is touched."""
        if spec.name in self._queries:
            raise UserError(f"query {spec.name} already exists; drop it first")
        # The output of a query that was dropped stays readable, but nothing new can come from it.
        readable = self._readable.with_outputs(self._queries)
        query = readable.build(spec)
        readable.check(query)
        return self._as_it_ran(query, readable, spec)

    def _as_it_ran(self, query: Query, readable: Catalog, spec: QuerySpec) -> Query:
        return as_it_ran(self._log, query, lambda: readable.build(spec, in_pairs=True), restart.fingerprint)

    def add(self, spec: QuerySpec) -> None:
        """Starts a query: where it was, if it ran before and is unchanged, else where its declaration says."""
        from freshet.spark.session.embedded import output_of

        query = self.make(spec)
        streams = {name: self.schemas[name] for name in query.graph.streams}
        self._log.declare(spec.name, spec.retention, kind="output")
        take_over(self._log, query, restart.fingerprint(query))
        before = {reader.name: reader for reader in self._readers(spec.name)}
        change, removed = restart.compare(self._log, query), 0
        expected = self._expected.pop(spec.name, None)
        if change == "changed":
            # Before it loses its cursors: whoever goes back to the old text must find them.
            expected = expected or output_of(self._session, query, streams)
            removed = restart.check_output(self._log, spec.name, expected)
        restart.make_ready(self._log, query, change)
        form = self._form(query)
        now = self._engine.clock.now()
        restart.remember(self._log, query, form.graph, now=now, fresh=change in ("new", "changed"))
        self._optimizing.add(spec)
        schema = self._engine.add_query(form, streams)
        try:
            removed += restart.check_output(self._log, spec.name, schema)
        except BaseException:
            self._engine.drop_query(spec.name)
            if change == "new":
                restart.forget_query(self._log, spec.name)
            raise
        restart.remember(self._log, query, form.graph, now=now, begins=change in ("new", "changed"))
        self.schemas[spec.name] = schema
        self._queries[spec.name] = query
        self._readable.learn(query)
        self._tell_watchers()
        if (reason := self._why_out(query.name, restart.fingerprint(query))) is not None:
            self._engine.quarantine(query.name, reason)
        self._tell(spec, change, removed, restart.missed(self._log, before) if change == "back" else 0)

    def _form(self, query: Query) -> Query:
        """A query as it will run: as it did before, or, if it is new, with what others share already."""
        arranged = query.name in self._arranged or query.name in self._log.queries()
        self._arranged.discard(query.name)
        if arranged or not may_share(query, self.schemas):
            return form_of(self._log, query)
        running = [other for other in self._queries.values() if may_share(other, self.schemas)]
        return joined(self._log, query, running, self._share, self._costs)

    def _tell(self, spec: QuerySpec, change: restart.Change, removed: int, missed: int) -> None:
        self.changes[spec.name] = change
        if change == "back":
            gap = f"{missed:,} tuples came and went while it was out" if missed else "it missed nothing"
            self.notes.append(f"query {spec.name} is back: it continues where it was; {gap}")
        if change == "changed":
            self.notes.append(f"query {spec.name} changed: it starts anew at {spec.start}, and its output continues")
        if removed:
            self.notes.append(
                f"query {spec.name} has other columns now: {removed} tuples of its old output are removed"
            )

    def promise(self, name: str, **changed: Any) -> None:
        """Changes what is promised to a query."""
        query = self._find(name)
        promises = replace(query.promises, **changed)
        self._optimizing.expect(name, promises)
        self._engine.set_promises(name, promises)
        self._queries[name] = replace(query, promises=promises)
        self._tell_watchers()

    def expect(self, name: str, measure: str, expectation: Expectation | None) -> None:
        """Changes what is expected of a measure of a query."""
        self.promise(name, expect=self._find(name).promises.expect.changed(measure, expectation))

    def pin(self, name: str, strategy: str | None) -> None:
        """Schedules a query by one strategy; None: by any."""
        self._optimizing.pin(name, strategy, self._find(name).promises)

    def drop(self, name: str) -> None:
        """Ends a query; its output stays readable, and its place is kept for when it is added again."""
        self._find(name)
        readers = sorted(other for other, query in self._queries.items() if name in query.graph.streams)
        if readers:
            raise UserError(f"query {name} is read by {', '.join(readers)}: drop that first")
        self._engine.drop_query(name)
        leave(self._log, name)
        del self._queries[name]
        self._tell_watchers()

    def readers(self) -> Counter[str]:
        """How many queries read each output."""
        return Counter(stream for query in self._queries.values() for stream in query.graph.streams)

    def watch(self, watcher: Callable[[Mapping[str, Query]], None]) -> None:
        """Tells somebody now, and whenever they change, which queries there are and what is promised to them."""
        self._watchers.append(watcher)
        watcher(self._queries)

    def _tell_watchers(self) -> None:
        for watcher in self._watchers:
            watcher(self._queries)

    def _find(self, name: str) -> Query:
        if name not in self._queries:
            raise UserError(f"there is no query {name!r}{did_you_mean(name, self._queries)}")
        return self._queries[name]
