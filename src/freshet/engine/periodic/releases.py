"""Releases: when instances of periodic queries come into being, what they see, and what is committed of them (RT §2.2).

A release is an entry of the log, made when its time has come: the end offset of each input, which is where the first
tuple lies that arrived at the release or later. From then on no tuple can arrive before it. An instance is one unit.
Its commit takes in the answer, moves the cursors to where the next window begins, and enters the instance as answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from freshet.engine.binding import shape_of
from freshet.engine.board import Board
from freshet.engine.periodic.as_read import as_read
from freshet.engine.periodic.held_windows import HeldWindows
from freshet.engine.periodic.kept_panes import KeptPane, KeptPanes
from freshet.engine.protocols import QueueLog
from freshet.engine.states import EdgeState, FoldState, QueryState, WaitingInstance
from freshet.engine.timekeeper import Timekeeper
from freshet.model import (
    Chain,
    Commit,
    Instance,
    InstanceRun,
    Keep,
    Missing,
    Panes,
    RunInstances,
    State,
    Train,
    Unit,
    UnitResult,
    UserError,
    releases_between,
    state_stream,
)
from freshet.model.operators.last import Last
from freshet.model.promises.promise import Missed
from freshet.model.scheduling.instance import NO_TIME
from freshet.model.schema import WEIGHT

MOST_AT_ONCE: Final[dict[Missed, int]] = {"skip": 100, "catch-up": 100_000}
"""Number of releases of a query that are taken at once, at most: a clock may jump by years."""
_MOMENT: Final = 1
"""The boundary at which all tuples of an instance that runs as a batch are there."""


@dataclass(slots=True, eq=False)
class PeriodicQuery:
    """A periodic query, with times in microseconds.

    Args:
        state: The query.
        number: Its number.
        edges: Its edges from streams and outputs.
        last: The last release that was taken, or when the query was started.
        windows: What its windows have let go.
    """

    state: QueryState
    number: int
    edges: tuple[EdgeState, ...]
    last: int
    windows: HeldWindows
    panes: dict[str, KeptPanes] = field(default_factory=dict)
    """What the panes of its windows kept, by edge."""
    size: int = 0
    """Its longest window of time; 0: all its windows count rows."""
    weighed: bool = False
    """Whether it asks for estimates of what all tuples would have given."""
    in_parts: bool = False
    """Whether its instances may run in parts, which take tuples in another order."""
    skipped: int = 0
    """Number of releases without an instance, in this run."""

    @property
    def period(self) -> int:
        """Time between releases."""
        return max(1, round((self.state.promises.period or 0.0) * 1e6))

    @property
    def deadline(self) -> int:
        """Time from a release to its deadline."""
        given = self.state.promises.deadline
        return self.period if given is None else round(given * 1e6)

    @property
    def next(self) -> int:
        """The next release."""
        return releases_between(self.last, self.last + self.period, self.period)[0]


class Releases:
    """Takes releases and keeps the instances that wait.

    Args:
        board: The engine's.
        log: The engine's.
        time: Knows where the states of folds are.
    """

    def __init__(self, board: Board, log: QueueLog, time: Timekeeper) -> None:
        self._board, self._log, self._time = board, log, time
        self.queries: dict[str, PeriodicQuery] = {}
        self._units: dict[str, tuple[WaitingInstance, ...]] = {}
        """Instances that run, by unit."""

    # Queries

    def start(self, state: QueryState) -> None:
        """Takes up a periodic query where it was; what it missed is skipped or caught up with."""
        now, last = self._log.wall(), self._log.last_release(state.name)
        edges = tuple(edge for each in self._board.of(state) for edge in each.edges if edge.window is not None)
        held = HeldWindows(state.name, edges, self._log)
        query = PeriodicQuery(state, self._board.numbers[state.name], edges, now if last is None else last, held)
        operators = [self._board.operators[number].node.operator for number in state.operators]
        query.weighed = any(WEIGHT in repr(operator) for operator in operators)
        # A weight is the inverse of the share that is kept, and the last tuples are known by their order.
        query.in_parts = not query.weighed and not any(isinstance(operator, Last) for operator in operators)
        self.queries[state.name] = query
        self._recall_panes(query)
        if last is None:
            self._log.release({state.name: now}, lambda: (), ())
        for record in self._log.waiting_instances(state.name):
            self._add(query, record)
        if state.promises.missed == "skip":
            self._skip(query, now, 0, "the application did not run")
        self._sort()

    def _recall_panes(self, query: PeriodicQuery) -> None:
        """Finds out what the panes of a query kept, from its answers so far."""
        folds = (fold.node.operator for fold in self._board.folds(query.state.operators))
        sizes = [fold.validity.size or 0 for fold in folds if isinstance(fold, Panes) and fold.slide > _MOMENT]
        readers = [edge.edge.reader for edge in query.edges if edge.window is not None and edge.window.passes]
        whole = [edge.window.size or 0 for edge in query.edges if edge.window is not None]
        query.size = max([*sizes, *whole], default=0)
        if sizes and readers:
            query.panes = {reader: KeptPanes(max(sizes)) for reader in readers}
            answered = self._log.answered_instances(query.state.name)
            for reader, panes in query.panes.items():
                panes.recall(reader, answered)

    def _skip(self, query: PeriodicQuery, now: int, kept: int, why: str) -> None:
        """Skips the releases up to now, except for the last ones; the ledger says so."""
        due = releases_between(query.last, now, query.period)
        missed = due[: max(0, len(due) - kept)]
        if not missed:
            return
        first, end, name = missed[0] // query.period, missed[-1] // query.period + 1, query.state.name
        entry = Missing(name, releases_of(name), name, "skipped", first, end, end - first, reason=why)
        self._log.release({name: missed[-1]}, lambda: (), (entry,))
        query.last = missed[-1]
        query.skipped += len(missed)

    def drop(self, name: str) -> None:
        """Forgets a query; the log keeps the instances that wait."""
        if self.queries.pop(name, None) is not None:
            self._board.instances = [each for each in self._board.instances if each.record.query != name]

    # Releases

    def next_release(self) -> float | None:
        """When the next release is due, by the engine's clock; None: there is none, or nobody knows."""
        times = [query.next for query in self.queries.values() if query.state.active]
        return self._log.release_due(min(times)) if times else None

    def take(self) -> list[WaitingInstance]:
        """Takes the releases that are due, all in one transaction; returns their instances."""
        now = self._log.wall()
        due = [query for query in self.queries.values() if query.state.active and query.next <= now]
        if not due:
            return []
        for query in due:
            self._skip(query, now, MOST_AT_ONCE[query.state.promises.missed], "too many were due at once")
        upto = {query.state.name: releases_between(query.last, now, query.period)[-1] for query in due}
        excess = [entry for query in due for entry in query.windows.excess()]
        made = self._log.release(upto, lambda: [each for query in due for each in self._made(query, now)], excess)
        for query in due:
            query.last = upto[query.state.name]
            query.windows.let_go(excess, now)
        new = [self._add(self.queries[record.query], record) for record in made]
        self._sort()
        return new

    def _made(self, query: PeriodicQuery, now: int) -> Iterator[Instance]:
        for release in releases_between(query.last, now, query.period):
            ends = {
                edge.edge.reader: self._log.first_at(edge.edge.stream, release, edge.cursor) for edge in query.edges
            }
            since = release - query.size if query.size else NO_TIME
            yield Instance(query.state.name, release, release + query.deadline, ends, since=since)

    def _add(self, query: PeriodicQuery, record: Instance) -> WaitingInstance:
        windows = tuple((edge, self._first(query, edge, record)) for edge in query.edges)
        self._board.instances.append(instance := WaitingInstance(record, query.number, windows, panes=query.panes))
        return instance

    def _first(self, query: PeriodicQuery, edge: EdgeState, record: Instance) -> int:
        """The first offset that an instance sees at an edge; -1: where the edge's cursor is."""
        window, end = edge.window, record.ends[edge.edge.reader]
        assert window is not None
        if window.passes:
            return -1
        since = max(edge.cursor, query.windows.first(edge.edge.reader, record.release))
        if window.rows is not None:
            return min(end, max(since, end - window.rows))
        return min(end, self._log.first_at(edge.edge.stream, record.release - (window.size or 0), since))

    def _sort(self) -> None:
        self._board.instances.sort(key=lambda each: (each.record.release, each.record.query))
        self.look()

    def look(self) -> None:
        """Finds the instances that may run: the first of each query, if it may run and no other of it is running."""
        seen: set[int] = set()
        for each in self._board.instances:
            state = self._board.queries[each.query]
            root = self._board.operators[state.root]
            each.may_run = each.query not in seen and not each.running and state.may_run and not root.held
            seen.add(each.query)

    def runnable(self) -> bool:
        """Whether an instance may run. Outputs may have been held back or let go since the last look."""
        if not self._board.instances:
            return False
        self.look()
        return any(each.may_run for each in self._board.instances)

    def find(self, key: tuple[str, int]) -> WaitingInstance | None:
        """An instance that waits."""
        return next((each for each in self._board.instances if each.record.key == key), None)

    # Units

    def bind(self, action: RunInstances, unit: str) -> Unit | None:
        """The unit of some instances; those that cannot run now are left out. None: none can."""
        runs: dict[int, WaitingInstance] = {}
        together = len(action.runs) > 1
        for run in action.runs:
            instance = self.find(run.key)
            if instance is not None and instance.may_run and instance.query not in runs:
                # The clock of a part says nothing if others run in the same unit.
                instance.run = self._checked(replace(run, timing=None) if together else run, instance)
                runs[instance.query] = instance
        nodes = tuple(number for query in runs for number in self._board.queries[query].operators)
        shape = shape_of(self._board, nodes, windows=True)
        if not shape.operators:
            return None
        chains: list[Chain] = []
        for numbers, inputs, writes in zip(shape.nodes, shape.inputs, shape.writes, strict=True):
            instance = runs[self._board.operators[numbers[0]].queries[0]]
            bound = tuple(each if isinstance(each, int) else self._train(each, instance) for each in inputs)
            chains.append(Chain(numbers, bound, writes, instance.record.release if writes else None))
        self._units[unit] = tuple(runs.values())
        for instance in runs.values():
            instance.running = True
        self.look()
        return Unit(unit, tuple(chains), self._states(chains), tuple(map(self._log.versions, shape.tables)))

    def running(self, unit: str) -> tuple[WaitingInstance, ...]:
        """The instances of a unit that runs."""
        return self._units.get(unit, ())

    def _checked(self, run: InstanceRun, instance: WaitingInstance) -> InstanceRun:
        state = self._board.queries[instance.query]
        if any(ratio < 1.0 for _, ratio in run.kept) and "thin" not in state.promises.overload:
            raise UserError(f'query {state.name} may not be thinned: to allow it, declare overload = ["defer", "thin"]')
        return run

    def _train(self, edge: EdgeState, instance: WaitingInstance) -> Train:
        seen = next(each for each in instance.inputs if each.reader == edge.edge.reader)
        train = self._log.train(seen.stream, seen.first, seen.end)
        query, run = self.queries[instance.record.query], instance.run
        ratio = dict(run.kept if run else ()).get(seen.reader, 1.0)
        timing = run.timing if run and query.in_parts else None
        if run is None or (ratio >= 1.0 and timing is None):
            return train
        keep = Keep(ratio, seen.reader, reason=run.reason, weighed=query.weighed, timing=timing)
        return replace(train, keep=keep)

    def _states(self, chains: Sequence[Chain]) -> tuple[State, ...]:
        rows = max([train.rows for chain in chains for train in chain.trains], default=0)
        found = []
        for fold in self._board.folds(sorted(number for chain in chains for number in chain.nodes)):
            before, after = self._times(fold)
            state = self._time.remembered.state(fold, (after,) * fold.ports, rows)
            found.append(replace(state, before=(before,) * fold.ports))
        return tuple(found)

    def _times(self, fold: FoldState) -> tuple[int | None, int]:
        """Event time before and after an instance: a fold with panes closes the boundary at the release, any other is
        empty before and after."""
        operator = fold.node.operator
        if isinstance(operator, Panes) and operator.slide > _MOMENT:
            instance = next(each for each in self._board.instances if each.running and each.query == fold.queries[0])
            return instance.record.release - operator.slide, instance.record.release
        return None, _MOMENT

    def commit_of(self, result: UnitResult, chains: Sequence[Chain], commit: Commit, now: float) -> Commit:
        """The commit of a unit of instances: also cursors of windows, watermarks and what became of the instances."""
        instances = self._effective(result.unit, chains)
        if not instances:
            return commit
        for each in instances:
            state = self._board.queries[each.query]
            each.run = as_read(each, result, state.operators, state.promises.quality)
            each.moves = tuple((edge, at) for edge, at in self._moves(each) if at > edge.cursor)
        moves = tuple(
            (edge.edge.reader, edge.edge.stream, edge.cursor, at) for each in instances for edge, at in each.moves
        )
        marks = tuple(mark for each in instances for mark in self._marks(each))
        records = tuple(self.record_of(each, result, now) for each in instances)
        return replace(
            commit, cursors=(*commit.cursors, *moves), watermarks=(*commit.watermarks, *marks), instances=records
        )

    def _effective(self, unit: Unit, chains: Iterable[Chain]) -> list[WaitingInstance]:
        """The instances of a unit whose answers take effect."""
        roots = {chain.nodes[-1] for chain in chains}
        instances = self._units.get(unit.id, ())
        return [each for each in instances if self._board.queries[each.query].root in roots]

    def _moves(self, instance: WaitingInstance) -> Iterator[tuple[EdgeState, int]]:
        """Where the cursors are once an instance is answered: at the first tuple that a later one can see."""
        query = self.queries[instance.record.query]
        behind = [each for each in self._board.instances if each.query == instance.query and each is not instance]
        for place, (edge, _) in enumerate(instance.windows):
            end, window = instance.record.ends[edge.edge.reader], edge.window
            assert window is not None
            if window.passes:
                yield edge, end
                continue
            kept = max(edge.cursor, query.windows.latest(edge.edge.reader))
            if window.rows is not None:
                first = max(kept, end - window.rows)
            else:
                since = instance.record.release + query.period - (window.size or 0)
                first = max(kept, min(end, self._log.first_at(edge.edge.stream, since, edge.cursor)))
            yield edge, min([first, *(each.windows[place][1] for each in behind)])

    def _marks(self, instance: WaitingInstance) -> Iterator[tuple[str, int]]:
        """Answers bear the release as their arrival, and all of one come at once: what follows is later."""
        yield instance.record.query, instance.record.release + 1
        for fold in self._board.folds(self._board.queries[instance.query].operators):
            if self._time.remembered.has_state(fold) and self._times(fold)[0] is not None:
                yield state_stream(fold.node.name, 0), instance.record.release

    def record_of(self, instance: WaitingInstance, result: UnitResult, now: float) -> Instance:
        """What is entered of an instance that a unit has answered."""
        root = self._board.queries[instance.query].root
        rows = sum(done.rows_out for done in result.chains if done.chain.nodes[-1] == root)
        run = instance.run or InstanceRun(instance.record.key)
        kept = {reader: ratio for reader, ratio in run.kept if ratio < 1.0}
        started, finished = round(result.started * 1e6), round(now * 1e6)
        whole = replace(instance.record, state="answered", kept=kept, quality=run.quality, rows=rows)
        return replace(whole, started=started, finished=finished)

    def settled(self, unit: Unit, chains: Sequence[Chain] | None) -> list[WaitingInstance]:
        """A unit ended, and these of its chains took effect (None: nothing did); returns the answered instances."""
        instances = self._units.pop(unit.id, ())
        if not instances:
            return []
        self._units[unit.id] = instances
        answered = self._effective(unit, chains or ())
        del self._units[unit.id]
        for each in answered:
            for reader, panes in each.panes.items():
                kept = dict(each.run.kept).get(reader, 1.0) if each.run else 1.0
                rows = sum(at - edge.cursor for edge, at in each.moves if edge.edge.reader == reader)
                panes.add(KeptPane(each.record.release, rows, kept))
            for edge, at in each.moves:
                edge.cursor = at
        for each in instances:
            each.running = each.back = False
        self._board.instances = [each for each in self._board.instances if each not in answered]
        self.look()
        return answered

    def abandon(self, key: tuple[str, int], reason: str) -> WaitingInstance | None:
        """Gives up an instance that waits; None: it does not."""
        instance = self.find(key)
        if instance is None or instance.running:
            return None
        record, period = instance.record, self.queries[key[0]].period
        number = record.release // period
        entry = Missing(key[0], releases_of(key[0]), key[0], "skipped", number, number + 1, 1, reason=reason)
        given_up = replace(record, state="abandoned", reason=reason, finished=self._log.wall())
        self._log.commit([Commit(missing=(entry,), instances=(given_up,))])
        instance.record = given_up
        self._board.instances.remove(instance)
        self.look()
        return instance


def releases_of(query: str) -> str:
    """What the ledger calls the edge of skipped releases: its offsets are their numbers, release over period."""
    return f"{query}.releases"
