"""The executor: worker threads that run units as Spark jobs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from freshet.engine.clock import Waker
from freshet.kernels.shuffling import MOST_BYTES
from freshet.kernels.task_split import OVERHEAD, RESIDENT_OVERHEAD, parts_by_key
from freshet.model import Chain, FreshetError, Network, Unit, UnitResult
from freshet.model.scheduling.unit import components
from freshet.quality.snapshots import ResidentsSnapshot
from freshet.spark.driver.analysis import Analysis
from freshet.spark.driver.course import Course
from freshet.spark.driver.failures import Apart, Retry, how_jvm_ended, message, retry_reason
from freshet.spark.driver.files import forget
from freshet.spark.driver.installation import Installation
from freshet.spark.driver.isolate import isolate
from freshet.spark.driver.jobs import Job, Jobs
from freshet.spark.driver.planning import Component, Planner, TaskLimits
from freshet.spark.driver.residents.dispatcher import NO_RESIDENTS, RESIDENT, Dispatcher
from freshet.spark.driver.residents.pool import most_parts, open_residents
from freshet.spark.driver.residents.slots import free_slots
from freshet.spark.driver.results import Outcome
from freshet.spark.driver.running import Running
from freshet.spark.driver.suspects import Suspects
from freshet.spark.driver.turns import Floor, TimeLimit, TookTooLong
from freshet.spark.worker.report import TaskReport
from freshet.spark.worker.spec import Spec

_LAST_TRY: Final = 10.0
"""Seconds that a worker gets to end after its unit was cancelled; after that nobody waits for it."""
_PROBE: Final = 60.0
"""Seconds that an empty job gets before Spark is taken to be stuck."""


class SparkExecutor:
    """Runs units on Spark; implements :class:`freshet.engine.protocols.Executor`.

    Args:
        session: From :func:`freshet.spark.session.session.open_session`.
        state: The state folder; trains are read from and outputs written to its ``segments``.
        slots: Maximum number of units that run at once; each has a thread that submits its jobs.
        clock: The engine's; it is woken when a unit has finished.
        vectorise: Whether to compile chains where possible; False runs all of them in Spark's own form.
        most_join_bytes: Maximum bytes that a join reads in one task; larger joins, if their worker cannot keep them,
            go through a shuffle.
        part_overhead: Seconds that a second job takes, to judge whether an aggregate merges a train in parts; None: as
            measured, for Spark jobs and residents.
        time_limit: Maximum seconds of a job; None: unlimited. A query that takes longer fails.
        rows_out: Maximum rows that a unit of a query gives out for each row that it reads; None: unlimited.
        kept_bytes: Maximum memory in which each worker keeps what it has made of states.
        suspects: Queries that may have ended an earlier run; some of them run alone until they have succeeded once.
        residents: Number of residents, if Spark has slots for them; compiled units go to them.
        resident_port: Port of the driver that residents on other machines connect to; 0: any.
        no_residents: Why there are to be none, for reports.
    """

    def __init__(
        self,
        session: SparkSession,
        state: Path,
        *,
        slots: int = 2,
        clock: Waker,
        vectorise: bool = True,
        most_join_bytes: int = MOST_BYTES,
        part_overhead: float | None = None,
        time_limit: float | None = None,
        rows_out: int | None = None,
        kept_bytes: int = 2**30,
        suspects: Suspects | None = None,
        residents: int = 0,
        resident_port: int = 0,
        no_residents: str | None = None,
    ) -> None:
        self.slots, self._wake = slots, clock.wake
        self._context, self._state = session.sparkContext, state.resolve()
        self._installation = Installation(Analysis(session), vectorise, rows_out, kept_bytes)
        self.form = self._installation.form
        self.jobs = Jobs(session, self._state, self._installation)
        self._fail_on_error: frozenset[str] = frozenset()
        self._specs = self._state / "specs"
        forget(self._specs, "*.assignment", "*.report")  # of runs before: nobody reads them any more
        self._spec = self._empty = Spec().store(self._specs)
        self._suspects = suspects or Suspects(self._state, {})
        self._notes, self._floor = Running(self._state), Floor()
        self._limit = TimeLimit(time_limit, self._context.cancelJobGroup, self._is_stuck)
        self._changed = threading.Condition()
        self._waiting: deque[Unit] = deque()
        self._running: dict[str, str] = {}
        self._cancelled: set[str] = set()
        self._results: list[UnitResult] = []
        self._closing = False
        free = free_slots(self._context)
        pool, fewer = open_residents(session, residents, clock, resident_port)
        self._no_residents = no_residents or fewer
        self.jobs.cores = max(1, min(self.jobs.cores, most_parts(free, pool)))
        overhead = OVERHEAD if part_overhead is None else part_overhead
        self._limits = TaskLimits(self.jobs.cores, most_join_bytes, overhead, kept_bytes)
        self._dispatcher: Dispatcher | None = None
        if pool is not None:
            # With fewer residents than cores, what goes in parts runs as Spark jobs.
            quick = part_overhead is None and len(pool.seats) >= self.jobs.cores
            limits = replace(self._limits, part_overhead=RESIDENT_OVERHEAD) if quick else self._limits
            self._dispatcher = Dispatcher(pool, self.jobs, self._installation, limits, self._notes, time_limit)
        self._threads = [
            threading.Thread(target=self._work, name=f"freshet-worker-{number}", daemon=True) for number in range(slots)
        ]
        for thread in self._threads:
            thread.start()

    def install(
        self, network: Network, schemas: Mapping[str, pa.Schema], fail_on_error: AbstractSet[str]
    ) -> Mapping[str, pa.Schema]:
        """Prepares for the operators of a network; returns the schemas of the queries' outputs by query name.

        Raises:
            UserError: Spark does not accept an expression; then nothing was installed.
        """
        self._installation.extend(network, schemas)
        self._fail_on_error = frozenset(fail_on_error)
        if self._dispatcher is not None:
            self._dispatcher.installed()
        return self._installation.columns.outputs(network)

    def _store(self) -> None:
        """Writes down for workers what is installed."""
        if (spec := self._installation.stored(self._specs)) != self._spec:
            with self._changed:
                self._spec = spec
                needed = {spec, self._empty, *self._running.values()}
            forget(self._specs, "*.json", but=needed | (self._dispatcher.specs if self._dispatcher else set()))

    @property
    def alone(self) -> frozenset[str]:
        """Queries that must not share a unit with others: earlier runs died while they ran."""
        return self._suspects.alone

    @property
    def slow(self) -> AbstractSet[int]:
        """Operators that are not compiled, if there are residents: a unit with one of them is a Spark job."""
        return self._installation.others if self._has_residents and not self._suspects.alone else frozenset()

    @property
    def _has_residents(self) -> bool:
        return self._dispatcher is not None and self._dispatcher.residents.present > 0

    def sizes(self, node: int) -> tuple[float, float]:
        """Bytes of a tuple in front of an installed operator and behind it, by the types of its columns."""
        return self._installation.columns.sizes(node)

    def parts(self, fold: str, now: int, rows: int, remembered: int) -> int:
        """The number of parts in which the state of an installed fold should lie, by key."""
        workers = self._dispatcher.workers if self._dispatcher and self._installation.is_divisible(fold) else 1
        return parts_by_key(now, workers, rows, remembered)

    def warm_up(self, rounds: int = 10) -> None:
        """Runs empty jobs, so that Python workers and compiled Java code are ready for the first units."""
        self._store()
        self.jobs.warm_up(self._spec, rounds)
        if self._dispatcher is not None:
            self._dispatcher.residents.wait_until_there()

    def way(self, nodes: Collection[int]) -> str:
        """The way in which a unit of these operators would run."""
        way = self._installation.way(nodes)
        return RESIDENT if self._has_residents and way == "vectorised" else way

    def residents(self) -> ResidentsSnapshot:
        """What residents do, for reports. On the engine's thread."""
        if self._dispatcher is None:
            return {**NO_RESIDENTS, "reason": self._no_residents}
        return self._dispatcher.figures()

    def submit(self, unit: Unit) -> None:
        """Starts a unit: residents run it if they can, else Spark jobs as soon as a worker is idle."""
        try:
            self._store()
        except OSError as error:  # such as a full disk: there may be room later
            self._finish(UnitResult(unit, now := time.time(), now, retry=message(error)))
            return
        residents = None if self._suspects.alone else self._dispatcher
        if residents is None or not residents.take(unit, self._spec, self._fail_on_error):
            self._queue(unit)

    def _queue(self, unit: Unit) -> None:
        with self._changed:
            self._waiting.append(unit)
            self._changed.notify()

    def finished(self) -> list[UnitResult]:
        """Units that finished since the last call; does not wait.

        Raises:
            FreshetError: Spark's JVM has ended, so no unit can succeed any more.
        """
        with self._changed:
            results, self._results = self._results, []
        if self._dispatcher is not None:
            done, back = self._dispatcher.poll()
            for result in done:
                self._suspects.clear(stream for chain in result.unit.chains for stream in chain.writes)
            results += done
            for unit in back:
                self._queue(unit)
        if any(result.retry not in (None, "cancelled") for result in results):
            self._look_whether_gone()
        if self._notes.dead is not None:
            raise FreshetError(f"{self._notes.dead} (see spark.out in the state folder); start again to go on")
        return results

    def _look_whether_gone(self) -> None:
        """Notes it if the JVM has ended, or is about to, so that the notes of what ran are kept."""
        if not self._closing and (end := how_jvm_ended(self._context)) is not None:
            self._notes.died(*end)

    def _is_stuck(self, unit: str) -> None:
        """A cancelled job of a unit goes on, and no other job can run: this is as bad as a JVM that has ended."""
        self._notes.died("Spark runs no job any more: one could not be cancelled", certain=True)
        self._wake()

    def next_finish(self) -> float | None:
        """Unknown in the real world; but a resident that does not answer must be noticed in time."""
        return None if self._dispatcher is None else self._dispatcher.next_look()

    def cancel(self, unit_id: str) -> None:
        """Asks for a unit to be given up; it comes back with ``retry="cancelled"``.

        A Python worker may go on for a moment and write its file; nobody commits it.
        """
        if self._dispatcher is not None and self._dispatcher.cancel(unit_id):
            self._wake()
            return
        with self._changed:
            queued = [unit for unit in self._waiting if unit.id == unit_id]
            for unit in queued:
                self._waiting.remove(unit)
            running = unit_id in self._running
            if running:
                self._cancelled.add(unit_id)
        for unit in queued:
            self._finish(UnitResult(unit, now := time.time(), now, retry="cancelled"))
        if running:
            self._context.cancelJobGroup(unit_id)

    def close(self) -> None:
        """Stops the workers; running units are cancelled and not reported."""
        with self._changed:
            self._closing = True
            self._waiting.clear()
            running = list(self._running)
            self._cancelled.update(running)
            self._changed.notify_all()
        for unit in running:
            # If Spark is gone, there is no job left to cancel, and closing must not fail.
            with suppress(Exception):
                self._context.cancelJobGroup(unit)
        self._limit.stop()
        if self._dispatcher is not None:
            self._dispatcher.close()
        until = time.monotonic() + _LAST_TRY
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if self._closing:
                    return
                unit = self._waiting.popleft()
                self._running[unit.id] = spec = self._spec
            self._finish(self._run(unit, spec))

    def _finish(self, result: UnitResult) -> None:
        with self._changed:
            self._running.pop(result.unit.id, None)
            self._cancelled.discard(result.unit.id)
            self._results.append(result)
        self._wake()

    def _run(self, unit: Unit, spec: str) -> UnitResult:
        started, began = time.time(), time.perf_counter()
        parts: dict[str, float] = {}
        places = range(len(unit.chains))
        try:
            self.jobs.describe(unit, dict.fromkeys(query for chain in unit.chains for query in self._queries(chain)))
            outcome = self._attempt(unit, spec, parts)
            self._check(unit)
            outcome.in_order(places)
        except Exception as error:
            # Whatever happened, the unit comes back: an engine that waits for it for ever would be worse.
            reason = "cancelled" if unit.id in self._cancelled else retry_reason(error) or self._why_no_job()
            if reason is not None:
                apart = error.places if isinstance(error, Apart) else ()
                return UnitResult(unit, started, time.time(), retry=reason, apart=apart, parts=parts)
            # An error of Freshet itself, of no particular chain: trying again for ever would hold up all queries.
            outcome = Outcome(unit.chains)
            outcome.failed(places, message(error))
        return outcome.result(unit, started, began, parts, self._installation.way(unit.nodes))

    def _attempt(self, unit: Unit, spec: str, parts: dict[str, float]) -> Outcome:
        """Runs a unit; if one of its chains serves suspects only, no other unit runs meanwhile."""
        outcome = Outcome(unit.chains)
        run = partial(self._run_components, unit, spec, parts)
        alone = self._suspects.alone
        is_suspect = bool(alone) and any(alone.issuperset(self._queries(chain)) for chain in unit.chains)
        with self._floor.alone() if is_suspect else self._floor.together():
            self._isolated(outcome, components(unit.chains), run)
        # Success of shared work clears nobody: its queries may still fail in the operators behind it.
        self._suspects.clear(stream for chain in unit.chains for stream in chain.writes)
        return outcome

    def _queries(self, chain: Chain) -> tuple[str, ...]:
        return self._installation.queries(chain.nodes)

    def _isolated(
        self, outcome: Outcome, parts: Sequence[Component], run: Callable[[Sequence[Component]], Outcome]
    ) -> None:
        """Runs components, and finds those that fail.

        Raises:
            Apart: One fails, and its chains serve different queries.
        """
        for done, result in isolate(parts, run, self._suspect):
            if isinstance(result, Outcome):
                outcome.merge(result)
                continue
            [part] = done
            if len({frozenset(self._queries(outcome.chains[place])) for place in part}) > 1:
                raise Apart(result, part)
            outcome.failed(part, result)

    def _run_components(self, unit: Unit, spec: str, times: dict[str, float], parts: Sequence[Component]) -> Outcome:
        outcome = Outcome(unit.chains)
        planner = Planner(unit, self._installation, self._limits)

        def run(some: Sequence[Component]) -> Outcome:
            pieces = planner.pieces(some)
            submit = partial(self._submit_job, unit, spec, times)
            return Course(unit, pieces, self._installation, self._fail_on_error).run(submit)

        for group in planner.groups(parts):
            self._isolated(outcome, group, run)
        return outcome

    def _submit_job(self, unit: Unit, spec: str, times: dict[str, float], job: Job) -> list[TaskReport]:
        self._check(unit)
        if self._notes.dead is not None:
            raise Retry(self._notes.dead)
        queries = {query for chain in job.chains for query in self._queries(chain)}
        try:
            with self._notes.job(queries), self._limit.watch(unit.id):
                return self.jobs.run(unit, spec, job, times)
        except TookTooLong:
            self._probe_within(unit)
            self._notes.failed()
            raise
        except Exception:
            self._look_whether_gone()
            self._notes.failed()
            raise

    def _suspect(self) -> None:
        """Raises if not even an empty job runs."""
        if (reason := self._why_no_job()) is not None:
            raise Retry(reason)

    def _why_no_job(self) -> str | None:
        try:
            self.jobs.probe(self._empty)
        except Exception as error:
            return f"Spark runs no job: {message(error)}"
        return None

    def _probe_within(self, unit: Unit) -> None:
        """Checks, after a job that took too long, that other jobs can run: its tasks may keep all cores for ever."""
        try:
            with self._limit.watch(unit.id, at_least=_PROBE):
                self._suspect()
        except TookTooLong as error:
            self._is_stuck(unit.id)
            raise Retry("Spark runs no job any more") from error

    def _check(self, unit: Unit) -> None:
        if unit.id in self._cancelled:
            raise Retry("cancelled")
