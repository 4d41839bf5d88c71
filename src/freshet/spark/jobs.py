"""Jobs: the plans of both forms, kept ready, and how one is run over works."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from freshet.kernels.parting import OVERHEAD, parts_pay
from freshet.kernels.shuffling import MOST_BYTES, pays
from freshet.log.sums import Checks, missing
from freshet.model import Chain, Filter, Project, State, Train, Work, version_stream
from freshet.spark.assignment import PROPERTY, Assignment
from freshet.spark.catalyst import MOST_CHAINS, catalyst_plan
from freshet.spark.failures import retry_reason
from freshet.spark.installation import Form, Installation
from freshet.spark.report import TaskReport, read_reports
from freshet.spark.shuffled import effort, shuffled_plan
from freshet.spark.stages import Spread
from freshet.spark.task import UNREADABLE
from freshet.spark.vectorised import vectorised_plan

Works = tuple[Work, ...]

# Below these a second task costs more than the first one saves. The kernels need some 10 ns for a tuple and chain,
# so there must be many of both; and every task pays some 0.1 ms for each chain, however few tuples it has.
_SPLIT_TUPLES: Final = 50_000
_SPLIT_EFFORT: Final = 500_000
_MOST_PLANS: Final = 128


class Jobs:
    """Runs works of one form as one job; plans are built once and kept (the least recently used one goes first)."""

    def __init__(
        self,
        session: SparkSession,
        state: Path,
        installation: Installation,
        most_join_bytes: int = MOST_BYTES,
        part_overhead: float = OVERHEAD,
    ) -> None:
        self.cores = session.sparkContext.defaultParallelism
        self._most_join_bytes = most_join_bytes
        self._part_overhead = part_overhead
        self.checks = Checks.ONCE
        """When tasks look at the checksums of their trains; for measurements."""
        self._session = session
        self._state = state
        self._installation = installation
        self._plans: OrderedDict[object, DataFrame] = OrderedDict()
        self._lock = threading.Lock()

    def run(
        self,
        unit: str,
        spec: str,
        form: Form,
        works: Works,
        parts: dict[str, float],
        states: tuple[State, ...] = (),
        tables: tuple[Train, ...] = (),
    ) -> list[TaskReport]:
        """Runs works (of the catalyst form: one work) and adds the time spent planning and running to ``parts``."""
        began = time.perf_counter()
        tasks = self._tasks(form, works)
        plan = self._plan_of(form, works, tasks)
        folds = {fold for work in works for chain in work.chains for fold in self._installation.folds(chain.operators)}
        needed = tuple(state for state in states if state.fold in folds)
        versions = self._tables(works, tables)
        parted = form == "parted"
        assignment = Assignment(self._state, unit, spec, tasks, works, needed, versions, parted, self.checks)
        text = assignment.property_text()
        self._session.sparkContext.setLocalProperty(PROPERTY, text)
        planned = time.perf_counter()
        parts["plan"] = parts.get("plan", 0.0) + planned - began
        try:
            return read_reports(_rows(plan))
        except BaseException as error:
            assignment.forget_reports()
            if (reason := retry_reason(error)) is not None and UNREADABLE in reason:
                _check_files(assignment)
            raise
        finally:
            parts["job"] = parts.get("job", 0.0) + time.perf_counter() - planned
            assignment.forget(text)

    def spread(self, chain: Chain, train: Train, states: Mapping[str, State], queries: int = 1) -> Spread:
        """What of a chain does not run in one task, over a train and with states of this size.

        Args:
            chain: It.
            train: What it runs over.
            states: Of its folds.
            queries: Queries with folds in the same step.
        """
        joins = frozenset(
            number
            for number, side in self._installation.shufflable(chain.operators)
            if pays(*effort(train, states.get(side.fold), side.port), self.cores, self._most_join_bytes)
        )
        large = train.rows >= self.cores and parts_pay(train.rows, self.cores, queries, self._part_overhead)
        return Spread(joins, large and self._installation.parted_at(chain.operators) is not None)

    def _plan_of(self, form: Form, works: Works, tasks: int) -> DataFrame:
        if form in ("vectorised", "parted"):
            return self._vectorised(tasks)
        if form == "catalyst":
            return self._catalyst(works[0], tasks)
        (number,) = works[0].chains[0].operators
        return shuffled_plan(self._session, number, *self._installation.side(number), tasks)

    def _tables(self, works: Works, tables: tuple[Train, ...]) -> tuple[Train, ...]:
        if not tables:
            return ()
        chains = (chain for work in works for chain in work.chains)
        read = {version_stream(table) for chain in chains for table in self._installation.tables(chain.operators)}
        return tuple(train for train in tables if train.stream in read)

    def probe(self, spec: str, tasks: int = 1) -> None:
        """Runs an empty job."""
        assignment = Assignment(self._state, "probe", spec, tasks, ())
        self._session.sparkContext.setLocalProperty(PROPERTY, assignment.text())
        _rows(self._vectorised(tasks))

    def split(self, works: Works, states: Sequence[State] = ()) -> Iterator[tuple[Form, Works]]:
        """The jobs of a unit: one for all its vectorised chains, those of the catalyst form by train, and by query
        those that run in stages."""
        staged = self._staged(works, {state.fold: state for state in states})
        vectorised = []
        catalyst: list[tuple[Form, Works]] = [("staged", some) for some in staged.values()]
        for work in works:
            forms = [
                (self._installation.form(chain.operators)[0], chain)
                for chain in work.chains
                if self._installation.query(chain.operators[0]) not in staged
            ]
            compiled = tuple(chain for form, chain in forms if form == "vectorised")
            others = tuple(chain for form, chain in forms if form == "catalyst")
            if compiled:
                vectorised.append(Work(work.train, compiled))
            for first in range(0, len(others), MOST_CHAINS):
                catalyst.append(("catalyst", (Work(work.train, others[first : first + MOST_CHAINS]),)))
        if vectorised:
            yield "vectorised", tuple(vectorised)
        yield from catalyst

    def _staged(self, works: Works, states: Mapping[str, State]) -> dict[str, Works]:
        """The works of queries with a chain that runs in stages: their chains may share folds, so all of them do."""
        installed = self._installation
        chains = [(work.train, chain) for work in works for chain in work.chains]
        folding = {installed.query(chain.operators[0]) for _, chain in chains if installed.folds(chain.operators)}
        staged = {
            installed.query(chain.operators[0])
            for train, chain in chains
            if installed.form(chain.operators)[0] == "staged" or self.spread(chain, train, states, len(folding))
        }
        return {
            query: tuple(
                Work(work.train, some)
                for work in works
                if (some := tuple(c for c in work.chains if installed.query(c.operators[0]) == query))
            )
            for query in sorted(staged)
        }

    def _tasks(self, form: Form, works: Works) -> int:
        long = max(work.train.rows for work in works) >= _SPLIT_TUPLES
        # Spark's own form moves each tuple through three processes, so that even one chain is effort enough.
        enough = form == "catalyst" or _effort(works) >= _SPLIT_EFFORT
        return self.cores if form in ("shuffled", "parted") or (long and enough) else 1

    def _vectorised(self, tasks: int) -> DataFrame:
        return self._plan(tasks, lambda: vectorised_plan(self._session, tasks))

    def _catalyst(self, work: Work, tasks: int) -> DataFrame:
        installed = self._installation
        chains: tuple[tuple[Filter | Project, ...], ...] = tuple(
            installed.operators(chain.operators)  # type: ignore[misc]
            for chain in work.chains
        )
        schema = installed.reads[work.chains[0].operators[0]]
        outputs = tuple(installed.writes[chain.operators[-1]] for chain in work.chains)
        key = (chains, schema, tasks)
        return self._plan(key, lambda: catalyst_plan(self._session, chains, schema, outputs, tasks))

    def _plan(self, key: object, build: Callable[[], DataFrame]) -> DataFrame:
        with self._lock:
            if key in self._plans:
                self._plans.move_to_end(key)
                return self._plans[key]
        plan = build()
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        return plan


def _rows(plan: DataFrame) -> str:
    """Runs a plan; its rows as Java prints them.

    Neither ``toArrow`` nor ``collect``: both open a socket of their own for every job, and where it is a Unix domain
    socket the JVM keeps its path, to delete it on exit, for as long as it lives. This way is the quicker one, too.
    """
    rows: str = plan._jdf.collectAsList().toString()
    return rows


def _check_files(assignment: Assignment) -> None:
    """Tells a file that is gone, although its folder is there, from one that a task could not read: no other try of
    the unit finds it."""
    if not assignment.segments.is_dir():
        return
    for train in assignment.trains():
        for segment in train.segments:
            if not (assignment.segments / segment.file).exists():
                raise missing(segment)


def _effort(works: Works) -> int:
    return sum(work.train.rows * len(work.chains) for work in works)
